"""Values that a dimension does not list, mostly stops: whether they are written otherwise, are names, or are missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from cbdp.app.inspecting.cause import Cause, counted, quoted, toml
from cbdp.app.inspecting.reading import EXAMPLES, TripReading, dropped_as
from cbdp.app.plan.stops import stop_dimensions
from cbdp.trips import Inspection
from cbdp.trips.engines.base import UNKNOWN
from cbdp.trips.inspect import Dropped

FEW = 20  # values that a configuration lists
SHOWN = 8  # values of rows that are quoted

# how ids may differ in writing only: a name for it, and what makes such ids equal
WRITINGS: Mapping[str, Callable[[str], str]] = {
    "spaces around them": str.strip,
    "capitals": lambda text: text.strip().casefold(),
    "leading zeros": lambda text: text.strip().lstrip("0") or "0",
    "a fraction like .0": lambda text: (
        text.strip().removesuffix("0").removesuffix(".") if text.strip().endswith(".0") else text.strip()
    ),
}


def place_causes(reading: TripReading, found: Inspection) -> Iterator[Cause]:
    stops = stop_dimensions(reading.config)
    told = set()
    for dropped in dropped_as(found, UNKNOWN):
        dimension = str(dropped.dimension)
        if dimension in stops and reading.stops is not None:
            cause = _of_stops(reading, found, dropped)
        else:
            cause = _of_values(reading, dropped)
        if (cause.what, cause.cure) not in told:
            told.add((cause.what, cause.cure))
            yield cause


def value_causes(reading: TripReading, found: Inspection) -> Iterator[Cause]:
    """Values of a further dimension that no row holds: for these, noise alone would be published."""
    for name in further(reading):
        empty = [value for value, trips in found.by[name] if not trips]
        if not found.counted or not empty or any(d.dimension == name for d in dropped_as(found, UNKNOWN)):
            continue
        used = [str(value) for value, trips in found.by[name] if trips]
        what = f"no row that counts holds {_some(empty)}, which universe.dimensions lists for {name!r}"
        cure = f"if your file never holds it, write {name} = [{', '.join(map(toml, used))}]: otherwise noise alone is published for it"
        yield Cause(0, what, cure)


def further(reading: TripReading) -> list[str]:
    """The dimensions whose few values the configuration lists."""
    given = reading.config.universe.dimensions
    return [name for name, values in given.items() if isinstance(values, tuple) and len(values) <= FEW]


def _some(values: Sequence[object]) -> str:
    more = f" and {len(values) - 3} more" if len(values) > 3 else ""
    return ", ".join(repr(value) for value in values[:3]) + more


def _of_values(reading: TripReading, dropped: Dropped) -> Cause:
    name, values = str(dropped.dimension), reading.universe.dimensions[str(dropped.dimension)].values
    what = f"column {dropped.column!r} holds values that the dimension {name!r} does not list"
    cure = f"list all that it may hold in universe.dimensions, or name another column; listed are {_some(values)}"
    shown, line = quoted(dropped.examples, SHOWN), ""
    if name in further(reading) and len(dropped.examples) <= SHOWN:
        line = f"{name} = [{', '.join(toml(value) for value, _ in dropped.examples)}], as far as these are all of it"
    return Cause(dropped.rows, what, cure, shown, line)


def _of_stops(reading: TripReading, found: Inspection, dropped: Dropped) -> Cause:
    assert reading.stops is not None
    values = [value for value, _ in dropped.examples]
    labels = {str(v) for v in reading.stops.ids}
    shown = quoted(dropped.examples, 10)
    where = f"column {dropped.column!r}"
    names = set(reading.stops.names) - labels
    if values and sum(v in names for v in values) > len(values) / 2:
        cure = 'name the column of ids, or read stops by their names: stop_columns = { id = "name" }'
        return Cause(dropped.rows, f"{where} holds the names of stops, not their ids", cure, shown)
    for difference, same in WRITINGS.items():
        known = {same(label) for label in labels}
        if values and sum(same(v) in known for v in values) > len(values) / 2:
            what = f"the stop ids in {where} differ from those in the stops file by {difference}"
            return Cause(
                dropped.rows,
                what,
                f"write them alike in {reading.config.data.stops!r} and in the trips",
                shown,
            )
    return replace(_missing(reading, found, dropped), shown=shown)


def _missing(reading: TripReading, found: Inspection, dropped: Dropped) -> Cause:
    assert reading.stops is not None
    ids = len(dropped.examples)
    many = f"at least {ids}" if ids == EXAMPLES else f"{ids}"
    used = sum(trips > 0 for _, trips in found.by[str(dropped.dimension)])
    what = (
        f"{many} stop {'id' if ids == 1 else 'ids'} in column {dropped.column!r} {'is' if ids == 1 else 'are'} "
        f"not in {reading.config.data.stops!r} "
        f"({counted(dropped.rows, 'row')}; of its {len(reading.stops):,} stops {used:,} have trips)"
    )
    columns = toml(str(dropped.column))
    cure = f"add these stops to the file (it must list all stops, used or not), or name the right column instead of {columns}"
    return Cause(dropped.rows, what, cure)
