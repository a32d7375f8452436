"""`cbdp inspect`: how trips are read, what of them counts, and why the rest does not. Private: for the curator's eyes only.

`cbdp.counting.reading` looks at the rows, `cbdp.counting.diagnosis` proposes what is wrong with them, and `cbdp.counting.plausibility` decides by the same rules
whether a release goes on. Here they are told what the configuration states, and what they say is written for the curator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cbdp.app.plan import Plan
from cbdp.app.trips import columns_of, inputs_of, schema_of, unit_of
from cbdp.config import Config
from cbdp.config.guessing import count_like, guess_columns, guess_stops
from cbdp.counting import Counts, Schema
from cbdp.counting import schema_of as opened
from cbdp.counting.diagnosis import ROWS_OF_LINKED_TAPS, causes_of, linked_taps
from cbdp.counting.plausibility import NOTHING_ACCEPTED, Accepted, Section, judge, schema_warnings, sections
from cbdp.counting.reading import Stated, TripReading, look
from cbdp.errors import InputError
from cbdp.features import Universe
from cbdp.forecast.calendar import config_of_slot, first_slot
from cbdp.forecast.inputs import stop_dimensions
from cbdp.release.views import counted_noun
from cbdp.report.rendering import render
from cbdp.text import INTERNAL_WARNING

# What a configuration states of the trips


def reading_of(config: Config) -> TripReading:
    """How a configuration reads trips; what is wrong with it is one line with its place. Ledger and output have no part in it."""
    one = config if config.series is None else config_of_slot(config, first_slot(config))
    inputs = inputs_of(config, schema_of(one))
    trips, universe = inputs.trips, inputs.universe
    unit = unit_of(config, trips, universe)
    columns = columns_of(universe, trips, unit)
    stated = stated_of(config, universe, trips.source)
    return TripReading(stated, trips.trips, trips.source, universe, columns, unit, trips.clock, inputs.stops)


def reading_of_plan(plan: Plan) -> TripReading:
    schema = plan.schema or opened(plan.trips)
    stated = stated_of(plan.config, plan.universe, schema)
    return TripReading(
        stated, plan.trips, schema, plan.universe, plan.columns, plan.unit, plan.clock, plan.stops
    )


def stated_of(config: Config, universe: Universe, schema: Schema) -> Stated:
    return Stated(
        file=config.source.path,
        trips=config.data.trips,
        stops=config.data.stops,
        columns=config.data.columns,
        stop_dimensions=stop_dimensions(config),
        listed=tuple(n for n, values in config.universe.dimensions.items() if isinstance(values, tuple)),
        expected_trips=config.data.expected_trips,
        calendar=None if config.series is None else config.series.calendar,
        noun=counted_noun(universe),
        guessed=guess_columns(schema),
        count_columns=tuple(n for n, kind in schema.kinds.items() if count_like(n, kind)),
        city_zone=lambda: _city_zone(config),
    )


def guessed_person(schema: Schema | None) -> str | None:
    """The column that may tell persons apart, by its name."""
    return None if schema is None else guess_columns(schema).get("person")


def warnings_of_schema(plan: Plan) -> Iterator[str]:
    """What of the trips' columns deserves a warning, by their names and types. Public: no row is looked at."""
    return iter(()) if plan.schema is None else schema_warnings(reading_of_plan(plan))


def _city_zone(config: Config) -> str | None:
    """The zone that the agency's own GTFS feed states, if the stops are one."""
    if config.data.stops is None:
        return None
    path = config.path(config.data.stops)
    if path.suffix.lower() not in (".txt", ".zip") and not path.is_dir():
        return None
    try:
        return guess_stops(path).timezone
    except InputError:
        return None


def judged(
    say: Callable[[str], None], accepted: Accepted = NOTHING_ACCEPTED
) -> Callable[[Plan, Counts], None]:
    """The judge of a release; what is `accepted` stops nothing."""
    return lambda plan, counts: judge(say, reading_of_plan(plan), counts, accepted)


# What the curator reads


def as_text(parts: Sequence[Section]) -> str:
    """Under the mark, and ended by it."""
    lines = [INTERNAL_WARNING, ""]
    for section in parts:
        lines += [section.title, *(f"  {line}".rstrip() for line in section.lines), ""]
    return "\n".join([*lines, INTERNAL_WARNING])


def as_page(parts: Sequence[Section]) -> str:
    return render("app/inspection.html.jinja", internal=True, sections=parts)


def all_sections(config: Config) -> list[Section]:
    """What `cbdp inspect` shows of a configuration's trips, closed periods of a series included."""
    reading = reading_of(config)
    inspection = look(reading)
    parts = sections(reading, inspection, causes_of(reading, inspection))
    if config.series is not None:
        from cbdp.app.series import closed_periods, lines_of

        closed = lines_of(
            closed_periods(config, reading), "rows" if linked_taps(reading) is None else ROWS_OF_LINKED_TAPS
        )
        parts.append(Section("Closed periods of the series", tuple(closed)))
    return parts
