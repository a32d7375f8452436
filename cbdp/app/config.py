"""The configuration of a release: TOML read into frozen values. Every error names its file and line.

The dataclasses below are the one description of the format: reading, the JSON Schema (`config.schema.json`, written by
`python -m cbdp.app.config`) and the list of what may be misspelt all follow from them.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import difflib
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol, get_origin, get_type_hints

from cbdp.errors import CbdpError, InputError
from cbdp.privacy.budget import positive, probability

Keys = tuple[str | int, ...]

SCHEMA = Path(__file__).with_name("config.schema.json")
EXPORTS = ("csv", "omx", "geojson", "matsim", "sumo", "xarray")
BUDGETS = ("leaves", "balanced", "tables", "uniform", "geometric", "optimal")
MECHANISMS = (
    "constraint-based",
    "laplace",
    "hierarchical",
    "stability-histogram",
    "threshold-laplace",
)


# Where things stand


@dataclass(frozen=True, eq=False)
class Source:
    """The file of a configuration and the line of each of its keys."""

    path: Path
    lines: Mapping[Keys, int] = field(repr=False)

    def line(self, *keys: str | int) -> int:
        """The line of a key; of the nearest table around it that is there, if it is not."""
        while keys and keys not in self.lines:
            keys = keys[:-1]
        return self.lines.get(keys, 1)

    def error(self, keys: Keys, message: str) -> InputError:
        return InputError(f"{self.path}:{self.line(*keys)}: {message}")

    @contextmanager
    def at(self, *keys: str | int) -> Iterator[None]:
        """Give errors of ours the line of this key, unless they have one."""
        try:
            yield
        except CbdpError as error:
            if str(error).startswith(f"{self.path}:"):
                raise
            raise type(error)(f"{self.path}:{self.line(*keys)}: {error}") from None


@dataclass(frozen=True)
class Where:
    """A value's place while it is read."""

    source: Source
    keys: Keys = ()

    def down(self, key: str | int) -> Where:
        return Where(self.source, (*self.keys, key))

    def __str__(self) -> str:
        return ".".join(k for k in self.keys if isinstance(k, str))

    def wrong(self, message: str) -> InputError:
        return self.source.error(self.keys, message)

    def expected(self, value: Any, says: str) -> InputError:
        return self.wrong(f"{self} is {_shown(value)}: give {says}")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list" if value else "an empty list"
    return repr(value) if isinstance(value, str) else str(value)


def did_you_mean(wrong: str, known: list[str]) -> str:
    """A cure for a name that is not known."""
    close = difflib.get_close_matches(wrong, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"


# Kinds of values: how each is read, and what a JSON Schema says of it


class Kind(Protocol):
    """A kind of value: which TOML types it takes, what to call it, how to read it."""

    @property
    def takes(self) -> tuple[type, ...]: ...
    @property
    def says(self) -> str: ...
    def read(self, value: Any, where: Where) -> Any: ...
    def schema(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Text:
    """Text: any, one of some choices, or of a certain form."""

    says: str = "text in quotes"
    choices: tuple[str, ...] = ()
    form: str = ""
    takes: ClassVar[tuple[type, ...]] = (str,)

    def read(self, value: Any, where: Where) -> str:
        if not isinstance(value, str) or not value.strip() or not re.search(self.form, value):
            raise where.expected(value, self.says)
        if self.choices and value not in self.choices:
            raise where.wrong(f"{where} is {value!r}: {did_you_mean(value, list(self.choices))}")
        return value

    def schema(self) -> dict[str, Any]:
        if self.choices:
            return {"enum": list(self.choices)}
        return {"type": "string", "pattern": self.form} if self.form else {"type": "string", "minLength": 1}


@dataclass(frozen=True)
class Whole:
    least: int = 1
    takes: ClassVar[tuple[type, ...]] = (int,)

    @property
    def says(self) -> str:
        return f"a whole number of at least {self.least}"

    def read(self, value: Any, where: Where) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < self.least:
            raise where.expected(value, self.says)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.least}


@dataclass(frozen=True)
class Real:
    """A number above 0, and below a bound if there is one."""

    below: float | None = None
    takes: ClassVar[tuple[type, ...]] = (int, Decimal)

    @property
    def says(self) -> str:
        return "a number above 0" + (f" and below {self.below:g}" if self.below else "")

    def read(self, value: Any, where: Where) -> float:
        number = isinstance(value, int | Decimal) and not isinstance(value, bool)
        if not number or not 0 < float(value) < (self.below or float("inf")):
            raise where.expected(value, self.says)
        return float(value)

    def schema(self) -> dict[str, Any]:
        top = {"exclusiveMaximum": self.below} if self.below else {}
        return {"type": "number", "exclusiveMinimum": 0, **top}


@dataclass(frozen=True)
class Exact:
    """A number taken as it is written: 0.1 is one tenth, and "1/3" a third."""

    check: Callable[..., Fraction] = positive
    says: str = 'a number above 0, or a fraction like "1/3"'
    takes: ClassVar[tuple[type, ...]] = (int, Decimal, str)

    def read(self, value: Any, where: Where) -> Fraction:
        if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
            raise where.expected(value, self.says)
        with where.source.at(*where.keys):
            return self.check(value, str(where))

    def schema(self) -> dict[str, Any]:
        bound = {"exclusiveMinimum": 0} if self.check is positive else {"minimum": 0, "exclusiveMaximum": 1}
        return {"anyOf": [{"type": "number", **bound}, {"type": "string", "minLength": 1}]}


@dataclass(frozen=True)
class Flag:
    says: str = "true or false"
    takes: ClassVar[tuple[type, ...]] = (bool,)

    def read(self, value: Any, where: Where) -> bool:
        if not isinstance(value, bool):
            raise where.expected(value, self.says)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Day:
    """A day, as text or as TOML's own date; kept as ISO text."""

    says: str = 'a day like "2026-03-02"'
    takes: ClassVar[tuple[type, ...]] = (str, dt.date)

    def read(self, value: Any, where: Where) -> str:
        try:
            day = dt.date.fromisoformat(value) if isinstance(value, str) else value
        except ValueError:
            day = None
        if not isinstance(day, dt.date) or isinstance(day, dt.datetime):
            raise where.expected(value, self.says)
        return day.isoformat()

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"}


@dataclass(frozen=True)
class Many:
    """A list that is not empty; with `single`, one value may stand for a list of itself."""

    of: Kind
    single: bool = False

    @property
    def takes(self) -> tuple[type, ...]:
        return (list, *(self.of.takes if self.single else ()))

    @property
    def says(self) -> str:
        return f"{self.of.says}, or a list of such" if self.single else f"a list, each {self.of.says}"

    def read(self, value: Any, where: Where) -> tuple[Any, ...]:
        if self.single and not isinstance(value, list):
            return (self.of.read(value, where),)
        if not isinstance(value, list) or not value:
            raise where.expected(value, self.says)
        return tuple(self.of.read(item, where.down(n)) for n, item in enumerate(value))

    def schema(self) -> dict[str, Any]:
        listed = {"type": "array", "items": self.of.schema(), "minItems": 1}
        return {"anyOf": [self.of.schema(), listed]} if self.single else listed


@dataclass(frozen=True)
class Named:
    """A table whose keys are the user's own."""

    of: Kind
    keys: tuple[str, ...] = ()  # the only ones, where they are not free
    day: bool = False  # keys are days
    takes: ClassVar[tuple[type, ...]] = (dict,)

    @property
    def says(self) -> str:
        return f"a table like {{ name = … }}, each {self.of.says}"

    def read(self, value: Any, where: Where) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise where.expected(value, self.says)
        for key in value:
            if self.keys and key not in self.keys:
                raise where.down(key).wrong(f"{where} has no {key!r}: {did_you_mean(key, list(self.keys))}")
            if self.day:
                Day().read(key, where.down(key))
        return {key: self.of.read(item, where.down(key)) for key, item in value.items()}

    def schema(self) -> dict[str, Any]:
        if self.keys:
            listed = {key: self.of.schema() for key in self.keys}
            return {"type": "object", "properties": listed, "additionalProperties": False}
        names = {"propertyNames": Day().schema()} if self.day else {}
        return {"type": "object", "additionalProperties": self.of.schema(), **names}


@cache
def _fields(cls: type) -> Mapping[str, Setting]:
    """The settings of a dataclass; its annotations are evaluated once, which takes longer than to read a file."""
    hints = get_type_hints(cls, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items() if get_origin(hint) is Annotated}


@dataclass(frozen=True)
class Table:
    """A table whose keys are the fields of a dataclass: exactly one of `ONE_OF`, and what goes `TOGETHER`."""

    cls: type
    takes: ClassVar[tuple[type, ...]] = (dict,)

    @property
    def says(self) -> str:
        return f"a table with {', '.join(self.fields)}"

    @property
    def fields(self) -> Mapping[str, Setting]:
        return _fields(self.cls)

    @property
    def required(self) -> list[str]:
        default = {f.name: (f.default, f.default_factory) for f in dataclasses.fields(self.cls)}
        return [n for n in self.fields if default[n] == (dataclasses.MISSING, dataclasses.MISSING)]

    @property
    def one_of(self) -> tuple[str, ...]:
        return getattr(self.cls, "ONE_OF", ())

    @property
    def together(self) -> Mapping[str, str]:
        return getattr(self.cls, "TOGETHER", {})

    def read(self, value: Any, where: Where, **more: Any) -> Any:
        if not isinstance(value, dict):
            raise where.expected(value, self.says)
        inside = f"[{where}]" if where.keys else "the configuration"
        for key in value:
            if key not in self.fields:
                cure = did_you_mean(key, list(self.fields))
                raise where.down(key).wrong(f"{inside} has no setting {key!r}: {cure}")
        for name in self.required:
            if name not in value:
                says = self.fields[name].kind.says
                raise where.wrong(f"{inside} does not say {name!r}: give {says}")
        self._check_one(value, where)
        read = {n: self.fields[n].kind.read(v, where.down(n)) for n, v in value.items()}
        return self.cls(**read, **more)

    def _check_one(self, value: Mapping[str, Any], where: Where) -> None:
        found = [n for n in self.one_of if n in value]
        if self.one_of and not found:
            raise where.wrong(f"{where} names none of {', '.join(self.one_of)}: choose one")
        if len(found) > 1:
            raise where.down(found[1]).wrong(f"{where} names {' and '.join(found)}: choose one")
        for name, other in self.together.items():
            if name in value and other not in value:
                raise where.down(name).wrong(f"{where} says {name!r}, which goes with {other!r}: add that")

    def schema(self) -> dict[str, Any]:
        properties = {n: {"description": f.about, **f.kind.schema()} for n, f in self.fields.items()}
        made: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        if self.required:
            made["required"] = self.required
        if self.one_of:
            made["oneOf"] = [{"required": [n]} for n in self.one_of]
        if self.together:
            made["dependentRequired"] = {name: [other] for name, other in self.together.items()}
        return made


@dataclass(frozen=True)
class Either:
    """One of several kinds, told apart by the TOML type of the value."""

    kinds: tuple[Kind, ...]

    @property
    def takes(self) -> tuple[type, ...]:
        return tuple(t for kind in self.kinds for t in kind.takes)

    @property
    def says(self) -> str:
        return " or ".join(kind.says for kind in self.kinds)

    def read(self, value: Any, where: Where) -> Any:
        for kind in self.kinds:
            if isinstance(value, kind.takes) and isinstance(value, bool) == (bool in kind.takes):
                return kind.read(value, where)
        raise where.expected(value, self.says)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [kind.schema() for kind in self.kinds]}


@dataclass(frozen=True)
class Setting:
    """What a field of the configuration is: its kind, and a line about it."""

    kind: Kind
    about: str


TIME_OF_DAY = Text('a time of day like "06:30"', form=r"^([01]?\d|2[0-4]):[0-5]\d(:[0-5]\d)?$")


# The configuration


@dataclass(frozen=True)
class Data:
    """The trips and the stops. Paths are relative to the configuration's folder."""

    trips: Annotated[
        tuple[str, ...],
        Setting(
            Many(Text('a path or a URL like "duckdb:///city.db::trips"'), single=True),
            "private trips: Parquet or CSV (a path, a list, a pattern, a folder of Parquet), or URL::table",
        ),
    ]
    id: Annotated[
        str | None,
        Setting(Text(), "the data set's name in the ledger; by default the name of the trips' file or table"),
    ] = None
    columns: Annotated[
        Mapping[str, str],
        Setting(Named(Text()), "dimension (or person) → column of the trips, where the names differ"),
    ] = field(default_factory=dict)
    stops: Annotated[
        str | None, Setting(Text(), "public stops: CSV, GTFS (stops.txt, folder or zip) or GeoJSON points")
    ] = None
    stop_columns: Annotated[
        Mapping[str, str],
        Setting(Named(Text(), keys=("id", "name", "lat", "lon")), "what the stops' columns are called"),
    ] = field(default_factory=dict)
    timezone: Annotated[
        str | None, Setting(Text(), 'the zone time stamps are converted to, like "America/Los_Angeles"')
    ] = None
    time_format: Annotated[
        str | None, Setting(Text(), 'how times are written in text, like "%m/%d/%Y %H:%M"; else ISO')
    ] = None
    holidays: Annotated[
        Mapping[str, str],
        Setting(Named(Text(), day=True), "days that count as another day type: date → type"),
    ] = field(default_factory=dict)
    expected_trips: Annotated[
        int | None,
        Setting(Whole(), "a public order of magnitude of the number of trips, for expected errors"),
    ] = None
    expected_filled: Annotated[
        float | None,
        Setting(Real(below=1), "a public guess of the share of trip types that any trip is of, likewise"),
    ] = None


@dataclass(frozen=True)
class Grid:
    """Periods of equal length."""

    start: Annotated[str, Setting(TIME_OF_DAY, "when the first period begins")]
    end: Annotated[str, Setting(TIME_OF_DAY, "when the last period ends, at most 24:00")]
    every: Annotated[
        str, Setting(Text('a length of time like "30min"', form=r"^\d+(min|h|s)$"), "how long each period is")
    ]


@dataclass(frozen=True)
class Period:
    """A period with a name of its own."""

    name: Annotated[str, Setting(Text(), "what it is called in the release")]
    start: Annotated[str, Setting(TIME_OF_DAY, "when it begins")]
    end: Annotated[str, Setting(TIME_OF_DAY, "when it ends")]


@dataclass(frozen=True)
class Span:
    """Days from a first to a last."""

    first: Annotated[str, Setting(Day(), "the first day")]
    last: Annotated[str, Setting(Day(), "the last day")]


@dataclass(frozen=True)
class Listing:
    """Values of a dimension from a public CSV file."""

    file: Annotated[str, Setting(Text(), "a public CSV file")]
    column: Annotated[str, Setting(Text(), "the column that holds the values, each once")]
    attributes: Annotated[Mapping[str, str], Setting(Named(Text()), "attribute → column that holds it")] = (
        field(default_factory=dict)
    )


@dataclass(frozen=True)
class Zones:
    """How stops are put into zones."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("column", "polygons", "clusters")
    TOGETHER: ClassVar[Mapping[str, str]] = {"label": "polygons"}

    column: Annotated[str | None, Setting(Text(), "by a column of the stops")] = None
    polygons: Annotated[str | None, Setting(Text(), "by the GeoJSON polygons they lie in")] = None
    label: Annotated[str, Setting(Text(), "the property that names a polygon's zone")] = "zone"
    clusters: Annotated[int | None, Setting(Whole(), "by coordinates, into so many compact zones")] = None


@dataclass(frozen=True)
class Modes:
    """How trips are put into modes."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("column", "table", "distance_km")
    TOGETHER: ClassVar[Mapping[str, str]] = {
        "column": "values",
        "values": "column",
        "of": "table",
        "label": "table",
        "otherwise": "table",
    }

    column: Annotated[
        str | None, Setting(Text(), "by a column of the trips, which becomes the dimension `mode`")
    ] = None
    values: Annotated[tuple[str, ...], Setting(Many(Text()), "the modes that column may hold")] = ()
    table: Annotated[str | None, Setting(Text(), "by a public CSV table of pairs")] = None
    of: Annotated[
        tuple[str, ...],
        Setting(
            Many(Text()), 'the attributes the table is keyed by, like ["origin.zone", "destination.zone"]'
        ),
    ] = ("origin", "destination")
    label: Annotated[str, Setting(Text(), "the table's column that holds the mode")] = "mode"
    otherwise: Annotated[str | None, Setting(Text(), "the mode of pairs the table does not list")] = None
    distance_km: Annotated[
        tuple[float, ...], Setting(Many(Real()), "by bands of distance, cut at these kilometres")
    ] = ()


@dataclass(frozen=True)
class UniverseTable:
    """What can be counted."""

    time: Annotated[
        Grid | tuple[Period, ...] | None,
        Setting(
            Either((Table(Grid), Many(Table(Period)))), "periods of the day: a grid, or a list without gaps"
        ),
    ] = None
    days: Annotated[
        Span | tuple[str, ...] | None,
        Setting(
            Either((Table(Span), Many(Text()))),
            'the dimension `day`: first and last, or day types like ["weekday", "saturday", "sunday"]',
        ),
    ] = None
    origin_is_destination: Annotated[
        bool, Setting(Flag(), "whether a trip can end where it began; if not, that is a structural zero")
    ] = True
    zones: Annotated[
        Zones | None, Setting(Table(Zones), "zones of the stops; by default their column `zone`, if any")
    ] = None
    modes: Annotated[Modes | None, Setting(Table(Modes), "modes: the attribute or dimension `mode`")] = None
    dimensions: Annotated[
        Mapping[str, Any],
        Setting(
            Named(
                Either(
                    (Many(Either((Text(), Whole(least=-(2**63))))), Text(choices=("stops",)), Table(Listing))
                )
            ),
            'further dimensions: a list of values, "stops", or a public CSV file',
        ),
    ] = field(default_factory=dict)


@dataclass(frozen=True)
class FeatureTable:
    """A table of counts to be released."""

    name: Annotated[str, Setting(Text(), "its name, also of its file")]
    by: Annotated[tuple[str, ...], Setting(Many(Text(), single=True), "the attributes it groups by")]


@dataclass(frozen=True)
class UnitTable:
    """What is protected, if it is not one trip added or removed."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("person", "trip")
    TOGETHER: ClassVar[Mapping[str, str]] = {"person": "max_trips", "max_trips": "person"}

    person: Annotated[str | None, Setting(Text(), "the column that tells persons apart")] = None
    max_trips: Annotated[
        int | None, Setting(Whole(), "how many trips of each person are counted, chosen at random")
    ] = None
    trip: Annotated[
        str | None, Setting(Text(choices=("add-remove", "replace")), "how neighbouring data sets differ")
    ] = None


@dataclass(frozen=True)
class Privacy:
    """What may be spent, and on what."""

    epsilon: Annotated[Fraction, Setting(Exact(), "ε of the whole release")]
    delta: Annotated[
        Fraction | None,
        Setting(
            Exact(probability, "a number of at least 0 and below 1"),
            "δ of the whole release, for mechanisms that need one",
        ),
    ] = None
    unit: Annotated[
        str | UnitTable, Setting(Either((Text(choices=("trip",)), Table(UnitTable))), "what is protected")
    ] = "trip"
    budget: Annotated[
        str | Mapping[str, Fraction] | None,
        Setting(
            Either((Text(choices=BUDGETS), Named(Exact()))),
            "how ε is shared among the features: by what it serves (leaves, balanced, tables), for a target (optimal), "
            "uniform, geometric, or feature → share",
        ),
    ] = None
    target: Annotated[
        Mapping[str, Fraction] | None,
        Setting(
            Named(Exact()), "feature → how much its error matters: ε is shared for that, from public facts"
        ),
    ] = None
    ledger: Annotated[str, Setting(Text(), "the file that keeps account of what this data set has spent")] = (
        "ledger.sqlite"
    )
    cap: Annotated[
        Fraction | None,
        Setting(
            Exact(),
            "the most ε the data set may ever spend: fixed when the ledger is created; by default epsilon",
        ),
    ] = None
    cap_delta: Annotated[
        Fraction | None,
        Setting(
            Exact(probability, "a number of at least 0 and below 1"),
            "the most δ it may ever spend; by default delta",
        ),
    ] = None


WEIGHTS = Text(choices=("size", "uniform", "inverse-variance"))


@dataclass(frozen=True)
class MechanismTable:
    """How noise is added and what is made of it. Each mechanism has settings of its own."""

    name: Annotated[str, Setting(Text(choices=MECHANISMS), "which mechanism")] = "constraint-based"
    measured: Annotated[
        tuple[str, ...] | None, Setting(Many(Text()), "constraint-based: the features that are measured")
    ] = None
    weights: Annotated[
        str | Mapping[str, Any] | None,
        Setting(
            Either((WEIGHTS, Named(Either((WEIGHTS, Real()))))),
            "constraint-based: how features weigh, with the estimator projection",
        ),
    ] = None
    preset: Annotated[
        str | None,
        Setting(Text(choices=("best", "paper")), "constraint-based: best, or paper: as it was published"),
    ] = None
    estimator: Annotated[
        str | None,
        Setting(
            Text(choices=("posterior", "projection")),
            "constraint-based: expected counts given all noisy answers, or the closest consistent counts",
        ),
    ] = None
    rounding: Annotated[
        str | None,
        Setting(
            Text(choices=("few", "nearest")),
            "constraint-based: whole trips on few trip types, or nearest to the estimate of each",
        ),
    ] = None
    prior: Annotated[
        str | None,
        Setting(
            Text(),
            "constraint-based: a public CSV or Parquet file of weights by stop, or by dimensions: where trips are expected",
        ),
    ] = None
    solver: Annotated[str | None, Setting(Text(), "constraint-based: which solver (see `cbdp solvers`)")] = (
        None
    )
    tolerance: Annotated[
        float | None, Setting(Real(), "constraint-based: how far the certificate may be off")
    ] = None
    law: Annotated[
        str | None, Setting(Text(choices=("rounded", "geometric")), "laplace: the law of the noise")
    ] = None
    levels: Annotated[
        tuple[str, ...] | None, Setting(Many(Text()), "hierarchical: the features of the tree, from the top")
    ] = None
    root: Annotated[bool | None, Setting(Flag(), "hierarchical: whether the total is measured")] = None
    prune: Annotated[
        bool | None, Setting(Flag(), "hierarchical: whether what is below a non-positive node is 0")
    ] = None
    tables: Annotated[
        tuple[str, ...] | None,
        Setting(Many(Text()), "stability-histogram, threshold-laplace: the features that are published"),
    ] = None
    threshold: Annotated[
        int | None, Setting(Whole(), "threshold-laplace: the least count that is published")
    ] = None
    zeros: Annotated[
        str | None, Setting(Text(choices=("skipped", "perturbed")), "threshold-laplace: what zeros get")
    ] = None


@dataclass(frozen=True)
class Output:
    """What is written, and what is worth a warning."""

    path: Annotated[str, Setting(Text(), "the folder of the release; it must not exist yet")] = "release"
    confidence: Annotated[float, Setting(Real(below=1), "of the intervals, at most 0.999")] = 0.9
    export: Annotated[
        tuple[str, ...], Setting(Many(Text(choices=EXPORTS)), "further formats to write the release in")
    ] = ()
    noise_bound: Annotated[
        float, Setting(Real(), "`check` warns of features whose expected relative noise is above this")
    ] = 0.5


@dataclass(frozen=True)
class Config:
    """A configuration as it is written. What it means is `cbdp.app.plan.plan`'s to say."""

    source: Source
    data: Annotated[Data, Setting(Table(Data), "the trips and the stops")]
    privacy: Annotated[Privacy, Setting(Table(Privacy), "what may be spent")]
    universe: Annotated[UniverseTable, Setting(Table(UniverseTable), "what can be counted")] = field(
        default_factory=UniverseTable
    )
    preset: Annotated[str | None, Setting(Text(choices=("odmts", "opal")), "a known set of features")] = None
    feature: Annotated[
        tuple[FeatureTable, ...],
        Setting(Many(Table(FeatureTable)), "the tables to be released, beside the total and the trips"),
    ] = ()
    mechanism: Annotated[MechanismTable, Setting(Table(MechanismTable), "how noise is added")] = field(
        default_factory=MechanismTable
    )
    output: Annotated[Output, Setting(Table(Output), "what is written")] = field(default_factory=Output)

    def path(self, written: str) -> Path:
        """A path in the configuration, from its folder."""
        if "\0" in written:
            raise InputError(f"{written!r} is no path: it holds a zero byte")
        return (self.source.path.parent / written).absolute()


def read(path: str | Path) -> Config:
    """Read a configuration. What is wrong is told in one line that begins with the file and the line number."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"there is no configuration {str(file)!r}: write one with `cbdp init`") from None
    except (OSError, UnicodeDecodeError):
        raise InputError(f"the configuration {str(file)!r} cannot be read: it must be a UTF-8 file") from None
    return parse(text, file)


def parse(text: str, path: str | Path = "cbdp.toml") -> Config:
    """As `read`, of a text that stands for the file at this path."""
    file = Path(path)
    text = text.replace("\r\n", "\n")
    try:
        found = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as wrong:
        what, line = _syntax(str(wrong), text)
        raise InputError(f"{file}:{line}: this is not TOML: {what}") from None
    source = Source(file, key_lines(text))
    config: Config = Table(Config).read(found, Where(source), source=source)
    return config


def _syntax(message: str, text: str) -> tuple[str, int]:
    """What tomllib complains of, and the line: it states one, or the end of the document."""
    what, _, place = message.rpartition(" (at ")
    number = re.match(r"line (\d+)", place)
    said = re.sub(r"\s+", " ", what or message)
    return said[0].lower() + said[1:], int(number[1]) if number else text.rstrip("\n").count("\n") + 1


def schema() -> dict[str, Any]:
    """The JSON Schema of a configuration."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "cbdp configuration",
        "description": Config.__doc__,
        **Table(Config).schema(),
    }


# The lines of keys. `tomllib` does the parsing and keeps no positions, so this walks over text it has found sound.

STRINGS = (r'"""(?:\\.|[^\\])*?"{3,5}', r"'''.*?'{3,5}", r'"(?:\\.|[^"\\])*"', r"'[^']*'")
STRING = re.compile("|".join(STRINGS), re.DOTALL)
BLANK = re.compile(r"(?:\s|#[^\n]*)*")
BARE = re.compile(r"[A-Za-z0-9_-]+")
SCALAR = re.compile(r"[^,\]}#\n]+")


def key_lines(text: str) -> dict[Keys, int]:
    r"""The line of every key and list item of a sound TOML text, by its path.

    >>> key_lines("a = 1\n[b]\nc = [1,\n  {d = 2}]\n[[e]]\n")[("b", "c", 1, "d")]
    4
    """
    return _Walk(text).lines


class _Walk:
    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.lines: dict[Keys, int] = {}
        self._items: dict[Keys, int] = {}  # arrays of tables: the number of the last item
        base: Keys = ()
        while self._next():
            if self._next() == "[":
                base = self._header()
            else:
                self._pair(base)

    def _next(self) -> str:
        """The next character that says something; empty at the end."""
        self.place = BLANK.match(self.text, self.place).end()  # type: ignore[union-attr]
        return self.text[self.place : self.place + 1]

    def _line(self) -> int:
        return self.text.count("\n", 0, self.place) + 1

    def _header(self) -> Keys:
        double, line = self.text.startswith("[[", self.place), self._line()
        self.place += 2 if double else 1
        written = self._key()
        self.place += 2 if double else 1
        base: Keys = ()
        for number, key in enumerate(written, 1):
            base = (*base, key)
            self.lines.setdefault(base, line)
            if double and number == len(written):
                self._items[base] = self._items.get(base, -1) + 1
            if base in self._items:
                base = (*base, self._items[base])
                self.lines.setdefault(base, line)
        if not double:
            self.lines[base] = line  # its own header, not that of a table inside it
        return base

    def _key(self) -> list[str]:
        """A dotted key; ends at what follows it."""
        parts = []
        while True:
            quoted = self._next() in "\"'"
            found = (STRING if quoted else BARE).match(self.text, self.place)
            assert found is not None, "tomllib has read this text"
            parts.append(tomllib.loads(f"k = {found[0]}")["k"] if quoted else found[0])
            self.place = found.end()
            if self._next() != ".":
                return parts
            self.place += 1

    def _pair(self, base: Keys) -> None:
        line = self._line()
        for key in self._key():
            base = (*base, key)
            self.lines.setdefault(base, line)
        self.place += 1  # the equals sign
        self._value(base)

    def _value(self, keys: Keys) -> None:
        first = self._next()
        if first in "[{":
            self._inside(keys, "]" if first == "[" else "}")
            return
        found = (STRING if first in "\"'" else SCALAR).match(self.text, self.place)
        assert found is not None, "tomllib has read this text"
        self.place = found.end()

    def _inside(self, keys: Keys, close: str) -> None:
        self.place += 1
        number = 0
        while self._next() != close:
            if self._next() == ",":
                self.place += 1
                continue
            if close == "}":
                self._pair(keys)
            else:
                self.lines.setdefault((*keys, number), self._line())
                self._value((*keys, number))
                number += 1
        self.place += 1


if __name__ == "__main__":
    SCHEMA.write_text(json.dumps(schema(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
