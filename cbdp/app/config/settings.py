"""What a configuration may say: one frozen dataclass for each of its tables.

These are the one description of the format: reading, the JSON Schema and the list of what may be misspelt follow from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from cbdp.app.config import choices
from cbdp.app.config.kinds import (
    Day,
    Either,
    Fields,
    Flag,
    Many,
    Named,
    Option,
    PartName,
    Real,
    Text,
    Whole,
)
from cbdp.app.config.mechanism import MechanismFields, MechanismSection
from cbdp.app.config.positions import TomlFile
from cbdp.app.config.privacy import PrivacySection
from cbdp.app.config.series import SeriesSection
from cbdp.errors import InputError

TIME_OF_DAY = Text('a time of day like "06:30"', form=r"^([01]?\d|2[0-4]):[0-5]\d(:[0-5]\d)?$")

# ends where the text does: in Python `$` would let a line end through
LINE = Text(
    "a line of at most 200 characters in quotes",
    form="^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]{1,200}(?![\\s\\S])",
)


@dataclass(frozen=True)
class DataSection:
    """The trips and the stops. Paths are relative to the configuration's folder."""

    trips: Annotated[
        tuple[str, ...],
        Option(
            Many(Text('a path or a URL like "duckdb:///city.db::trips"'), single=True),
            "private trips: Parquet or CSV (a path, a list, a pattern, a folder of Parquet), or URL::table",
        ),
    ]
    id: Annotated[
        str,
        Option(
            Text('a public name for this data set, for example id = "city buses 2026-03"', form=LINE.form),
            "the data set's name in the ledger and in the manifest; other trips get another name",
        ),
    ]
    riders: Annotated[
        str | None,
        Option(
            LINE,
            "a public name of the people who ride, where several data sets hold their trips: they share one ledger and cap",
        ),
    ] = None
    preset: Annotated[
        str | None,
        Option(
            PartName(choices.presets),
            "the specification that the trips follow (see `cbdp parts presets`): it names columns and time formats",
        ),
    ] = None
    columns: Annotated[
        Mapping[str, str],
        Option(
            Named(Text()),
            "dimension → column of the trips, where the names differ; also person, and count for tables of counts",
        ),
    ] = field(default_factory=dict)
    stops: Annotated[
        str | None, Option(Text(), "public stops: CSV, GTFS (stops.txt, folder or zip) or GeoJSON points")
    ] = None
    stop_columns: Annotated[
        Mapping[str, str],
        Option(Named(Text(), keys=("id", "name", "lat", "lon")), "what the stops' columns are called"),
    ] = field(default_factory=dict)
    timezone: Annotated[
        str | None, Option(Text(), 'the zone time stamps are converted to, like "America/Los_Angeles"')
    ] = None
    time_format: Annotated[
        tuple[str, ...],
        Option(
            Many(Text('a format like "%m/%d/%Y %H:%M", "epoch_s" or "iso"'), single=True),
            'how times are written, if not as in ISO 8601: "%m/%d/%Y %H:%M", "epoch_s", "epoch_ms", or a list of formats',
        ),
    ] = ()
    taps: Annotated[
        Mapping[str, tuple[str, ...]],
        Option(
            Named(Many(Text(), single=True), keys=("on", "off")),
            'how tap-ons and tap-offs are written, where a preset links them: taps = { on = "1", off = "2" }',
        ),
    ] = field(default_factory=dict)
    holidays: Annotated[
        Mapping[str, str],
        Option(Named(Text(), day=True), "days that count as another day type: date → type"),
    ] = field(default_factory=dict)
    day_starts: Annotated[
        str | None,
        Option(
            TIME_OF_DAY,
            'when the service day starts, like "04:00": a trip at 01:30 belongs to the day before',
        ),
    ] = None
    expected_trips: Annotated[
        int | None,
        Option(
            Whole(),
            "roughly how many trips one release has, a public round number: for expected errors, and a release of many more or fewer stops before its charge",
        ),
    ] = None
    expected_filled: Annotated[
        float | None,
        Option(Real(below=1), "a public guess of the share of trip types that have any trips, likewise"),
    ] = None


@dataclass(frozen=True)
class TimeGrid:
    """Periods of equal length."""

    start: Annotated[str, Option(TIME_OF_DAY, "when the first period begins")]
    end: Annotated[str, Option(TIME_OF_DAY, "when the last period ends, at most 24:00")]
    every: Annotated[
        str, Option(Text('a length of time like "30min"', form=r"^\d+(min|h|s)$"), "how long each period is")
    ]


@dataclass(frozen=True)
class NamedPeriod:
    """A period with a name of its own."""

    name: Annotated[str, Option(Text(), "what it is called in the release")]
    start: Annotated[str, Option(TIME_OF_DAY, "when it begins")]
    end: Annotated[str, Option(TIME_OF_DAY, "when it ends")]


@dataclass(frozen=True)
class DaySpan:
    """Days from a first to a last."""

    first: Annotated[str, Option(Day(), "the first day")]
    last: Annotated[str, Option(Day(), "the last day")]


@dataclass(frozen=True)
class ListingFile:
    """Values of a dimension from a public CSV file."""

    file: Annotated[str, Option(Text(), "a public CSV file")]
    column: Annotated[str, Option(Text(), "the column that holds the values, each once")]
    attributes: Annotated[Mapping[str, str], Option(Named(Text()), "attribute → column that holds it")] = (
        field(default_factory=dict)
    )


@dataclass(frozen=True)
class ZonesSection:
    """How stops are put into zones."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("column", "polygons", "balanced", "clusters")
    NEEDS: ClassVar[Mapping[str, str]] = {"label": "polygons"}

    column: Annotated[str | None, Option(Text(), "by a column of the stops")] = None
    polygons: Annotated[str | None, Option(Text(), "by the GeoJSON polygons they lie in")] = None
    label: Annotated[str, Option(Text(), "the property that names a polygon's zone")] = "zone"
    balanced: Annotated[
        int | None, Option(Whole(), "by coordinates, into so many zones with equally many stops in each")
    ] = None
    clusters: Annotated[
        int | None,
        Option(Whole(), "by coordinates, into so many compact zones, with more stops in some than in others"),
    ] = None


@dataclass(frozen=True)
class ModesSection:
    """How trips are put into modes."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("column", "table", "distance_km")
    NEEDS: ClassVar[Mapping[str, str]] = {
        "column": "values",
        "values": "column",
        "of": "table",
        "label": "table",
        "otherwise": "table",
    }

    column: Annotated[
        str | None, Option(Text(), "by a column of the trips, which becomes the dimension `mode`")
    ] = None
    values: Annotated[tuple[str, ...], Option(Many(Text()), "the modes that column may hold")] = ()
    table: Annotated[str | None, Option(Text(), "by a public CSV table of pairs")] = None
    of: Annotated[
        tuple[str, ...],
        Option(
            Many(Text()), 'the attributes the table is keyed by, like ["origin.zone", "destination.zone"]'
        ),
    ] = ("origin", "destination")
    label: Annotated[str, Option(Text(), "the table's column that holds the mode")] = "mode"
    otherwise: Annotated[str | None, Option(Text(), "the mode of pairs the table does not list")] = None
    distance_km: Annotated[
        tuple[float, ...], Option(Many(Real()), "by bands of distance, cut at these kilometres")
    ] = ()


@dataclass(frozen=True)
class UniverseSection:
    """What can be counted."""

    time: Annotated[
        TimeGrid | tuple[NamedPeriod, ...] | None,
        Option(
            Either((Fields(TimeGrid), Many(Fields(NamedPeriod)))),
            "periods of the day: a grid, or a list without gaps",
        ),
    ] = None
    days: Annotated[
        DaySpan | tuple[str, ...] | None,
        Option(
            Either((Fields(DaySpan), Many(Text()))),
            'the dimension `day`: first and last, or day types like ["weekday", "saturday", "sunday"]',
        ),
    ] = None
    origin_is_destination: Annotated[
        bool, Option(Flag(), "whether a trip can end where it began; if not, that is a structural zero")
    ] = True
    zones: Annotated[
        ZonesSection | None,
        Option(Fields(ZonesSection), "zones of the stops; by default their column `zone`, if any"),
    ] = None
    modes: Annotated[
        ModesSection | None, Option(Fields(ModesSection), "modes: the attribute or dimension `mode`")
    ] = None
    dimensions: Annotated[
        Mapping[str, Any],
        Option(
            Named(
                Either(
                    (
                        Many(Either((Text(), Whole(least=-(2**63))))),
                        Text(choices=("stops",)),
                        Fields(ListingFile),
                    )
                )
            ),
            'further dimensions: a list of values, "stops", or a public CSV file',
        ),
    ] = field(default_factory=dict)


@dataclass(frozen=True)
class FeatureSection:
    """A table of counts to be released."""

    name: Annotated[str, Option(Text(), "its name, also of its file")]
    by: Annotated[tuple[str, ...], Option(Many(Text(), single=True), "the attributes it groups by")]


@dataclass(frozen=True)
class AboutSection:
    """What the publisher says about the release; public, and shown wherever it is."""

    title: Annotated[str | None, Option(LINE, "what the release is called")] = None
    place: Annotated[str | None, Option(LINE, "where the trips were made")] = None
    period: Annotated[
        str | DaySpan | None,
        Option(Either((LINE, Fields(DaySpan))), 'when: text like "March 2026", or the first and last day'),
    ] = None
    publisher: Annotated[str | None, Option(LINE, "who publishes it")] = None
    licence: Annotated[str | None, Option(LINE, 'on which terms, for example "CC BY 4.0"')] = None
    contact: Annotated[str | None, Option(LINE, "whom to ask")] = None
    timezone: Annotated[str | None, Option(LINE, "the time zone of its times; by default data.timezone")] = (
        None
    )


@dataclass(frozen=True)
class OutputSection:
    """What is written, and what is worth a warning."""

    path: Annotated[str, Option(Text(), "the folder of the release; it must not exist yet")] = "release"
    confidence: Annotated[float, Option(Real(below=1), "of the intervals, at most 0.999")] = 0.9
    export: Annotated[
        tuple[str, ...],
        Option(
            Many(PartName(choices.formats)),
            "further formats to write the release in (see `cbdp parts formats`)",
        ),
    ] = ()
    noise_bound: Annotated[
        float, Option(Real(), "`check` warns of tables whose average count may be off by more than this part")
    ] = 0.5


@dataclass(frozen=True)
class Config:
    """A configuration as it is written. `cbdp.app.plan.plan` says what it means."""

    source: TomlFile
    data: Annotated[DataSection, Option(Fields(DataSection), "the trips and the stops")]
    privacy: Annotated[PrivacySection, Option(Fields(PrivacySection), "what may be spent")]
    universe: Annotated[UniverseSection, Option(Fields(UniverseSection), "what can be counted")] = field(
        default_factory=UniverseSection
    )
    preset: Annotated[
        str | None,
        Option(
            Text(choices=("odmts", "opal")),
            "a known set of features: odmts (origin, destination, time) or opal (taps); days and further dimensions get tables of their own",
        ),
    ] = None
    feature: Annotated[
        tuple[FeatureSection, ...],
        Option(
            Many(Fields(FeatureSection)),
            "further tables to be released, in addition to the total and the trips",
        ),
    ] = ()
    mechanism: Annotated[MechanismSection, Option(MechanismFields(), "how noise is added")] = field(
        default_factory=MechanismSection
    )
    output: Annotated[OutputSection, Option(Fields(OutputSection), "what is written")] = field(
        default_factory=OutputSection
    )
    series: Annotated[
        SeriesSection | None,
        Option(Fields(SeriesSection), "a release for every day, week or month, made by `cbdp series run`"),
    ] = None
    about: Annotated[
        AboutSection | None, Option(Fields(AboutSection), "title, place, period, publisher and the like")
    ] = None

    def path(self, written: str) -> Path:
        """A path in the configuration, from its folder."""
        if "\0" in written:
            raise InputError(f"{written!r} is not a path: it contains a zero byte")
        return (self.source.path.parent / written).absolute()
