"""Which dimensions and attributes of any universe play which part in the pictures (time, two ends, zones, shares), what is counted (trips, or taps), and when."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cbdp.features import Dimension, FeatureDag, Universe
from cbdp.release.about import MONTH_NAMES, Dates
from cbdp.release.release import Release

TIME_NAMES = ("time", "period", "hour", "departure")
END_NAMES = (("origin", "destination"), ("from", "to"), ("start", "end"))
MAX_BAR_LABELS = 24  # labels up to which an attribute is shown as bars
MAX_SHARE_CHARTS = 3  # attributes shown as bars on one page


@dataclass(frozen=True)
class Roles:
    """Names of attributes; None where the universe has nothing of the kind."""

    time: str | None
    ends: tuple[str, str] | None  # the dimensions a trip leads from and to
    zones: tuple[str, str] | None  # the same attribute of both
    shares: tuple[str, ...]  # modes, kinds, days


def roles(dag: FeatureDag) -> Roles:
    """The parts that the features' own attributes play.

    >>> from cbdp.features import opal
    >>> roles(opal(Universe(tap=["on", "off"], time=["08:00", "08:15"], location=["Manly", "Quay"])))
    Roles(time='time', ends=None, zones=None, shares=('tap', 'location'))
    """
    universe = dag.universe
    time, ends = _time(universe), ends_of(universe)
    zones = _zones(dag, ends)
    taken = {time, *(ends or ()), *(zones or ())}
    named = [name for feature in dag.features.values() for name in feature.by]
    every = dict.fromkeys([*named, *(n for n, a in universe.attributes.items() if len(a.of) > 1)])
    few = [n for n in every if n not in taken and 1 < len(universe.attribute(n).labels) <= MAX_BAR_LABELS]
    if ends is not None:  # a zone of one end alone is in the matrix already
        few = [n for n in few if universe.attribute(n).of not in ((ends[0],), (ends[1],))]
    few.sort(key=lambda name: "mode" not in name.lower())
    return Roles(time, ends, zones, tuple(few[:MAX_SHARE_CHARTS]))


def _time(universe: Universe) -> str | None:
    binned = [n for n, d in universe.dimensions.items() if d.edges is not None]
    named = [n for n in universe.dimensions if n.lower() in TIME_NAMES]
    return next(iter(binned + named), None)


def ends_of(universe: Universe) -> tuple[str, str] | None:
    """The dimensions that a trip leads from and to: by their names, or because both have the same values."""
    for pair in END_NAMES:
        if all(end in universe.dimensions for end in pair):
            return pair
    names = list(universe.dimensions)
    for place, first in enumerate(names):
        for second in names[place + 1 :]:
            if universe.dimensions[first].values == universe.dimensions[second].values:
                return first, second
    return None


def _zones(dag: FeatureDag, ends: tuple[str, str] | None) -> tuple[str, str] | None:
    """An attribute that both ends have; one that a feature groups by comes first, of those the coarsest."""
    if ends is None:
        return None
    universe = dag.universe
    both = [
        (n, f"{ends[1]}.{n.partition('.')[2]}")
        for n, a in universe.attributes.items()
        if a.of == (ends[0],) and n.startswith(f"{ends[0]}.")
    ]
    both = [pair for pair in both if pair[1] in universe.attributes]
    used = [pair for pair in both if any(set(pair) <= set(f.by) for f in dag.features.values())]
    return min(used or both, key=lambda p: len(universe.attribute(p[0]).labels), default=None)


def period_names(dimension: Dimension) -> list[str]:
    """Periods by both their ends where these are known, other values by themselves."""
    edges = dimension.edges
    if edges is None or len(edges) != len(dimension) + 1:
        return [str(value) for value in dimension.values]
    return [f"{clock_second(a)}–{clock_second(b)}" for a, b in pairwise(edges)]


def clock_second(second: int) -> str:
    """A second of the day as it is read off a clock.

    >>> clock_second(6 * 3600 + 1800), clock_second(61)
    ('06:30', '00:01:01')
    """
    text = f"{second // 3600:02d}:{second // 60 % 60:02d}"
    return f"{text}:{second % 60:02d}" if second % 60 else text


def enumerated(names: Sequence[str]) -> str:
    """Names as a part of a sentence.

    >>> enumerated(["a"]), enumerated(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


# What a release counts, as a word: trips, or taps where a row has one place and not two


TAP_DIMENSION = "tap"  # the dimension that tells tap-ons from tap-offs, and where they were made: as `cbdp init` names them
PLACE_NAMES = ("location", "stop", "station")
TAP_KINDS = ("on", "off")


@dataclass(frozen=True)
class Noun:
    """A word for one, and for many.

    >>> TAP_NOUN.number(1), TAP_NOUN.number(2000)
    ('1 tap', '2,000 taps')
    """

    one: str
    many: str

    def number(self, n: float) -> str:
        return f"{n:,.0f} {self.one if n == 1 else self.many}"

    def say(self, text: str) -> str:
        """A sentence about trips, with this word in place of theirs.

        >>> TAP_NOUN.say("Trips are protected: each trip counts.")
        'Taps are protected: each tap counts.'
        """
        return re.sub(
            r"\b([Tt])rip(s?)\b",
            lambda match: _cased(self.many if match[2] else self.one, match[1] == "T"),
            text,
        )


TRIP_NOUN, TAP_NOUN = Noun("trip", "trips"), Noun("tap", "taps")


def counted_noun(universe: Universe) -> Noun:
    """Trips lead from one place to another. Where there is one place alone, and `tap` or `location` names it, taps are counted.

    >>> counted_noun(Universe(location=["Manly", "Quay"], time=["08:00", "08:15"])).many
    'taps'
    >>> counted_noun(Universe(tap=["on"], location=["Manly", "Quay"])).many
    'tap-ons'
    >>> counted_noun(Universe(origin=["Manly", "Quay"], destination=["Manly", "Quay"])).many
    'trips'
    """
    if ends_of(universe) is not None or not {TAP_DIMENSION, PLACE_NAMES[0]} & set(universe.dimensions):
        return TRIP_NOUN
    kinds = (
        [str(v) for v in universe.dimensions[TAP_DIMENSION].values]
        if TAP_DIMENSION in universe.dimensions
        else []
    )
    if len(kinds) == 1 and kinds[0] in TAP_KINDS:
        return Noun(f"tap-{kinds[0]}", f"tap-{kinds[0]}s")
    return TAP_NOUN


def _cased(word: str, capital: bool) -> str:
    return f"{word[0].upper()}{word[1:]}" if capital else word


# When the trips were made, as far as a release says: by its dimensions, or in the publisher's words


DAY_DIMENSION = "day"  # a dimension of this name holds dates or types of days
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# types of days follow the week; what is none of these, such as a holiday, comes after them
DAY_TYPES = ("weekday", "workday", "working day", *WEEKDAYS[:5], "weekend", *WEEKDAYS[5:])
MONTH_LABELS = tuple(month.lower() for month in MONTH_NAMES)


def days_in(dimension: Dimension) -> list[dt.date] | None:
    """The values as dates, where all of them are."""
    try:
        return [v if type(v) is dt.date else dt.date.fromisoformat(v) for v in dimension.values]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def dates_of(universe: Universe) -> Dates | None:
    """The first and the last date that a trip may have, where a dimension holds dates."""
    for dimension in universe.dimensions.values():
        days = days_in(dimension)
        if days is not None and all(type(v) is dt.date or "-" in str(v) for v in dimension.values):
            return Dates(min(days), max(days))
    return None


def period_of(release: Release) -> str | None:
    """The period that the trips are from, in words: as the publisher says, by the dates that were counted, or by its series."""
    if release.about is not None and release.about.period is not None:
        return str(release.about.period)
    dates = dates_of(release.features.universe) or _days_of_series(release)
    return None if dates is None else str(dates)


def _days_of_series(release: Release) -> Dates | None:
    """The days of a release that is one of a series."""
    return None if release.series is None else Dates(release.series.first, release.series.last)


def is_single_day(release: Release) -> bool:
    """Whether nothing says that the trips are from several days. Otherwise nobody may write of "the day"."""
    universe, about = release.features.universe, release.about
    dates = dates_of(universe) or _days_of_series(release)
    if dates is not None and dates.first != dates.last:
        return False
    if DAY_DIMENSION in universe.dimensions and len(universe.dimensions[DAY_DIMENSION]) > 1:
        return False
    period = None if about is None else about.period
    return period is None or (isinstance(period, Dates) and period.first == period.last)


def calendar_order(labels: Sequence[Hashable]) -> list[int] | None:
    """The order of labels that are days or months, as a calendar has it; None where they are neither.

    Names may be short ("Mon"), in any case of letters, and a few may be of other days, such as holidays: these come last.

    >>> calendar_order(["saturday", "sunday", "weekday"]), calendar_order(["Fri", "Mon", "holiday"])
    ([2, 0, 1], [1, 0, 2])
    >>> calendar_order(["bus", "walk"]) is None
    True
    """
    words = [str(label).strip().lower() for label in labels]
    if words and all(_date(label) for label in labels):
        return sorted(range(len(words)), key=lambda i: words[i])
    for names in (DAY_TYPES, MONTH_LABELS):
        place = {name: i for i, name in enumerate(names)} | {
            name[:3]: i for i, name in enumerate(names) if name in (*WEEKDAYS, *MONTH_LABELS)
        }
        places = [place.get(word) for word in words]
        if 2 * sum(k is not None for k in places) > len(words):
            return sorted(range(len(words)), key=lambda i: (places[i] is None, places[i] or 0))
    return None


def _date(label: Hashable) -> bool:
    """Whether a label is a day of the calendar."""
    if isinstance(label, dt.date):
        return True
    try:
        return isinstance(label, str) and "-" in label and dt.date.fromisoformat(label) is not None
    except ValueError:
        return False
