"""From a column's values to a dimension's codes: by kind of column and of labels, and every key means one label."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.features import Dimension
from cbdp.features.calendar import DAY, WEEK, as_date
from cbdp.trips.clock import Clock
from cbdp.trips.kinds import DATE, REAL, STAMP, TEXT, TIME, TRUTH, WHOLE, Kind
from cbdp.trips.plan import By, Form, Way
from cbdp.trips.written import EPOCHS, ISO, ISO_DATE, ISO_LOCAL, ISO_STAMP, ISO_TIME, Written, written
from cbdp.trips.zones import EPOCH, FIRST, LAST, zone_of

Maker = Callable[[int], list[Way]]  # of the place of a moment

CANONICAL = re.compile(r"0|-?[1-9][0-9]*")  # a whole number as everybody writes it


def value_ways(dimension: Dimension, kind: Kind, place: int, *, typed: bool) -> list[Way]:
    """Ways by the value itself: text as bytes, numbers as numbers, and numbers written as text where text may stand for them."""
    labels = dimension.values
    ways = []
    if kind.name == TEXT:
        texts = {c: v.encode("utf-8", "surrogatepass") for c, v in enumerate(labels) if isinstance(v, str)}
        ways += _way("bytes", place, texts, labels)
    if kind.name in (WHOLE, REAL, TRUTH) or (kind.name == TEXT and not typed):
        ways += _number_ways(labels, kind, place)
    if kind.name in (TEXT, WHOLE, REAL) and all(
        isinstance(v, str) and CANONICAL.fullmatch(v) for v in labels
    ):
        numbers = {c: int(str(v)) for c, v in enumerate(labels) if abs(int(str(v))) < 2**63}
        ways += _way("dotted" if kind.name == TEXT else "whole", place, numbers, labels)
    return ways


def _number_ways(labels: Sequence[Hashable], kind: Kind, place: int) -> list[Way]:
    numbers = {c: v for c, v in enumerate(labels) if isinstance(v, int | float)}
    if all(isinstance(v, bool) for v in numbers.values()):
        by: By = "truth" if kind.name == TEXT else "whole"
        return _way(by, place, {c: int(v) for c, v in numbers.items()}, labels)
    whole = {c: int(v) for c, v in numbers.items() if math.isfinite(v) and v == int(v) and abs(v) < 2**63}
    if len(whole) == len(numbers) or kind.name in (WHOLE, TRUTH):
        return _way("whole", place, whole, labels)
    return _way("real", place, {c: float(v) for c, v in numbers.items() if float(v) == v}, labels)


def moment_forms(kind: Kind, clock: Clock, *, need: str) -> tuple[Form, ...]:
    """How a column can tell the `second` of the day, or the `day`."""
    gives = {"second": ("stamp", "epoch", "time", "hour"), "day": ("stamp", "epoch", "date")}[need]

    def fitting(forms: Iterable[Form]) -> tuple[Form, ...]:
        return tuple(f for f in forms if f.gives in gives)

    if kind.name in (STAMP, DATE, TIME):
        simple = {STAMP: Form("stamp"), DATE: Form("date"), TIME: Form("time")}
        return fitting([simple[kind.name]])
    if kind.name not in (TEXT, WHOLE, REAL):
        return ()
    stated = [form for text in clock.formats for form in _forms(text)]
    if fitting(stated):
        return fitting(stated)
    iso = _forms(ISO) if kind.name == TEXT else []
    if stated:  # they say how stamps are written; a date or a time alone in another column is in no conflict with them
        iso = [f for f in iso if f.gives != "stamp"]
    return fitting([*iso, Form("hour")])


def moves_days(clock: Clock) -> bool:
    """Whether an instant's service day may be another than the date that is written in it."""
    return clock.first_second > 0 or (clock.timezone is not None and zone_of(clock.timezone).fixed != 0)


def pinned_forms(forms: tuple[Form, ...], clock: Clock, *, timed: bool) -> tuple[Form, ...]:
    """Of a column that tells the days of a series, the forms by which one trip cannot be on two of them, however it is written. Proof: docs/proofs/windows.md.

    A date alone is a service day, and an instant on that date may belong to another: where they can differ, a column is read as instants
    if it is `timed`, and else as dates. Without a timezone, a text with an offset (or seconds since 1970) tells an instant of UTC, and a
    text without one a time of unknown place: where texts without are read, those with are not.
    """
    kept = list(forms)
    if moves_days(clock) and {_kind_of_form(f) for f in forms} >= {"date", "instant"}:
        dropped = "date" if timed else "instant"
        kept = [f for f in kept if _kind_of_form(f) != dropped]
    if clock.timezone is None:
        local = [_local(f) for f in kept if f.gives == "stamp" and f.written is not None]
        if any(f is not None for f in local):
            zoneless = [f if _kind_of_form(f) != "instant" else _local(f) for f in kept]
            kept = [f for f in zoneless if f is not None]
    return tuple(kept)


def _kind_of_form(form: Form) -> str:
    return "instant" if form.gives in ("stamp", "epoch") else form.gives


def _local(form: Form) -> Form | None:
    """The form without an offset; None where it cannot be without."""
    if form.written is None:
        return None
    if form.written == ISO_STAMP:
        return replace(form, written=ISO_LOCAL)
    return None if "z" in form.written.parts else form


def _forms(text: str) -> list[Form]:
    if text == ISO:
        return [_of(w) for w in (ISO_STAMP, ISO_DATE, ISO_TIME)]
    return [Form("epoch", per_second=EPOCHS[text]) if text in EPOCHS else _of(written(text))]


def _of(form: Written) -> Form:
    return Form("stamp" if form.dated and form.timed else "date" if form.dated else "time", form)


def time_way(name: str, dimension: Dimension, clock: Clock) -> tuple[str, Maker] | None:
    """What a dimension needs of a moment ("second" or "day") with the way that uses it; None where it is not about time."""
    if dimension.edges is not None:
        return "second", _periods(name, dimension)
    dates = [as_date(value) for value in dimension.values]
    if all(d is not None for d in dates):
        found = {c: (d - EPOCH).days for c, d in enumerate(dates) if d is not None}
        return "day", lambda place: _way("day", place, found, dimension.values)
    codes = _day_types(dimension, clock)
    if codes is None:
        return None
    keys = np.arange((FIRST - EPOCH).days, (LAST - EPOCH).days, dtype=np.int64)
    inside = codes >= 0
    return "day", lambda place: [Way("day", place, keys[inside], codes[inside])] if inside.any() else []


def _periods(name: str, dimension: Dimension) -> Maker:
    edges = dimension.edges or ()
    if len(edges) != len(dimension) + 1:
        raise InputError(f"{len(dimension)} periods of {name!r} need {len(dimension) + 1} edges")
    if any(b <= a for a, b in itertools.pairwise(edges)):
        raise InputError(f"the edges of {name!r} do not rise: list them in the order of the day")
    width = math.gcd(*edges, DAY)
    seconds = np.arange(max(0, edges[0]), min(DAY, edges[-1]), width, dtype=np.int64)
    codes = np.searchsorted(np.asarray(edges), seconds, side="right").astype(np.int64) - 1
    return lambda place: [Way("second", place, seconds // width, codes, width)]


def _day_types(dimension: Dimension, clock: Clock) -> Ints | None:
    """The code of every day from FIRST to LAST by its name, or as weekday and weekend; a holiday's type goes before."""
    holidays = dict(clock.holidays)
    if not set(dimension.values) <= {*WEEK, "weekday", "weekend", *holidays.values()}:
        return None
    code = {value: c for c, value in enumerate(dimension.values)}
    week = [code.get(day, code.get("weekday" if n < 5 else "weekend", -1)) for n, day in enumerate(WEEK)]
    days = (LAST - FIRST).days
    codes = np.resize(np.roll(np.array(week, dtype=np.int64), -FIRST.weekday()), days)
    for day, label in holidays.items():
        if FIRST <= day < LAST:
            codes[(day - FIRST).days] = code.get(label, -1)
    return codes


def _way(by: By, place: int, keys: dict[int, Any], labels: Sequence[Hashable]) -> list[Way]:
    """A way whose keys are unique: one that means two labels would count a row twice."""
    first: dict[Any, int] = {}
    for code, key in keys.items():
        if key in first:
            raise InputError(
                f"the values {labels[first[key]]!r} and {labels[code]!r} of a dimension mean the same "
                f"({_shown(by, key)}): keep one of them"
            )
        first[key] = code
    if not keys:
        return []
    codes = np.fromiter(keys, np.int64)
    if by == "bytes":
        return [Way(by, place, tuple(keys.values()), codes)]
    kind = np.float64 if by == "real" else np.int64
    return [Way(by, place, np.fromiter(keys.values(), kind), codes)]  # type: ignore[arg-type]


def _shown(by: By, key: Any) -> str:
    return str(EPOCH + dt.timedelta(days=key)) if by == "day" else repr(key)


def refusal(column: str, kind: Any, dimension: Dimension) -> InputError:
    """What to say when a column cannot hold what a dimension lists."""
    wanted = "text" if all(isinstance(v, str) for v in dimension.values) else "others"
    wanted = "numbers" if all(isinstance(v, int | float) for v in dimension.values) else wanted
    return InputError(f"column {column!r} holds {kind} values, the dimension {wanted}: convert one of them")
