"""The trips of a plan: their schema, columns, clock, unit of privacy and whereabouts, and no row.

The one place of planning that knows how trips are opened.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from cbdp.app.presets import PRESETS, PresetColumns
from cbdp.app.presets import apply_preset as settled_by_preset
from cbdp.config import Config, UnitSection
from cbdp.config.sections import UNKNOWN_COLUMN, PrivateQuantileSection
from cbdp.counting import Clock, Schema, columns, files
from cbdp.counting import plan as counting_plan
from cbdp.counting import schema_of as opened
from cbdp.counting.columns import BOOLEAN, DATE, NULLS, REAL, STAMP, TEXT, TIME, UNREADABLE, WHOLE, kind_of
from cbdp.counting.linking import LinkedTaps, Preparation, Prepared
from cbdp.counting.plan import moves_days
from cbdp.counting.reading import TripSource
from cbdp.errors import CbdpError, InputError
from cbdp.features import Universe
from cbdp.forecast.inputs import PLACES, holidays
from cbdp.ledger import Charge, ChargeScope, Ledger
from cbdp.parts import did_you_mean
from cbdp.privacy.unit import MAX_TRIPS_CANDIDATES, RELEASE, Person, PrivateQuantile, Trip, Unit
from cbdp.release.files import read_manifest
from cbdp.release.layout import universe_hash
from cbdp.release.series import RUNNING_TOTALS
from cbdp_features.calendar import day_dimension

UNUSED_ROLE_CURES = {  # where a role is stated and has no use
    "time": "state universe.time",
    "action": 'to link tap-ons with tap-offs, write preset = "taps" in [data], with columns for person, time, stop and action',
}
TripPlaces = str | list[str]  # a path, a pattern, a URL, or several paths


@dataclass(frozen=True)
class TripSchema:
    """What is known of the trips before any row is read."""

    trips: TripSource
    columns: Mapping[str, str]  # dimension → column, where the names differ
    clock: Clock
    source: Schema  # columns and their types

    def column(self, dimension: str) -> str:
        return self.columns.get(dimension, dimension)

    def numbers(self, dimensions: Sequence[str]) -> bool:
        """Whether the trips hold numbers for these dimensions."""
        import pyarrow as pa

        columns = [self.column(name) for name in dimensions]
        kinds = [self.source.kinds[c] for c in columns if c in self.source.kinds]
        return bool(kinds) and all(pa.types.is_integer(k) or pa.types.is_floating(k) for k in kinds)


def schema_of(config: Config) -> TripSchema:
    raw = _trip_places(config)
    with config.source.at("data", "trips"):
        source = opened(raw)
    settled = _columns_and_formats(config, source)
    trips: TripSource = raw
    if settled.preparation is not None:
        trips, source = _prepared(config, raw, settled)
    return TripSchema(trips, _columns(config, settled.columns), _clock(config, settled.formats), source)


def _columns_and_formats(config: Config, source: Schema) -> PresetColumns:
    """Columns and time formats as they are stated, and as the preset has them."""
    data = config.data
    if data.preset is None:
        return _with_tap_words(config, PresetColumns(data.columns, data.time_format))
    _clock(config, data.time_format)
    with config.source.at("data", "preset"):
        settled = settled_by_preset(PRESETS.get(data.preset), source.kinds, data.columns, data.time_format)
    return _with_tap_words(config, settled)


def _with_tap_words(config: Config, settled: PresetColumns) -> PresetColumns:
    """With the words of tap-ons and tap-offs that are stated, in the place of those of the preset."""
    taps, linked = config.data.taps, settled.preparation
    if not taps:
        return settled
    if not isinstance(linked, LinkedTaps):
        raise config.source.error(
            ("data", "taps"),
            'data.taps says how taps are written, and no preset links taps with each other: leave it out, or write preset = "taps"',
        )
    on, off = (tuple(map(_as_compared, taps.get(side, ()))) for side in ("on", "off"))
    if not on or not off or set(on) & set(off):
        raise config.source.error(
            ("data", "taps"), 'data.taps needs different words for both: taps = { on = "1", off = "2" }'
        )
    return replace(settled, preparation=replace(linked, on=on, off=off))


def _as_compared(word: str) -> str:
    """Small letters, and no spaces but as underscores."""
    return word.strip().lower().replace(" ", "_")


def _prepared(config: Config, raw: TripPlaces, settled: PresetColumns) -> tuple[Prepared, Schema]:
    assert isinstance(settled.preparation, Preparation)
    if isinstance(raw, str) and "://" in raw and not raw.startswith("duckdb://"):
        raise config.source.error(
            ("data", "preset"),
            f"the preset {config.data.preset!r} makes trips of rows in DuckDB: export the rows to Parquet, or make the "
            "trips in your database and leave the preset out",
        )
    prepared = Prepared(raw, settled.preparation)
    with config.source.at("data", "columns"):
        return prepared, opened(prepared)


def is_text(kind: Any) -> bool:
    """Whether a column of this type holds text."""
    return columns.is_text(columns.plain_kind(kind))


def _trip_places(config: Config) -> TripPlaces:
    """Where the trips are, seen from the configuration's folder."""
    located = [_located(config, written) for written in config.data.trips]
    for path in located:
        if located.count(path) > 1:
            raise config.source.error(
                ("data", "trips"), f"{path!r} is listed twice: its trips would be counted twice"
            )
    if len(located) > 1 and any("://" in written for written in located):
        raise config.source.error(
            ("data", "trips"), "data.trips lists a URL together with others: give the URL alone"
        )
    return located[0] if len(located) == 1 else located


def _located(config: Config, written: str) -> str:
    """A path from the configuration's folder; a database as its URL says."""
    scheme, mark, place = written.partition("://")
    if not mark:
        return str(config.path(written))
    if scheme != "duckdb":
        return written
    file, _, table = place.rpartition("::")
    inside = config.path(file.lstrip("/"))
    return f"duckdb://{inside}::{table}" if file and not Path(file).is_file() else written


def _clock(config: Config, formats: Sequence[str]) -> Clock:
    stated = formats[0] if len(formats) == 1 else tuple(formats) or None
    with config.source.at("data", "time_format"):
        Clock(format=stated)
    starts = config.data.day_starts or Clock().day_starts
    with config.source.at("data", "day_starts"):
        Clock(day_starts=starts)
    with config.source.at("data", "timezone"):
        return Clock(config.data.timezone, stated, holidays(config), starts)


def _columns(config: Config, stated: Mapping[str, str]) -> dict[str, str]:
    """Dimension → column, as stated and as follows from it."""
    columns = dict(stated)
    columns.setdefault("day", columns.get("time", "time"))
    if config.universe.modes and config.universe.modes.column:
        columns["mode"] = config.universe.modes.column
    return columns


def check_names(config: Config, universe: Universe, trips: TripSchema) -> None:
    """Whether what is written in data.columns makes sense."""
    roles = [] if config.data.preset is None else list(PRESETS.get(config.data.preset).columns)
    names = list(
        dict.fromkeys([*universe.dimensions, counting_plan.PERSON_KEY, counting_plan.COUNT_KEY, *roles])
    )
    for name, column in config.data.columns.items():
        if column == UNKNOWN_COLUMN:
            raise config.source.error(
                ("data", "columns", name),
                f"the column of {name!r} is still {UNKNOWN_COLUMN!r}: write the name of the column in the trips that holds it",
            )
        if name not in names and name != "day":  # a date is no mistake where no day is counted
            cure = UNUSED_ROLE_CURES.get(name) or did_you_mean(name, names)
            raise config.source.error(
                ("data", "columns", name), f"data.columns names {name!r}, which is not a dimension: {cure}"
            )
    if len({trips.column(p) for p in PLACES}) == 1 and set(PLACES) <= set(universe.dimensions):
        raise config.source.error(
            ("data", "columns", "destination"),
            "origin and destination are the same column: give each its own",
        )


def check_columns(config: Config, universe: Universe, trips: TripSchema) -> None:
    """Whether every column is there and of a type that can mean the dimension, by the schema alone."""
    source = trips.source
    for name, dimension in universe.dimensions.items():
        column = trips.column(name)
        with config.source.at(*_keys(config, name)):
            counting_plan.check_dimension(source, column, dimension, trips.clock)
    for name in (counting_plan.PERSON_KEY, counting_plan.COUNT_KEY):
        if name in config.data.columns:
            with config.source.at("data", "columns", name):
                columns.check_column(source, trips.column(name))
    if not (isinstance(trips.trips, str) and "://" in trips.trips):
        with config.source.at("data", "trips"):
            opened(trips.trips, list(columns_of(universe, trips).values()))  # compares all files' schemas


def columns_of(universe: Universe, trips: TripSchema, unit: Unit | None = None) -> dict[str, str]:
    """What `cbdp.count` is told of the columns: the dimensions', the day's where persons are bounded by it, and the column of counts where there is one."""
    named = {name: trips.column(name) for name in universe.dimensions}
    if unit is not None and unit.per != RELEASE:
        named.setdefault(counting_plan.DAY_KEY, trips.column(counting_plan.DAY_KEY))
    counts = counting_plan.weight_column(trips.columns, universe)
    return named if counts is None else {**named, counting_plan.COUNT_KEY: counts}


def _keys(config: Config, name: str) -> tuple[str, ...]:
    """Where the column of a dimension is written."""
    if name == "mode" and config.universe.modes and config.universe.modes.column:
        return ("universe", "modes", "column")
    written = name if name in config.data.columns or name != "day" else "time"
    return ("data", "columns", written)


def unit_of(config: Config, trips: TripSchema, universe: Universe) -> Unit:
    """What is protected; a person's column must be there."""
    unit = _unit(config, trips, universe)
    counts = counting_plan.weight_column(trips.columns, universe)
    if counts is not None:
        with config.source.at("data", "columns", counting_plan.COUNT_KEY):
            counting_plan.check_weight(trips.source, counts, unit)
    return unit


def _unit(config: Config, trips: TripSchema, universe: Universe) -> Unit:
    section = config.privacy.unit
    if not isinstance(section, UnitSection):
        return Trip()
    if section.trip is not None:
        return Trip(section.trip)
    assert section.person is not None
    with config.source.at("privacy", "unit", "person"):
        column = counting_plan.person_column(section.person, trips.columns, universe)
        columns.check_person(trips.source, column)
    purchase = requested_quantile(config)
    most = MAX_TRIPS_UNTIL_BOUGHT if purchase is not None else section.max_trips
    assert isinstance(most, int)
    unit = Person(column, most, section.per or RELEASE, section.apart, purchase)
    for key in ("per", "apart"):
        if getattr(section, key) is not None:
            with config.source.at("privacy", "unit", key):
                counting_plan.check_unit(
                    trips.source, universe, columns_of(universe, trips, unit), unit, trips.clock, key
                )
    return with_bought_max_trips(config, universe, columns_of(universe, trips, unit), trips.clock, unit)


# A max_trips that is bought (`cbdp choose`): a charge of its own, whose ε is part of the release's


MAX_TRIPS_UNTIL_BOUGHT = 10  # trips of a person that `cbdp check` goes by until max_trips is bought


def requested_quantile(config: Config) -> PrivateQuantile | None:
    """The purchase that a configuration asks for."""
    unit = config.privacy.unit
    max_trips = unit.max_trips if isinstance(unit, UnitSection) else None
    if not isinstance(max_trips, PrivateQuantileSection):
        return None
    with config.source.at("privacy", "unit", "max_trips"):
        return PrivateQuantile(max_trips.quantile, max_trips.epsilon)


def refuse_in_series(config: Config) -> None:
    """A series has one max_trips for all its releases, and most of their rows are still to come."""
    if config.series is not None and requested_quantile(config) is not None:
        raise config.source.error(
            ("privacy", "unit", "max_trips"),
            "a series states its max_trips before its rows are there: buy it with the trips of a past period, by `cbdp choose` with a "
            "configuration without [series] that names the same ledger, and write the number here",
        )


def request_of_choice(
    config: Config, universe: Universe, columns: Mapping[str, str], clock: Clock, unit: Person
) -> str:
    """A hash of all that is public and decides what is bought."""
    assert unit.bought is not None
    needed = {*universe.dimensions, *(["day"] if unit.per != RELEASE else [])}
    stated = {
        "dataset": config.data.id,
        "columns": {name: column for name, column in columns.items() if name in needed},
        "clock": [repr(clock)],
        "universe": universe_hash(universe),
        "person": [unit.column, unit.per, unit.apart, day_dimension(universe.dimensions)],
        "quantile": str(unit.bought.quantile),
        "epsilon": str(unit.bought.epsilon),
    }
    text = json.dumps(stated, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"max_trips:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def place_of_choice(config: Config, request: str) -> Path:
    """The public file that says what was bought, beside the ledger."""
    ledger = config.path(config.privacy.ledger)
    return ledger.with_name(f"{ledger.stem}-max_trips-{request.partition(':')[2][:16]}.json")


def bought_max_trips(config: Config, request: str) -> int | None:
    """What was bought before; None: nothing yet. A file that is not the ledger's is refused."""
    ledger = config.path(config.privacy.ledger)
    if not (ledger.parent.is_dir() and Ledger.started(ledger)):
        return None
    with Ledger.view(ledger) as view:
        done = view.finished(request)
    if done is None:
        return None
    place = Path(done.path)
    text = place.read_bytes() if place.is_file() else b""
    if hashlib.sha256(text).hexdigest() != done.sha256:
        raise config.source.error(
            ("privacy", "unit", "max_trips"),
            f"max_trips was bought, and {str(place)!r} is not what was written then: restore it",
        )
    return max_trips_in(json.loads(text))


def max_trips_in(stated: Mapping[str, Any]) -> int:
    most = stated["max_trips"]
    if most not in MAX_TRIPS_CANDIDATES:
        raise InputError(f"max_trips is {most!r}, which is no candidate: restore the file")
    return int(most)


def with_bought_max_trips(
    config: Config, universe: Universe, columns: Mapping[str, str], clock: Clock, unit: Person
) -> Person:
    """The unit with the max_trips that was bought, or with a guess."""
    if unit.bought is None:
        return unit
    most = bought_max_trips(config, request_of_choice(config, universe, columns, clock, unit))
    return unit if most is None else replace(unit, max_trips=most)


def is_unbought(
    config: Config, universe: Universe, columns: Mapping[str, str], clock: Clock, unit: Unit
) -> bool:
    """Whether the unit's max_trips is a guess, because nothing was bought yet."""
    if not isinstance(unit, Person) or unit.bought is None:
        return False
    return bought_max_trips(config, request_of_choice(config, universe, columns, clock, unit)) is None


def after_purchase(config: Config, unit: Unit) -> Config:
    """The configuration with what is left for the tables; the ledger's cap stays that of the whole."""
    if not isinstance(unit, Person) or unit.bought is None:
        return config
    privacy, paid = config.privacy, unit.bought.epsilon
    whole = privacy.epsilon if privacy.rho is None else privacy.rho
    assert whole is not None
    left = whole - (paid if privacy.rho is None else paid**2 / 2)
    if left <= 0:
        raise config.source.error(
            ("privacy", "unit", "max_trips"),
            f"max_trips costs ε = {paid}, and the release has no more than that: pay less, or spend more",
        )
    cap: Any = privacy.cap if privacy.cap is not None else whole
    spends: dict[str, Any] = {"epsilon": left} if privacy.rho is None else {"rho": left}
    return replace(config, privacy=replace(privacy, cap=cap, **spends))


# Service days: whether all releases of a ledger give rows a day alike
#
# A ledger adds up by service day what releases cost one person. If one series' days begin at midnight and another's at four, what a person does on one day
# of the first lies on two days of the second, and costs more there than the ledger says. So releases of near days must read days alike.


MAX_DAY_SHIFT = dt.timedelta(days=3)  # no zone and no start of a day moves a trip further
AS_WRITTEN = "as they are written"
ZONED, ZONELESS = "time stamps that have a zone", "time stamps without a zone"
TEXT_TIMES, TEXT_DATES = f"{TEXT} that is dates with times", f"{TEXT} that is dates alone"
COLUMN_KINDS = (
    TEXT_TIMES,
    TEXT_DATES,
    ZONED,
    ZONELESS,
    TEXT,
    DATE,
    TIME,
    WHOLE,
    REAL,
    BOOLEAN,
    NULLS,
    UNREADABLE,
)
_READING = re.compile(
    rf"of column (.*?)(?: with ({'|'.join(COLUMN_KINDS)}))?, times ([^,]*), days from ([^,]*) on", re.DOTALL
)


@dataclass(frozen=True)
class DayReading:
    """How rows are given a service day: by which column, of which kind, in which zone, from which time on.

    >>> text = "of column 'at' with dates, times as they are written, days from 04:00 on"
    >>> DayReading.of(text).kind, str(DayReading.of(text)) == text
    ('dates', True)
    """

    column: str  # with the written forms of its times
    kind: str  # one of KINDS; "" in what versions up to 0.2 wrote
    zone: str
    starts: str

    def __str__(self) -> str:
        kind = f" with {self.kind}" if self.kind else ""
        return f"of column {self.column}{kind}, times {self.zone}, days from {self.starts} on"

    @classmethod
    def of(cls, text: str) -> DayReading | None:
        match = _READING.fullmatch(text)
        return None if match is None else cls(match[1], match[2] or "", match[3], match[4])

    def agrees(self, before: DayReading) -> bool:
        """Whether no trip can have one day here and another there, as far as both say it.

        What earlier versions wrote names no kind, and no zone that the column has by its type.
        """
        if (self.column, self.starts) != (before.column, before.starts):
            return False
        if NULLS in (self.kind, before.kind):  # no row has a day
            return self.zone == before.zone or AS_WRITTEN in (self.zone, before.zone)
        if before.kind:
            return (self.kind, self.zone) == (before.kind, before.zone)
        typed = before.zone == AS_WRITTEN and self.kind == ZONED
        texts = self.kind.startswith(TEXT) and {self.zone, before.zone} == {AS_WRITTEN, "UTC"}  # read alike
        return self.zone == before.zone or typed or texts


def service_days(
    columns: Mapping[str, str],
    universe: Universe,
    clock: Clock,
    schema: Schema | None,
    *,
    pinned: bool = False,
) -> str:
    """In words: which column, what it holds, in which zone (as stated, or as the column's type has it), from which time on.

    In a series (`pinned`), texts are read as dates or as times where these could be on different days.
    """
    column = counting_plan.dated_column(columns, universe)
    kind = kind_of(schema.kinds[column]) if schema is not None and column in schema.kinds else None
    form = "" if clock.format is None else f" ({clock.format})"
    name = "" if kind is None else ZONED if kind.zone else ZONELESS if kind.name == STAMP else kind.name
    if name == TEXT and pinned and moves_days(clock):
        name = TEXT_TIMES if counting_plan.is_timed(column, columns, universe) else TEXT_DATES
    typed = None if kind is None else kind.zone
    return str(DayReading(f"{column!r}{form}", name, clock.timezone or typed or AS_WRITTEN, clock.day_starts))


def check_alike(config: Config, covers: ChargeScope, path: Path) -> None:
    """Refuse a release whose days are read in another way than those of other releases near it, before a row is read."""
    if not covers.days or not path.parent.is_dir() or not Ledger.started(path):
        return
    series = None if config.series is None else config.series.name
    with Ledger.view(path) as ledger:
        for charge in ledger.charges():
            same = (
                charge.part is not None and charge.part.series == series and charge.dataset == config.data.id
            )
            if same or not _near(charge, covers):  # a series by itself: `cbdp.app.series.continuity`
                continue
            before = read_as(charge, ledger)
            if before and not alike(before, covers.days, same_data=charge.dataset == config.data.id):
                raise _refusal(config, charge, before, covers.days)


def _near(charge: Charge, covers: ChargeScope) -> bool:
    other = charge.covers
    if other is None or (charge.part and charge.part.stage == RUNNING_TOTALS):
        return False
    if other.first is None or other.last is None or covers.first is None or covers.last is None:
        return True  # it may be about any day
    return other.first <= covers.last + MAX_DAY_SHIFT and covers.first <= other.last + MAX_DAY_SHIFT


def read_as(charge: Charge, ledger: Ledger) -> str:
    """As the charge states it; of those that earlier versions made, as the release does, if it can be read."""
    stated, done = "" if charge.covers is None else charge.covers.days, ledger.finished(charge.request)
    if stated or done is None:
        return stated
    try:
        manifest = read_manifest(Path(done.path))
        return manifest["series"].get("days", "") if "series" in manifest else ""
    except CbdpError:
        return ""


def alike(before: str, now: str, *, same_data: bool = True) -> bool:
    """Of the same trips everything is read alike. Other trips have columns of their own; their zone is compared where both state one."""
    one, two = DayReading.of(before), DayReading.of(now)
    if before == now or one is None or two is None:
        return before == now
    if same_data:
        return two.agrees(one)
    return one.starts == two.starts and (one.zone == two.zone or AS_WRITTEN in (one.zone, two.zone))


def _refusal(config: Config, charge: Charge, before: str, now: str) -> InputError:
    whose = f"the series {charge.part.series!r}" if charge.part else "another release"
    return config.source.error(
        ("data",),
        f"the ledger also holds {whose} of near days, which reads a trip's day {before}, and here it is read {now}: one day of a person would "
        "lie on two days there, and cost more than the ledger says. Write the same data.timezone, data.day_starts and column of the day in both, or "
        "leave three days between them",
    )


# The source: February's file under January's name is another one
#
# Files count by their real path, size and time of change, tables by URL and name. Whether a table of a server has other rows than it had cannot be seen
# from outside: there the data set's id must tell.


FILE_DATABASES = ("duckdb", "sqlite")
DATABASE_LOGS = ("", ".wal", "-wal")  # a database's file, and what was written and not yet moved into it
SECRET_OPTION = re.compile("pass|pwd|secret|token|key|user|uid|auth|credential", re.IGNORECASE)


def source_hash(trips: str | list[str] | Prepared) -> str:
    """A hash of where the trips are and in what state. It tells nobody a path, a user or a password."""
    raw = trips.trips if isinstance(trips, Prepared) else trips
    text = json.dumps(_source(raw), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _source(trips: str | list[str]) -> Any:
    if files.are_files(trips):
        return {"files": sorted(_state(path) for path in files.find_files(trips).paths)}
    assert isinstance(trips, str)
    place, _, table = trips.rpartition("::")
    scheme, _, rest = place.partition("://")
    if scheme in FILE_DATABASES:
        here = [Path(f"{rest}{log}") for log in DATABASE_LOGS]
        return {"table": table, "files": [_state(path) for path in here if path.is_file()]}
    return {"table": table, "url": _open_part(place)}


def _state(path: Path) -> tuple[str, int, int]:
    who = files.file_identity(path)
    return str(path.resolve()), who.size, who.modified


def _open_part(url: str) -> list[Any]:
    """A URL without user, password and tokens: those may change, and are nobody's business.

    >>> _open_part("postgres://me:secret@host:5432/city?schema=may&password=x")
    ['postgres', 'host:5432', '/city', [('schema', 'may')]]
    """
    parts = urlsplit(url)
    path, *options = parts.path.split(";")  # as Spark Connect has them
    kept = [option for option in options if not SECRET_OPTION.search(option.partition("=")[0])]
    asked = sorted(pair for pair in parse_qsl(parts.query) if not SECRET_OPTION.search(pair[0]))
    return [parts.scheme, parts.netloc.rpartition("@")[2], ";".join([path, *kept]), asked]
