"""PRIVATE. Likely mistakes in how trips are read, the weightiest first, each with its cure.

Every check reads rows, and what it says is for the curator alone.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cbdp.counting import plan as counting_plan
from cbdp.counting.clock import ISO_NAME
from cbdp.counting.columns import STAMP, TEXT, kind_of
from cbdp.counting.engines import MISSING, OUTSIDE, UNKNOWN, UNREAD
from cbdp.counting.inspection import (
    MALFORMED,
    NO_PERSON,
    NOT_A_COUNT,
    REASONS,
    STRUCTURAL_ZERO,
    DroppedRows,
    Inspection,
    rows_of,
)
from cbdp.counting.linking import LinkedTaps, Prepared
from cbdp.counting.reading import (
    DATES,
    MAX_EXAMPLES,
    Cause,
    TripReading,
    counts_column,
    cover,
    dropped_as,
    fits,
    look,
    look_at,
    number_of,
    quoted_examples,
    shape,
    swapped,
    toml_text,
    values_in,
)
from cbdp.errors import InputError
from cbdp.features import Dimension
from cbdp.privacy.unit import RELEASE, Person, Trip
from cbdp.text import aligned
from cbdp_features.calendar import SECONDS_PER_DAY


def causes_of(reading: TripReading, inspection: Inspection) -> tuple[Cause, ...]:
    """What may be wrong. Private: it reads the trips, several times."""
    if not inspection.read and linked_taps(reading) is None:
        return (Cause(0, f"{inspection.label} holds no rows", "check that the export is complete"),)
    kinds = (
        table_causes,
        role_causes,
        time_causes,
        place_causes,
        value_causes,
        tap_causes,
        curve_causes,
        _others,
    )
    causes = [cause for kind in kinds for cause in kind(reading, inspection)]
    return tuple(sorted(causes, key=lambda cause: -cause.rows))


def _others(reading: TripReading, inspection: Inspection) -> Iterator[Cause]:
    linked = linked_taps(reading) is not None
    for dropped in inspection.dropped:
        ends = linked and dropped.reason == REASONS[MISSING] and dropped.column in PLACES
        explanation = None if ends else _plain(inspection, dropped)
        if linked and dropped.reason == NO_PERSON:
            explanation = (
                f"{number_of(dropped.rows, 'tap')} {'has' if dropped.rows == 1 else 'have'} no value in {dropped.column!r}, so nobody can tell which taps belong together",
                "they are left out",
            )
        if explanation is not None:
            yield Cause(dropped.rows, *explanation)


def _plain(inspection: Inspection, dropped: DroppedRows) -> tuple[str, str] | None:
    rows, many = number_of(dropped.rows, "row"), dropped.rows * 10 > inspection.read
    if dropped.reason == MALFORMED:
        what = f"{rows} have more or fewer fields than the first line, or quotes that do not close"
        return what, "export the file again, with quotes around text"
    if dropped.reason == NO_PERSON:
        return (
            f"{rows} have no value in {dropped.column!r}, so they belong to no person",
            "name another column, or protect a trip",
        )
    if dropped.reason == STRUCTURAL_ZERO and many:
        what = f"{rows} are trips that the universe excludes, such as those that end where they began"
        return what, "if they are meant, write origin_is_destination = true"
    if dropped.reason == REASONS[MISSING] and many:
        return f"column {dropped.column!r} is empty in {rows}", "name another column, if there is one"
    return None


# The hours of the day: times that seem to be of another clock, and rows outside the hours


PLACES = ("origin", "destination")  # the ends of linked taps
CURVE_WIDTH, MAX_CURVE_ROWS = 40, 48  # characters of the longest bar, and bars: periods beyond are added up
SECONDS_PER_HOUR = 3600
QUIET_HOURS = 4  # consecutive hours of the night in which hardly anybody travels
MIN_TRIPS_OF_CURVE = 500  # trips below which the quietest hours are chance


def chart(values: Sequence[tuple[object, int]]) -> list[str]:
    """Bars, a line each; of many values, several share a line.

    >>> for line in chart([("07:00", 20), ("08:00", 40)]):
    ...     print(line)
    07:00  20  ████████████████████
    08:00  40  ████████████████████████████████████████
    """
    each = -(-len(values) // MAX_CURVE_ROWS)
    merged = [
        (str(values[n][0]), sum(trips for _, trips in values[n : n + each]))
        for n in range(0, len(values), each)
    ]
    top = max((trips for _, trips in merged), default=0) or 1
    rows = [(label, f"{trips:,}", "█" * round(CURVE_WIDTH * trips / top)) for label, trips in merged]
    return aligned(rows, right=[1])


def hours_of(dimension: Dimension, values: Sequence[tuple[object, int]]) -> list[float] | None:
    """Trips in each hour of the day, if the periods cover all of it."""
    edges = dimension.edges
    if edges is None or edges[0] > 0 or edges[-1] < SECONDS_PER_DAY:
        return None
    hours = [0.0] * 24
    for (begin, end), (_, trips) in zip(itertools.pairwise(edges), values, strict=True):
        for hour in range(24):
            shared = max(0, min(end, (hour + 1) * SECONDS_PER_HOUR) - max(begin, hour * SECONDS_PER_HOUR))
            hours[hour] += trips * shared / (end - begin)
    return hours


def quietest(hours: Sequence[float]) -> int:
    """When the quietest hours of the day begin."""
    return min(range(24), key=lambda h: sum(hours[(h + n) % 24] for n in range(QUIET_HOURS)))


def curve_causes(reading: TripReading, inspection: Inspection) -> Iterator[Cause]:
    yield from _outside(reading, inspection)
    dimension = reading.universe.dimensions.get("time")
    hours = None if dimension is None else hours_of(dimension, inspection.by["time"])
    if hours is None or sum(hours) < MIN_TRIPS_OF_CURVE:
        return
    kind = kind_of(reading.schema.kinds[reading.columns["time"]])
    begin = quietest(hours)
    has_offset = kind.name == STAMP and kind.zone is not None
    if not 6 <= begin <= 20 or kind.name not in (STAMP, TEXT):
        return
    shown = f"{begin}:00 to {(begin + QUIET_HOURS) % 24}:00"
    stated = reading.clock.timezone
    if stated is not None:
        if not has_offset:
            what = f"the quietest hours are {shown}: times without an offset were taken for UTC and moved to {stated}"
            yield Cause(
                inspection.read,
                what,
                "if they are those of the clock on the wall already, leave timezone out",
            )
        return
    says = f"column {reading.columns['time']!r} states {kind.zone}; " if has_offset else ""
    yield Cause(
        inspection.read,
        f"{says}the quietest hours are {shown}: times may be in UTC or in another zone",
        'state where the clock is: timezone = "America/Los_Angeles" (with the name of yours)',
    )


def _outside(reading: TripReading, inspection: Inspection) -> Iterator[Cause]:
    for dropped in inspection.dropped:
        if dropped.reason == REASONS[OUTSIDE] and dropped.rows * 10 > inspection.read:
            listed = reading.universe.dimensions[str(dropped.dimension)].values
            span = (
                ""
                if inspection.first is None
                else f"; the trips are from {inspection.first} to {inspection.last}"
            )
            setting = "universe.days" if str(dropped.dimension) == "day" else f"universe.{dropped.dimension}"
            yield Cause(
                dropped.rows,
                f"many rows of column {dropped.column!r} are outside {setting} ({listed[0]} … {listed[-1]})",
                f"if that is not meant, widen {setting}{span}",
            )


# Values that a dimension does not list, mostly stops: whether they are written otherwise, are names, or are missing


MAX_LISTED_VALUES = 20  # values up to which a dimension is short enough to be listed in a cure
MAX_QUOTED_VALUES = 8  # values of rows that are quoted

# how ids may differ in writing only: a name for it, and what makes such ids equal
WRITINGS: Mapping[str, Callable[[str], str]] = {
    "spaces around them": str.strip,
    "capitals": lambda text: text.strip().casefold(),
    "leading zeros": lambda text: text.strip().lstrip("0") or "0",
    "a fraction like .0": lambda text: (
        text.strip().removesuffix("0").removesuffix(".") if text.strip().endswith(".0") else text.strip()
    ),
}


def place_causes(reading: TripReading, inspection: Inspection) -> Iterator[Cause]:
    stops = reading.stated.stop_dimensions
    stated_causes = set()
    for dropped in dropped_as(inspection, UNKNOWN):
        dimension = str(dropped.dimension)
        if dimension in stops and reading.stops is not None:
            cause = _of_stops(reading, inspection, dropped)
        else:
            cause = _of_values(reading, dropped)
        if (cause.what, cause.cure) not in stated_causes:
            stated_causes.add((cause.what, cause.cure))
            yield cause


def value_causes(reading: TripReading, inspection: Inspection) -> Iterator[Cause]:
    """Values of a further dimension that no row holds: for these, noise alone would be published."""
    for name in further(reading):
        empty = [value for value, trips in inspection.by[name] if not trips]
        if (
            not inspection.counted
            or not empty
            or any(d.dimension == name for d in dropped_as(inspection, UNKNOWN))
        ):
            continue
        used = [str(value) for value, trips in inspection.by[name] if trips]
        what = f"no row that counts holds {_some(empty)}, which universe.dimensions lists for {name!r}"
        cure = f"if your file never holds it, write {name} = [{', '.join(map(toml_text, used))}]: otherwise noise alone is published for it"
        yield Cause(0, what, cure)


def further(reading: TripReading) -> list[str]:
    """The dimensions whose few values the configuration lists."""
    dimensions = reading.universe.dimensions
    return [name for name in reading.stated.listed if len(dimensions[name]) <= MAX_LISTED_VALUES]


def _some(values: Sequence[object]) -> str:
    more = f" and {len(values) - 3} more" if len(values) > 3 else ""
    return ", ".join(repr(value) for value in values[:3]) + more


def _of_values(reading: TripReading, dropped: DroppedRows) -> Cause:
    name, values = str(dropped.dimension), reading.universe.dimensions[str(dropped.dimension)].values
    what = f"column {dropped.column!r} holds values that the dimension {name!r} does not list"
    cure = f"list all that it may hold in universe.dimensions, or name another column; listed are {_some(values)}"
    shown, line = quoted_examples(dropped.examples, MAX_QUOTED_VALUES), ""
    if name in further(reading) and len(dropped.examples) <= MAX_QUOTED_VALUES:
        line = f"{name} = [{', '.join(toml_text(value) for value, _ in dropped.examples)}], as far as these are all of it"
    return Cause(dropped.rows, what, cure, shown, line)


def _of_stops(reading: TripReading, inspection: Inspection, dropped: DroppedRows) -> Cause:
    assert reading.stops is not None
    values = [value for value, _ in dropped.examples]
    labels = {str(v) for v in reading.stops.ids}
    shown = quoted_examples(dropped.examples, 10)
    where = f"column {dropped.column!r}"
    names = set(reading.stops.names) - labels
    if values and sum(v in names for v in values) > len(values) / 2:
        cure = 'name the column of ids, or read stops by their names: stop_columns = { id = "name" }'
        return Cause(dropped.rows, f"{where} holds the names of stops, not their ids", cure, shown)
    for difference, same in WRITINGS.items():
        same_ids = {same(label) for label in labels}
        if values and sum(same(v) in same_ids for v in values) > len(values) / 2:
            what = f"the stop ids in {where} differ from those in the stops file by {difference}"
            return Cause(
                dropped.rows,
                what,
                f"write them alike in {reading.stated.stops!r} and in the trips",
                shown,
            )
    return replace(_missing(reading, inspection, dropped), shown=shown)


def _missing(reading: TripReading, inspection: Inspection, dropped: DroppedRows) -> Cause:
    assert reading.stops is not None
    ids = len(dropped.examples)
    many = f"at least {ids}" if ids == MAX_EXAMPLES else f"{ids}"
    used = sum(trips > 0 for _, trips in inspection.by[str(dropped.dimension)])
    what = (
        f"{many} stop {'id' if ids == 1 else 'ids'} in column {dropped.column!r} {'is' if ids == 1 else 'are'} "
        f"not in {reading.stated.stops!r} "
        f"({number_of(dropped.rows, 'row')}; of its {len(reading.stops):,} stops {used:,} have trips)"
    )
    columns = toml_text(str(dropped.column))
    cure = f"add these stops to the file (it must list all stops, used or not), or name the right column instead of {columns}"
    return Cause(dropped.rows, what, cure)


# Columns in the wrong place: another column holds what a dimension lists; a person column that holds no persons


MAX_COLUMNS_TRIED = 40  # columns; each costs a pass over the rows
MIN_SHARE_EXPLAINED = 0.8  # share of rows that another column must explain
MAX_TRIPS_OF_USUAL_PERSON = (
    50  # trips of a usual person above which the column rather tells kinds of persons,
)
MAX_TRIPS_OF_USUAL_DAY = 15  # and in one day, where the unit is a person's day


def role_causes(reading: TripReading, inspection: Inspection) -> Iterator[Cause]:
    stops = reading.stated.stop_dimensions
    person = reading.person
    wrong = {
        d: _lost(inspection, d)
        for d in reading.universe.dimensions
        if _lost(inspection, d) > inspection.read / 2
    }
    for dimension, lost in wrong.items():
        if inspection.read:
            better = _better(reading, dimension, wrong)
            if better is not None:
                what = f"column {reading.columns[dimension]!r} does not hold values of {dimension!r}, but column {better!r} does"
                role = "it is stated as the person" if better == person else "it is used for nothing else"
                other = next(
                    (
                        d
                        for d, c in reading.columns.items()
                        if c == better and d in reading.universe.dimensions
                    ),
                    None,
                )
                if other is not None:
                    role = f"it is stated as {other}: the two may be swapped"
                yield Cause(lost, what, f'write columns = {{ {dimension} = "{better}" }} ({role})')
    if person is not None and stops and inspection.read:
        yield from _persons(reading, inspection, person, stops[0])


def _lost(inspection: Inspection, dimension: str) -> int:
    """Rows that do not count because of what stands in this dimension's column."""
    return sum(
        d.rows for d in inspection.dropped if d.dimension == dimension and d.reason != REASONS[OUTSIDE]
    )


def _better(reading: TripReading, dimension: str, wrong: Collection[str]) -> str | None:
    """The column that fits a dimension in most rows, if one does; none that is right where it stands.

    One column may tell both the time and the day.
    """
    best, most = None, 0
    right = {
        reading.columns[d]
        for d in reading.universe.dimensions
        if d not in wrong and {d, dimension} != {"time", "day"}
    }
    others = [c for c in reading.schema.kinds if c and c != reading.columns[dimension] and c not in right][
        :MAX_COLUMNS_TRIED
    ]
    for column in others:
        try:
            tried = look_at(reading, dimension, column)
        except InputError:  # of a type that cannot hold the dimension
            continue
        if tried.counted > most and tried.counted >= MIN_SHARE_EXPLAINED * tried.read:
            best, most = column, tried.counted
    return best


def _persons(reading: TripReading, inspection: Inspection, person: str, stops: str) -> Iterator[Cause]:
    """A column that tells stops, trips or kinds of persons apart is no person's."""
    loads = inspection.loads
    try:
        places = look_at(reading, stops, person)
        if places.counted > places.read / 2:
            cure = "name the column of a card or a person in privacy.unit"
            yield Cause(inspection.read, f"column {person!r}, stated as the person, holds stop ids", cure)
            return
    except InputError:
        pass
    most = MAX_TRIPS_OF_USUAL_DAY if loads is not None and loads.per == "day" else MAX_TRIPS_OF_USUAL_PERSON
    if loads is None or loads.persons < 20:
        if loads is not None and loads.persons and loads.trips / loads.persons > most:
            yield _kinds(person, loads.trips)
        return
    if loads.quantiles[0.99] == 1:
        yield Cause(
            inspection.read,
            f"nearly every value of {person!r} has one trip: it may be the id of a trip, not of a person",
            'name a column that is the same for all trips of a person, or protect a trip: unit = "trip"',
        )
    elif loads.quantiles[0.5] > most:
        yield _kinds(person, loads.trips)


def _kinds(person: str, rows: int) -> Cause:
    return Cause(
        rows,
        f"{person!r} has few values with very many trips each: it may hold kinds of persons, not persons",
        "name the column of a card or a person in privacy.unit",
    )


# Tables of counts: those that are read as trips, and counts that are no whole numbers


MAX_VALUES_READ = 20_000  # different values of a column: wrong ones may be rare
WHOLE_NUMBER = re.compile(r"\s*\+?\d+(\.0*)?\s*")


def unused_counts(reading: TripReading) -> str | None:
    """A column that seems to hold numbers of trips and is not used, by its name alone. Public: no row is looked at.

    With persons, rows are trips: counts name nobody.
    """
    if counting_plan.COUNT_KEY in reading.columns or isinstance(reading.unit, Person):
        return None
    return next((n for n in reading.stated.count_columns if n not in reading.columns.values()), None)


def read_as_trips(column: str) -> Cause:
    """What to say of such a column."""
    return Cause(
        0,
        f"column {column!r} looks like a number of trips, but each row counts as one trip",
        f'write columns = {{ count = "{column}" }} as well as the others',
    )


def table_causes(reading: TripReading, inspection: Inspection) -> Iterator[Cause]:
    column = unused_counts(reading)
    if column is not None:
        yield _tried(reading, inspection, column)
    counts = counts_column(reading)
    for dropped in inspection.dropped:
        if dropped.reason == NOT_A_COUNT and counts is not None:
            read, values = values_in(reading.trips, counts, MAX_VALUES_READ)
            wrong = [pair for pair in values if not WHOLE_NUMBER.fullmatch(pair[0])]
            what = f"column {counts!r} holds counts that are not whole numbers of at least 0, or is empty"
            cure = (
                "write whole numbers without marks (1234, not 1,234 or 1234,0), and 0 where nobody was counted; "
                "rows with suppressed counts (<5, *) cannot be counted"
            )
            empty = read - sum(rows for _, rows in values) if len(values) < MAX_VALUES_READ else 0
            yield Cause(dropped.rows, what, cure, _and_empty(quoted_examples(wrong), empty))


def _and_empty(shown: tuple[str, ...], rows: int) -> tuple[str, ...]:
    return (*shown, f"an empty cell in {number_of(rows, 'row')}") if rows > 0 else shown


def _tried(reading: TripReading, inspection: Inspection, column: str) -> Cause:
    """The columns as they are with the counts beside them; where that counts nothing, as they would be guessed."""
    cause = replace(read_as_trips(column), rows=inspection.read)
    guessed = {r: c for r, c in reading.stated.guessed.items() if r in reading.columns}
    for others in ({}, guessed):
        columns = {**reading.columns, **others, counting_plan.COUNT_KEY: column}
        try:
            tried = look(replace(reading, columns=columns, unit=Trip()))
        except InputError:
            continue
        if tried.counted:
            written = {r: c for r, c in columns.items() if others or r == counting_plan.COUNT_KEY}
            outcome = f"{tried.counted:,} rows then stand for {tried.trips:,} trips"
            listed = ", ".join(f'{role} = "{name}"' for role, name in written.items())
            return replace(
                cause,
                cure=f"write columns = {{ {listed} }}{'' if others else ' as well as the others'}: {outcome}",
            )
    return cause


# Linked taps: how many there are, what became of them, and words that do not say whether a tap is on or off


ROWS_OF_LINKED_TAPS = "rows (a row is a trip, or a tap that is part of none)"  # once taps are linked
MAX_WORDS_READ = (
    200  # different words of a column that are looked at: where there are more, it is another column
)
MAX_QUOTED_WORDS = 8  # words that are quoted
UNLINKED_ONE_IN = (
    5  # one in so many taps, or more, without its other end is a habit of riders and not an accident
)


@dataclass(frozen=True)
class TapWords:
    """What stands in the column of taps: words with their rows."""

    rows: int  # of the file
    on: tuple[tuple[str, int], ...]
    off: tuple[tuple[str, int], ...]
    others: tuple[tuple[str, int], ...]

    @property
    def ons(self) -> int:
        return sum(rows for _, rows in self.on)

    @property
    def offs(self) -> int:
        return sum(rows for _, rows in self.off)

    @property
    def complete(self) -> bool:
        """Whether every row of the file is known by its word, so that taps can be told."""
        return len(self.on) + len(self.off) + len(self.others) < MAX_WORDS_READ


def linked_taps(reading: TripReading) -> LinkedTaps | None:
    """How taps are linked, where rows are taps."""
    by = reading.trips.by if isinstance(reading.trips, Prepared) else None
    return by if isinstance(by, LinkedTaps) else None


def tap_words(reading: TripReading, linked: LinkedTaps) -> TapWords:
    """Read the column of taps."""
    assert isinstance(reading.trips, Prepared)
    rows, words = values_in(reading.trips.trips, linked.action, MAX_WORDS_READ)
    sides: dict[str, list[tuple[str, int]]] = {"on": [], "off": [], "others": []}
    for word, many in words:
        same = word.strip().lower().replace(" ", "_")
        sides["on" if same in linked.on else "off" if same in linked.off else "others"].append((word, many))
    return TapWords(rows, tuple(sides["on"]), tuple(sides["off"]), tuple(sides["others"]))


def read_lines(reading: TripReading, inspection: Inspection, linked: LinkedTaps) -> Iterator[str]:
    """Taps read, trips linked, taps left alone and why, trips that count."""
    words = tap_words(reading, linked)
    taps, rows = words.ons + words.offs, inspection.read
    if not words.complete:
        yield f"{number_of(words.rows, 'row')} read; column {linked.action!r} holds {MAX_WORDS_READ} or more different words"
        return
    others = f" in {number_of(words.rows, 'row')}" if words.rows != taps else ""
    yield f"{number_of(taps, 'tap')} read{others}: {number_of(words.ons, 'tap-on')} and {number_of(words.offs, 'tap-off')}"
    trips = taps - rows
    yield f"{number_of(trips, 'trip')} linked: a tap-on with the next tap-off of the same {linked.person!r}"
    over = taps - rows_of(reading.trips) - trips if reading.unit.per != RELEASE else 0
    if over > 0:
        per = reading.unit.per
        yield (
            f"{number_of(over, 'pair')} of taps not linked, because {'it begins' if over == 1 else 'they begin'} in one {per} and {'ends' if over == 1 else 'end'} in "
            f'another: one {per} of a person is protected on its own (data.day_starts = "04:00" puts the night to the day before)'
        )
    alone = _alone(inspection)
    if untimed(inspection):
        alone = ["their times are not understood"]
    yield f"{number_of(rows - trips, 'tap')} left alone{': ' + ', '.join(alone) if alone else ''}"
    if trips:
        yield f"{inspection.counted:,} of {number_of(trips, 'trip')} counted ({100 * inspection.counted / trips:.1f} %)"


def _alone(inspection: Inspection) -> list[str]:
    missing = {d.column: d.rows for d in inspection.dropped if d.reason == REASONS[MISSING]}
    sides = {"destination": ("tap-on", "tap-off"), "origin": ("tap-off", "tap-on")}
    return [
        f"{number_of(missing[end], this)} without a {other}"
        for end, (this, other) in sides.items()
        if end in missing
    ]


def untimed(inspection: Inspection) -> bool:
    """Whether most taps have no time that is understood: then nothing can be linked, for no other reason."""
    return any(d.reason == REASONS[UNREAD] and 2 * d.rows > inspection.read for d in inspection.dropped)


def tap_causes(reading: TripReading, inspection: Inspection) -> Iterator[Cause]:
    """Words that are not known, and taps that have no other end."""
    linked = linked_taps(reading)
    if linked is None:
        return
    words = tap_words(reading, linked)
    if not words.on or not words.off:
        yield _one_sided(reading, linked, words)
        return
    if words.others and words.complete:
        rows = sum(many for _, many in words.others)
        what = f"{number_of(rows, 'row')} are neither tap-on nor tap-off by what stands in column {linked.action!r}, and are left out"
        cure = 'if some of them are taps, list all words in [data]: taps = { on = ["…", "…"], off = "…" }'
        yield Cause(rows, what, cure, quoted_examples(words.others, MAX_QUOTED_WORDS))
    for dropped in inspection.dropped:
        yield from _untapped(reading, inspection, linked, dropped)


def _one_sided(reading: TripReading, linked: LinkedTaps, words: TapWords) -> Cause:
    """No word is known for a tap-on, or none for a tap-off."""
    missing = " and no ".join(
        name for name, spellings in (("tap-on", words.on), ("tap-off", words.off)) if not spellings
    )
    there = (*words.on, *words.off, *words.others)
    if not words.others:
        what = f"column {linked.action!r} has no {missing}, so no trip can be linked"
        return Cause(words.rows, what, _by_stop(reading), quoted_examples(there, MAX_QUOTED_WORDS))
    what = f"column {linked.action!r} has no {missing} that is known by its word, like on and off, in and out, entry and exit"
    cure = 'say in [data] which words of your file mean what: taps = { on = "…", off = "…" }'
    return Cause(
        words.rows, what, cure, quoted_examples(there, MAX_QUOTED_WORDS), _proposal(reading, linked, there)
    )


def _by_stop(reading: TripReading) -> str:
    """The command that begins anew with counts by stop."""
    stated = reading.stated
    words = ["cbdp", "init", *stated.trips, *(["--stops", stated.stops] if stated.stops else [])]
    return f"count taps by stop instead: {shlex.join([*words, '--count-taps', '--out', 'by-stop.toml'])}"


def _proposal(reading: TripReading, linked: LinkedTaps, words: tuple[tuple[str, int], ...]) -> str:
    """Of two words, the order that links more trips."""
    if len(words) != 2:
        return ""
    (a, _), (b, _) = words
    tried = []
    for on, off in ((a, b), (b, a)):
        same = [word.strip().lower().replace(" ", "_") for word in (on, off)]
        by = replace(linked, on=(same[0],), off=(same[1],))
        assert isinstance(reading.trips, Prepared)
        trial = look(replace(reading, trips=replace(reading.trips, by=by)))
        tried.append((trial.counted, f"taps = {{ on = {toml_text(on)}, off = {toml_text(off)} }}"))
    (most, line), (fewer, _) = sorted(tried, reverse=True)
    return (
        f"{line}: {number_of(most, 'trip')} then count (the other way round {fewer:,})"
        if most > fewer
        else ""
    )


def _untapped(
    reading: TripReading, inspection: Inspection, linked: LinkedTaps, dropped: DroppedRows
) -> Iterator[Cause]:
    """Taps that are not linked; where times cannot be read, that is the cause and this follows from it."""
    ends = {"destination": "tap-off", "origin": "tap-on"}
    if dropped.reason != REASONS[MISSING] or dropped.column not in ends:
        return
    if untimed(inspection):
        return
    other = ends[dropped.column]
    what = f"{number_of(dropped.rows, 'tap')} {'has' if dropped.rows == 1 else 'have'} no {other} of the same {linked.person!r} within {linked.within // 3600} hours"
    if other == "tap-on":
        yield Cause(
            dropped.rows,
            what,
            "they are left out: the tap-on is missing or was before the file begins, or the card tapped off twice",
        )
        return
    cure = "they are left out: the tap-off is missing or was after the file ends, or the card tapped on twice"
    if dropped.rows * UNLINKED_ONE_IN > inspection.read:
        cure = f"they are left out. If riders need not tap off, work out the missing ends of their trips first, or {_by_stop(reading)}"
    yield Cause(dropped.rows, what, cure)


# Times that are not understood: formats are tried on all rows before one is proposed


DAILY_CURE = "leave time out of [universe] and of the tables, and write days instead"
MAX_FORMAT_ROUNDS = 3  # passes over the rows, each for what the formats so far do not understand
TIME_RANGE = re.compile(r"\s*\d{1,2}(:\d\d)?\s*[-–]\s*\d{1,2}(:\d\d)?\s*")
LAST_HOUR = re.compile(r"\s*24(\.0*|:00(:00)?)?\s*")


@dataclass(frozen=True, eq=False)
class Trial:
    """Formats that were tried, and what came of it."""

    formats: tuple[str, ...]
    inspection: Inspection
    unread: int  # rows that are still not understood

    @property
    def written(self) -> str:
        return f"time_format = {toml_text(self.formats)}"

    def dates(self) -> str:
        return (
            ""
            if self.inspection.first is None
            else f": the trips are then from {self.inspection.first} to {self.inspection.last}"
        )


def time_causes(reading: TripReading, inspection: Inspection) -> Iterator[Cause]:
    for dropped in dropped_as(inspection, UNREAD):
        texts = dict(dropped.examples)
        if texts and _timed(reading, dropped) and all(_is_date(text) for text in texts):
            what = f"column {dropped.column!r} holds dates without a time of day"
            cure = f'name the column of times or hours: columns = {{ day = "{dropped.column}", time = … }}; if there is none, {DAILY_CURE}'
        else:
            shapes = ", ".join(dict.fromkeys(shape(text) for text in list(texts)[:3]))
            kind = "times" if _timed(reading, dropped) else "dates"
            what = f"{kind} in column {dropped.column!r} are not understood; they look like {shapes} (9: any digit)"
            cure = _cure(reading, inspection, dropped)
        yield Cause(dropped.rows, what, cure, quoted_examples(dropped.examples))


def _timed(reading: TripReading, dropped: DroppedRows) -> bool:
    """Whether a time of day is asked for."""
    return reading.universe.dimensions[str(dropped.dimension)].edges is not None


def _is_date(text: str) -> bool:
    return any(fits(form, text) for form in DATES)


def _cure(reading: TripReading, inspection: Inspection, dropped: DroppedRows) -> str:
    texts = [text for text, _ in dropped.examples]
    if all(LAST_HOUR.fullmatch(t) for t in texts):
        return (
            "hours run from 0 to 23: write 24 as 0 of the next day, or subtract 1 if your hours count from 1"
        )
    if all(TIME_RANGE.fullmatch(t) for t in texts):
        return "keep the time at which each range begins"
    trials = [_trial(reading, inspection, dropped, day=day) for day in (True, False)]
    tried = [t for t in trials if t is not None and t.unread < dropped.rows]
    if not tried:
        return 'state how they are written, for example time_format = "%d.%m.%Y %H:%M", or write them like 2026-01-31 08:14'
    return _format_advice(tried, "rows" if linked_taps(reading) is None else ROWS_OF_LINKED_TAPS)


def _format_advice(tried: list[Trial], rows: str) -> str:
    best = min(tried, key=lambda t: t.unread)
    others = [t for t in tried if t.formats != best.formats]
    if others and others[0].unread == best.unread:
        both = "; or ".join(f"{t.written}{t.dates()}" for t in (best, others[0]))
        return f"the day or the month may stand first, and both can be read: in [data], write {both}"
    then = f"{best.inspection.counted:,} of {best.inspection.read:,} {rows} then count"
    proof = " (with day and month the other way round, fewer can be read)" if others else ""
    return f"in [data], write {best.written}: {then}{proof}"


def _trial(reading: TripReading, inspection: Inspection, dropped: DroppedRows, *, day: bool) -> Trial | None:
    """Formats for what is not understood, beside those that understand other rows; tried until nothing is left."""
    formats = _kept(reading, inspection, dropped)
    texts, trial = dict(dropped.examples), None
    for _ in range(MAX_FORMAT_ROUNDS):
        more = [f for f in cover(texts, day=day) if f not in formats]
        if not more:
            break
        formats = (*(f for f in formats if swapped(f) not in more or f == swapped(f)), *more)
        tried = look(reading.with_formats(formats))
        left = [d for d in dropped_as(tried, UNREAD) if d.column == dropped.column]
        trial = Trial(formats, tried, sum(d.rows for d in left))
        texts = {text: rows for d in left for text, rows in d.examples}
    return trial


def _kept(reading: TripReading, inspection: Inspection, dropped: DroppedRows) -> tuple[str, ...]:
    """The formats of today, if they understand any row."""
    missing = sum(d.rows for d in dropped_as(inspection, MISSING) if d.column == dropped.column)
    if dropped.rows + missing >= inspection.read:
        return ()
    return reading.formats or (ISO_NAME,)
