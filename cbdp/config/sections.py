"""What a configuration may say: one frozen dataclass for each of its tables.

These are the one description of the format: reading, the JSON Schema and the list of what may be misspelt follow from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from cbdp.config.values import (
    Day,
    Either,
    Exact,
    Fields,
    Flag,
    Many,
    Named,
    Option,
    PartName,
    Real,
    Text,
    TomlFile,
    ValueKind,
    Where,
    Whole,
)
from cbdp.errors import InputError
from cbdp.numbers import probability
from cbdp.parts import Parts, Setting, did_you_mean, settings_of, table_of
from cbdp.privacy.continual import STRATEGIES
from cbdp.privacy.unit import PERIODS

if TYPE_CHECKING:
    from cbdp.release.export import Format

# Parts that a configuration chooses from. Each table is imported when it is used, for some are slow to load


UNKNOWN_COLUMN = "?"  # what `cbdp init` writes where it cannot guess a column


def mechanism_parts() -> Parts[Any]:
    return table_of("mechanisms")


def budget_parts() -> Parts[object]:
    from cbdp.privacy.budget import BUDGETS

    return BUDGETS


def noise_parts() -> Parts[object]:
    """Those that noise can be drawn of."""
    return table_of("samplers")


def format_parts() -> Parts[Format]:
    from cbdp.release.export import FORMATS

    return FORMATS


def preset_parts() -> Parts[object]:
    return table_of("presets")


def weight_rules() -> tuple[str, ...]:
    from cbdp.estimation.compiler import WEIGHTS

    return WEIGHTS


# [privacy] and privacy.unit


CAP_KEYS = ("total", "per_day", "per_7_days", "per_30_days", "per_year")


@dataclass(frozen=True)
class PrivateQuantileSection:
    """A public max_trips that is found in the trips and paid for, by `cbdp choose`."""

    quantile: Annotated[
        Fraction,
        Option(
            Exact(probability, "a number above 0 and below 1"), "the share of persons that shall lose no trip"
        ),
    ]
    epsilon: Annotated[Fraction, Option(Exact(), "what is paid for it, of the ε of the release")]


@dataclass(frozen=True)
class UnitSection:
    """What is protected, if it is not one trip added or removed."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("person", "trip")
    NEEDS: ClassVar[Mapping[str, str]] = {
        "person": "max_trips",
        "max_trips": "person",
        "per": "person",
        "apart": "person",
    }

    person: Annotated[str | None, Option(Text(), "the column that tells persons apart")] = None
    max_trips: Annotated[
        int | PrivateQuantileSection | None,
        Option(
            Either((Whole(), Fields(PrivateQuantileSection))),
            "how many trips of each person are counted, chosen at random; or the quantile that `cbdp choose` buys",
        ),
    ] = None
    per: Annotated[
        str | None,
        Option(
            Text(choices=PERIODS),
            "in which period a person's trips are protected together, and at most max_trips counted; by default the release",
        ),
    ] = None
    apart: Annotated[
        str | None,
        Option(
            Text(),
            'a dimension, like "time": at most one trip of a person is counted in each of its values (of each day)',
        ),
    ] = None
    trip: Annotated[
        str | None, Option(Text(choices=("add-remove", "replace")), "how neighbouring data sets differ")
    ] = None


@dataclass(frozen=True)
class PrivacySection:
    """What may be spent, and on what."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("epsilon", "rho")

    epsilon: Annotated[Fraction | None, Option(Exact(), "ε of the whole release")] = None
    rho: Annotated[
        Fraction | None,
        Option(Exact(), 'ρ of the whole release (zero-concentrated privacy), with law = "gaussian"'),
    ] = None
    delta: Annotated[
        Fraction | None,
        Option(
            Exact(probability, "a number of at least 0 and below 1"),
            "δ of the whole release: for mechanisms that skip zeros, and for the law gaussian, where ρ follows from ε and δ; with rho, the δ "
            "at which it is stated, by default 1e-6",
        ),
    ] = None
    law: Annotated[
        str | None,
        Option(
            PartName(noise_parts),
            "the law of the noise: geometric (pure ε, the default) or gaussian (ρ; better where a person's trips are kept apart)",
        ),
    ] = None
    unit: Annotated[
        str | UnitSection, Option(Either((Text(choices=("trip",)), Fields(UnitSection))), "what is protected")
    ] = "trip"
    budget: Annotated[
        str | Mapping[str, Fraction] | None,
        Option(
            Either((PartName(budget_parts), Named(Exact()))),
            "how ε is shared among the features: by name (see `cbdp parts budgets`), or feature → share",
        ),
    ] = None
    target: Annotated[
        Mapping[str, Fraction] | None,
        Option(
            Named(Exact()), "feature → how much its error matters: ε is shared for that, from public facts"
        ),
    ] = None
    public: Annotated[
        str | Mapping[str, int | str] | None,
        Option(
            Either(
                (
                    Text('a file, or a table like { total = 37714, zone = "zones.csv" }'),
                    Named(Either((Whole(0), Text("a file")))),
                ),
            ),
            "counts that are public already: feature → count or file, or one CSV or Parquet file by a feature's attributes with a column count",
        ),
    ] = None
    ledger: Annotated[str, Option(Text(), "the file that keeps account of what this data set has spent")] = (
        "ledger.sqlite"
    )
    currency: Annotated[
        str | None,
        Option(
            Text(choices=("epsilon", "rho")),
            "what the ledger counts: ε, or ρ (then ε is charged as ε²/2); fixed when it is created; by default what the law costs",
        ),
    ] = None
    cap: Annotated[
        Fraction | Mapping[str, Fraction] | None,
        Option(
            Either((Exact(), Named(Exact(), keys=CAP_KEYS))),
            "the most the data set may ever spend, or a table: total, and for one person per_day, per_7_days, per_30_days, "
            "per_year; fixed when the ledger is created; by default epsilon",
        ),
    ] = None
    cap_delta: Annotated[
        Fraction | None,
        Option(
            Exact(probability, "a number of at least 0 and below 1"),
            "the most δ it may ever spend; by default delta",
        ),
    ] = None


# [series]


STAGES = ("preliminary", "final")

SERIES_NAME = Text(
    "a name of letters, digits, spaces, hyphens and underscores, at most 100",
    form=r"^[\w][\w .-]{0,99}(?![\s\S])",
)


@dataclass(frozen=True)
class DayRange:
    """Days from a first to a last."""

    first: Annotated[str, Option(Day(), "the first day")]
    last: Annotated[str, Option(Day(), "the last day")]


@dataclass(frozen=True)
class RunningSection:
    """Running totals of some tables, to which the published periods add up."""

    tables: Annotated[tuple[str, ...], Option(Many(Text()), "the features whose running totals are measured")]
    share: Annotated[
        Fraction,
        Option(
            Exact(),
            "what a whole span costs for one period of the unit, in units of what each release spends on the same table",
        ),
    ] = Fraction(1)
    periods: Annotated[
        int | None,
        Option(
            Whole(),
            "how many releases a span has; then a new one begins, and is charged. By default those of a year: 365 days, 52 weeks or 12 months",
        ),
    ] = None
    strategy: Annotated[
        str | None,
        Option(
            Text(choices=tuple(STRATEGIES)),
            "which sums of releases are measured; by default the square root with Gaussian noise, else the binary tree",
        ),
    ] = None


@dataclass(frozen=True)
class SeriesSection:
    """A release for every period of a calendar, from one universe and one set of features."""

    NEEDS: ClassVar[Mapping[str, str]] = {"shares": "final_after", "final_after": "shares"}

    calendar: Annotated[
        str, Option(Text(choices=("daily", "weekly", "monthly")), "how long the period of each release is")
    ]
    start: Annotated[str, Option(Day(), "the first service day of the first period")]
    end: Annotated[str | None, Option(Day(), "the last service day of the last period; by default none")] = (
        None
    )
    name: Annotated[
        str,
        Option(
            SERIES_NAME,
            "what the ledger knows the series by: several series of one ledger have several names",
        ),
    ] = "series"
    version: Annotated[
        int, Option(Whole(), "raise it by 1 when the universe or the features change, say by a new stop")
    ] = 1
    renamed: Annotated[
        Mapping[str, str] | None,
        Option(
            Named(Text("a file")),
            "version → CSV file with the columns old and new: stops that have another name from that version on",
        ),
    ] = None
    gaps: Annotated[
        tuple[str | DayRange, ...],
        Option(
            Many(Either((Day(), Fields(DayRange)))),
            "days without a release, each a day or { first, last }; of weekly and monthly releases whole periods",
        ),
    ] = ()
    revise: Annotated[
        str,
        Option(
            Text(choices=("never", "once")),
            '"never": rows that come after a release are in none; "once": a preliminary and a final release of every period',
        ),
    ] = "never"
    shares: Annotated[
        Mapping[str, Fraction] | None,
        Option(
            Named(Exact(), keys=STAGES),
            'with revise = "once": how epsilon is divided between the two; they add up to 1',
        ),
    ] = None
    final_after: Annotated[
        int | None,
        Option(
            Whole(), 'with revise = "once": how many days after the end of a period its final release is due'
        ),
    ] = None
    earlier: Annotated[
        int,
        Option(
            Whole(),
            "how many earlier releases of the series the next one learns from: free, for they are published; by default none",
        ),
    ] = 0
    running: Annotated[
        RunningSection | None,
        Option(
            Fields(RunningSection),
            "running totals of some tables: weeks, months and years that are far more precise than days added up",
        ),
    ] = None


# [mechanism]: a mechanism's name, and the settings that its class declares with `cbdp.parts.setting`


DEFAULT_MECHANISM = "constraint-based"


@dataclass(frozen=True)
class MechanismSection:
    """How noise is added and what is made of it. Each mechanism has settings of its own."""

    name: str = DEFAULT_MECHANISM
    settings: Mapping[str, Any] = field(default_factory=dict)  # only those that are written


@dataclass(frozen=True)
class MechanismFields:
    """The table [mechanism]. What it may hold depends on the mechanism it names."""

    parts: Callable[[], Parts[Any]] = mechanism_parts
    says: str = "a table with the name of a mechanism and its settings"
    takes: ClassVar[tuple[type, ...]] = (dict,)

    def read(self, value: object, where: Where) -> MechanismSection:
        if not isinstance(value, dict):
            raise where.expected(value, self.says)
        name = PartName(self.parts).read(value.get("name", DEFAULT_MECHANISM), where.down("name"))
        with where.source.at(*where.keys, "name"):
            options = options_of(self.parts().get(name))
        written = {key: item for key, item in value.items() if key != "name"}
        for key in written:
            if key not in options:
                other = did_you_mean(key, list(options)) if options else "it has none"
                cure = where.down(key).stray() or other
                raise where.down(key).wrong(f"{name} has no setting {key!r}: {cure}")
        read = {key: options[key].kind.read(item, where.down(key)) for key, item in written.items()}
        return MechanismSection(name, read)

    def schema(self) -> dict[str, object]:
        """The settings of all our mechanisms. One that is named as package.module:attribute may have others."""
        name = {"description": "which mechanism", **PartName(self.parts).schema()}
        properties = {"name": name, **self._settings()}
        ours = {"properties": {"name": {"enum": list(self.parts().table)}}}
        return {
            "type": "object",
            "properties": properties,
            "if": ours,
            "then": {"propertyNames": {"enum": list(properties)}},
        }

    def _settings(self) -> dict[str, object]:
        """Every setting of ours, with the mechanisms that have it."""
        by_setting: dict[str, dict[str, Option]] = {}
        for name in self.parts().table:
            for key, option in options_of(self.parts().get(name)).items():
                by_setting.setdefault(key, {})[name] = option
        return {key: _merged_schema(options) for key, options in by_setting.items()}


def _merged_schema(options: Mapping[str, Option]) -> dict[str, object]:
    """The schema of a setting that several mechanisms may have."""
    abouts: dict[str, list[str]] = {}
    for name, option in options.items():
        abouts.setdefault(option.about, []).append(name)
    description = "; ".join(f"{', '.join(names)}: {about}" for about, names in abouts.items())
    kinds = [option.kind.schema() for option in options.values()]
    distinct = [kind for n, kind in enumerate(kinds) if kind not in kinds[:n]]
    return {"description": description, **(distinct[0] if len(distinct) == 1 else {"anyOf": distinct})}


def options_of(mechanism: type) -> dict[str, Option]:
    """What a configuration may say of a mechanism."""
    declared = settings_of(mechanism)
    return {
        name: Option(_value_kind(mechanism, name, setting), setting.about)
        for name, setting in declared.items()
    }


def _value_kind(mechanism: type, name: str, setting: Setting) -> ValueKind:
    text, rule = _text_or_part(setting.choices), Text(choices=weight_rules())
    kinds: dict[str, ValueKind] = {
        "text": text,
        "whole": Whole(),
        "real": Real(),
        "flag": Flag(),
        "names": Many(Text("the name of a feature")),
        "weights": Either((rule, Named(Either((rule, Real()))))),
        "file": Text("the path of a public file"),
    }
    if setting.kind not in kinds:
        raise InputError(
            f"{mechanism.__name__} declares the setting {name!r} of kind {setting.kind!r}: use one of {', '.join(kinds)}"
        )
    return kinds[setting.kind]


def _text_or_part(chosen: tuple[str, ...] | Parts[object] | None) -> Text | PartName:
    if isinstance(chosen, Parts):
        return PartName(lambda: chosen)
    return Text(choices=tuple(chosen or ()))


# [data], [universe], [[feature]], [about], [output], and the whole


TIME_OF_DAY = Text('a time of day like "06:30"', form=r"^([01]?\d|2[0-4]):[0-5]\d(:[0-5]\d)?$")

# ends where the text does: in Python `$` would let a line end through
ONE_LINE_TEXT = Text(
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
            Text(
                'a public name for this data set, for example id = "city buses 2026-03"',
                form=ONE_LINE_TEXT.form,
            ),
            "the data set's name in the ledger and in the manifest; other trips get another name",
        ),
    ]
    riders: Annotated[
        str | None,
        Option(
            ONE_LINE_TEXT,
            "a public name of the people who ride, where several data sets hold their trips: they share one ledger and cap",
        ),
    ] = None
    preset: Annotated[
        str | None,
        Option(
            PartName(preset_parts),
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
        Mapping[str, tuple[str | int, ...] | Literal["stops"] | ListingFile],
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

    title: Annotated[str | None, Option(ONE_LINE_TEXT, "what the release is called")] = None
    place: Annotated[str | None, Option(ONE_LINE_TEXT, "where the trips were made")] = None
    period: Annotated[
        str | DaySpan | None,
        Option(
            Either((ONE_LINE_TEXT, Fields(DaySpan))),
            'when: text like "March 2026", or the first and last day',
        ),
    ] = None
    publisher: Annotated[str | None, Option(ONE_LINE_TEXT, "who publishes it")] = None
    licence: Annotated[str | None, Option(ONE_LINE_TEXT, 'on which terms, for example "CC BY 4.0"')] = None
    contact: Annotated[str | None, Option(ONE_LINE_TEXT, "whom to ask")] = None
    timezone: Annotated[
        str | None, Option(ONE_LINE_TEXT, "the time zone of its times; by default data.timezone")
    ] = None


@dataclass(frozen=True)
class OutputSection:
    """What is written, and what is worth a warning."""

    path: Annotated[str, Option(Text(), "the folder of the release; it must not exist yet")] = "release"
    confidence: Annotated[float, Option(Real(below=1), "of the intervals, at most 0.999")] = 0.9
    export: Annotated[
        tuple[str, ...],
        Option(
            Many(PartName(format_parts)),
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
