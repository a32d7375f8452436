"""The rules of counting in plain Python, row by row. Written from docs/explanation/counting.md, not from any engine."""

from __future__ import annotations

import collections
import datetime as dt
import hashlib
import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import cbdp

DIGITS = re.compile(r"[ \t]*([+-]?[0-9]+)(\.0*)?[ \t]*")
STAMP = re.compile(
    r" *(\d{4}-\d\d?-\d\d?)[T ](\d\d?:\d\d)(:\d\d)?(\.\d+)?(Z|[+-]\d\d(?::?\d\d)?)? *", re.ASCII
)
WEEK = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

Moment = tuple[dt.date | None, int | None]  # the day and the second of the day, as far as they are known


def reference(
    rows: Iterable[Mapping[str, Any]],
    universe: cbdp.Universe,
    columns: Mapping[str, str],
    clock: cbdp.Clock,
    *,
    untyped: bool = False,
    person: str | None = None,
    most: int = 0,
    key: bytes = b"",
    per: str = "release",
    apart: str | None = None,
) -> dict[tuple[Hashable, ...], int]:
    """Trip type → count."""
    everyone: dict[Any, list[tuple[int, ...]]] = collections.defaultdict(list)
    for row in rows:
        codes = [_code(row[columns.get(n, n)], d, clock, untyped) for n, d in universe.dimensions.items()]
        who = b"all" if person is None else _person(row[person])
        weight = _whole(row[columns["count"]], untyped) if "count" in columns else 1
        within = _within(row, universe, columns, clock, codes, per)
        if None not in [*codes, who, weight, within] and weight >= 0:
            values = [d.values[c] for d, c in zip(universe.dimensions.values(), codes, strict=True)]
            if universe.rank(*values) >= 0:
                everyone[who, within] += [tuple(codes)] * weight
    counted: collections.Counter[tuple[int, ...]] = collections.Counter()
    for (who, within), own in everyone.items():
        mark, types = b"" if per == "release" else b"/%d" % within, own
        if apart is not None:
            slots = collections.defaultdict(list)
            for t in own:
                slots[_slot(t, universe, apart)].append(t)
            types = [_drawn(key, mark + b"+%d" % slot, who, some)[0] for slot, some in slots.items()]
        counted.update(_drawn(key, mark, who, types)[:most] if person else types)
    dims = list(universe.dimensions.values())
    return {tuple(d.values[c] for d, c in zip(dims, t, strict=True)): n for t, n in counted.items()}


def _drawn(key: bytes, mark: bytes, who: bytes, types: Iterable[Any]) -> list[Any]:
    """Trips in the order of their tickets."""
    tickets = [
        (hashlib.sha256(b"%b:%d%b:%b" % (key, j, mark, who)).digest(), j, t)
        for j, t in enumerate(sorted(types), 1)
    ]
    return [t for *_, t in sorted(tickets)]


def _slot(codes: tuple[int, ...], universe: cbdp.Universe, apart: str) -> int:
    slot = 0
    for (name, dimension), code in zip(universe.dimensions.items(), codes, strict=True):
        slot = slot * len(dimension) + code if name in ("day", apart) else slot
    return slot


def _within(
    row: Mapping[str, Any],
    universe: cbdp.Universe,
    columns: Mapping[str, str],
    clock: cbdp.Clock,
    codes: Sequence[int | None],
    per: str,
) -> int | None:
    """The number of the day, week or month: of the day that is counted, or of the day that the trip tells."""
    day: Any = None
    if "day" in universe.dimensions:
        code = codes[list(universe.dimensions).index("day")]
        label = None if code is None else universe.dimensions["day"].values[code]
        day = dt.date.fromisoformat(str(label)) if re.fullmatch(r"\d{4}-\d\d-\d\d", str(label)) else None
    if day is None:
        day = _moment(row[columns.get("day", columns.get("time", "time"))], clock)[0]
    since = None if day is None else day.toordinal() - dt.date(1970, 1, 1).toordinal()
    if per == "release" or since is None:
        return 0 if per == "release" else None
    return {"day": since, "week": (since + 3) // 7, "month": 12 * day.year + day.month - 1}[per]


def _person(value: Any) -> bytes | None:
    if value is None or value == "" or value != value:
        return None
    if isinstance(value, float):
        value = int(value) if value == math.floor(value) else repr(value)
    return str(value).encode()


def _code(value: Any, dimension: cbdp.Dimension, clock: cbdp.Clock, untyped: bool) -> int | None:
    labels = list(dimension.values)
    if value is None or value == "":
        return None
    if type(value) in (str, int, float, bool) and value in labels:
        return labels.index(value)
    whole = _whole(value, untyped or not all(isinstance(v, int) for v in labels))
    if all(isinstance(v, int) for v in labels):
        return labels.index(whole) if whole in labels else None
    if all(re.fullmatch("0|-?[1-9][0-9]*", str(v)) for v in labels):
        dotted = not isinstance(value, str) or re.fullmatch(r"(0|-?[1-9][0-9]*)\.0*", value)
        return labels.index(str(whole)) if dotted and str(whole) in labels else None
    day, second = _moment(value, clock)
    if dimension.edges is not None:
        inside = [
            c
            for c in range(len(labels))
            if second is not None and dimension.edges[c] <= second < dimension.edges[c + 1]
        ]
        return inside[0] if inside else None
    names = _day_names(day, clock) if day else []
    return next((labels.index(n) for n in names if n in labels), None)


def _whole(value: Any, untyped: bool) -> int | None:
    if isinstance(value, str):
        found = DIGITS.fullmatch(value) if untyped else None
        return int(found[1]) if found and abs(int(found[1])) < 2**63 else None
    if isinstance(value, float) and (not math.isfinite(value) or value != math.floor(value)):
        return None
    return int(value) if isinstance(value, int | float) else None


def _day_names(day: dt.date, clock: cbdp.Clock) -> list[Any]:
    names = [day, day.isoformat()]
    if day in dict(clock.holidays):
        return [*names, dict(clock.holidays)[day]]
    return [*names, WEEK[day.weekday()], "weekday" if day.weekday() < 5 else "weekend"]


def _moment(value: Any, clock: cbdp.Clock) -> Moment:
    if isinstance(value, str):
        return _written(value, clock)
    if isinstance(value, dt.datetime):
        return _local(value, clock)
    if isinstance(value, dt.date):
        return (value, None) if 1850 <= value.year < 2150 else (None, None)
    if isinstance(value, dt.time):
        return None, value.hour * 3600 + value.minute * 60 + value.second
    if value is not None and clock.format in ("epoch_s", "epoch_ms"):
        try:
            seconds = _whole(value, untyped=False) // (1000 if clock.format == "epoch_ms" else 1)  # type: ignore[operator]
            return _local(dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds), clock)  # noqa: DTZ001
        except (OverflowError, TypeError):
            return None, None
    return None, int(value) * 3600 if value in range(24) else None


def _written(text: str, clock: cbdp.Clock) -> Moment:
    if clock.format is not None and not str(clock.format).startswith("epoch"):
        try:
            return _local(dt.datetime.strptime(text.strip(" "), str(clock.format)), clock)  # noqa: DTZ007
        except ValueError:
            return None, None
    if clock.format is not None or DIGITS.fullmatch(text):
        return _moment(_whole(text, untyped=True), clock)
    try:
        if found := STAMP.fullmatch(text):
            day = dt.date(*map(int, found[1].split("-")))
            read = dt.time.fromisoformat(found[2].zfill(5) + (found[3] or ""))
            offset = (found[5] or "").replace("Z", "+0000").replace(":", "")
            zone = dt.datetime.strptime(offset.ljust(5, "0"), "%z").tzinfo if offset else None
            return _local(dt.datetime.combine(day, read, zone), clock)
        if re.fullmatch(r" *\d\d?:\d\d(:\d\d(\.\d+)?)? *", text, re.ASCII):
            hour, _, rest = text.strip(" ").partition(":")
            return _moment(dt.time.fromisoformat(f"{hour.zfill(2)}:{rest.partition('.')[0]}"), clock)
        if re.fullmatch(r" *\d{4}-\d\d?-\d\d? *", text, re.ASCII):
            return _moment(dt.date(*map(int, text.strip(" ").split("-"))), clock)
    except ValueError:
        pass
    return None, None


def _local(stamp: dt.datetime, clock: cbdp.Clock) -> Moment:
    aware = stamp if stamp.tzinfo else stamp.replace(tzinfo=dt.UTC)
    if not 1850 <= aware.astimezone(dt.UTC).year < 2150:
        return None, None
    if clock.timezone or stamp.tzinfo:
        stamp = aware.astimezone(_zone(clock.timezone or "UTC"))
    second = stamp.hour * 3600 + stamp.minute * 60 + stamp.second
    starts = [*map(int, clock.day_starts.split(":")), 0]
    early = second < starts[0] * 3600 + starts[1] * 60 + starts[2]
    return stamp.date() - dt.timedelta(days=early), second


def _zone(name: str) -> dt.tzinfo:
    if found := re.fullmatch(r"([+-])(\d\d):(\d\d)", name):
        minutes = int(found[2]) * 60 + int(found[3])
        return dt.timezone(dt.timedelta(minutes=-minutes if found[1] == "-" else minutes))
    return ZoneInfo(name)
