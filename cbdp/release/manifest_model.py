"""The manifest as types: what each section may hold, and within which bounds.

These types are the one description of the format. Code that reads or writes manifests is checked against them (mypy), a received manifest
is validated by them (pydantic), and `manifest.schema.json`, which is published, is generated from them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, NotRequired, cast

from pydantic import (
    AfterValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationError,
    with_config,
)
from typing_extensions import TypeAliasType, TypedDict

from cbdp.untrusted import JSON, MAX_WHOLE_NUMBER

SCHEMA = Path(__file__).with_name("manifest.schema.json")
SIMULATION = "simulation, not a release"
TEXT_END = r"(?![\s\S])"  # in Python `$` would let a line end through
FRACTION = r"[0-9]{1,1000}(/[0-9]{0,999}[1-9][0-9]{0,999})?" + TEXT_END
MAX_NUMBER_CHARACTERS = 2100  # of a fraction that is written as text
MAX_SENSITIVITY = 2_000_000_000
MAX_PERIODS = 4096  # of a span of running totals
SETTINGS_STATED_ELSEWHERE = ("features", "epsilon", "unit")
PACKAGES = ("cbdp", "numpy", "pyarrow", "python")  # whose versions are always stated

closed = with_config(ConfigDict(extra="forbid", strict=True, regex_engine="python-re"))

# Texts and numbers

Sha256 = Annotated[str, Field(pattern=f"^[0-9a-f]{{64}}{TEXT_END}")]
Date = Annotated[str, Field(pattern=f"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}{TEXT_END}")]
Line = Annotated[str, Field(min_length=1, max_length=200)]
Name = Annotated[str, Field(min_length=1, max_length=1000)]
NotEmpty = Annotated[str, Field(min_length=1)]
PlainNumber = float | Annotated[str, Field(max_length=MAX_NUMBER_CHARACTERS)]
Size = Annotated[int, Field(ge=0)]
FilePath = Annotated[
    str,
    Field(
        max_length=400,
        pattern=r"^[^/\\.:\u0000-\u001f\u007f][^/\\:\u0000-\u001f\u007f]*"
        r"(/[^/\\.:\u0000-\u001f\u007f][^/\\:\u0000-\u001f\u007f]*)?" + TEXT_END,
        description="A file of the release: in its folder, or in a folder of that.",
    ),
]
PartName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        description="The name of an installed part. It is looked up among those, and never loaded because a file names it.",
    ),
]
LabelKind = Annotated[
    Literal["text", "integer", "number", "boolean", "bytes", "date", "moment", "time", "encoded"],
    Field(description="How labels are written; 'encoded' is JSON text."),
]
Rows = Literal["all", "listed"]


@closed
class ExactJson(TypedDict):
    """An exact number of at least 0, and a decimal near it; without the fraction, the decimal is the number."""

    exact: Annotated[str, Field(pattern=f"^{FRACTION}")] | None
    decimal: Annotated[float, Field(ge=0, le=1e30)]


@closed
class Scale(TypedDict):
    """An exact number above 0, and a decimal near it; without the fraction, the decimal is the number."""

    exact: Annotated[str, Field(pattern=f"^(?=[0-9]*[1-9]){FRACTION}")] | None
    decimal: Annotated[float, Field(gt=0, le=1e30)]


@closed
class Numbers(TypedDict):
    """Numbers that are not repeated here: how many, and the hash of them."""

    numbers: Size
    sha256: Sha256


# What the publisher says, and the series


@closed
class Days(TypedDict):
    """The first and the last day."""

    first: Date
    last: Date


@closed
class AboutJson(TypedDict, total=False):
    """What the publisher says about the release."""

    title: Line
    place: Line
    period: Line | Days
    publisher: Line
    licence: Line
    contact: Line
    timezone: Line


@closed
class SeriesJson(TypedDict):
    """The place of the release in a series: one universe and one set of features in each version, one release for each period, or two
    where it is revised. Days are service days.
    """

    name: NotEmpty
    version: Annotated[int, Field(ge=1)]
    calendar: Literal["daily", "weekly", "monthly"]
    period: NotEmpty
    first: Date
    last: Date
    stage: Literal["preliminary", "final"]
    changes: NotRequired[
        Annotated[
            list[str],
            Field(
                min_length=1,
                description="How universe and features differ from those of the version before. What has kept its name is the same.",
            ),
        ]
    ]
    renamed: NotRequired[
        Annotated[
            dict[str, str],
            Field(
                min_length=1,
                description="Stops with another name since the version before: old name, new name.",
            ),
        ]
    ]
    days: NotRequired[Annotated[str, Field(min_length=1, description="How rows were given a service day.")]]


def _costs_something(table: RunningTableJson) -> RunningTableJson:
    if "rho" not in table and "epsilon" not in table:
        raise ValueError("neither rho nor epsilon is stated")
    return table


@closed
class RunningTableJson(TypedDict):
    """Running totals of one table."""

    feature: Name
    file: FilePath
    law: PartName
    scale: Scale
    rho: NotRequired[ExactJson]
    epsilon: NotRequired[ExactJson]
    sums: Annotated[int, Field(ge=0, le=64)]
    weight: float
    variance: Annotated[float, Field(gt=0)]
    deviation: Annotated[float, Field(gt=0)]


@closed
class RunningJson(TypedDict):
    """Running totals of some tables over a span of the series, which is paid for by a charge of its own: what this release holds of them."""

    meaning: str
    first: Date
    number: Annotated[int, Field(ge=1, le=MAX_PERIODS)]
    periods: Annotated[int, Field(ge=1, le=MAX_PERIODS)]
    strategy: str
    request: NotEmpty
    tables: Annotated[
        list[
            Annotated[
                RunningTableJson,
                AfterValidator(_costs_something),
                Field(json_schema_extra={"anyOf": [{"required": ["rho"]}, {"required": ["epsilon"]}]}),
            ]
        ],
        Field(min_length=1),
    ]


# The promise


@closed
class TripUnit(TypedDict):
    """One trip is protected."""

    kind: Literal["trip"]
    neighbours: Literal["add-remove", "replace"]
    neighbouring: str
    sensitivity: Annotated[int, Field(ge=0, le=MAX_SENSITIVITY)]
    words: str


@closed
class QuantileJson(TypedDict):
    """How max_trips was chosen; its ε is a charge of its own, beside that of the release."""

    quantile: ExactJson
    epsilon: ExactJson


@closed
class PersonUnit(TypedDict):
    """All trips of one person are protected, or those of a period."""

    kind: Literal["person"]
    column: str
    max_trips: Annotated[int, Field(ge=1, le=1_000_000_000)]
    per: NotRequired[Literal["day", "week", "month", "release"]]
    apart: NotRequired[str]
    bought: NotRequired[QuantileJson]
    neighbouring: str
    sensitivity: Annotated[int, Field(ge=0, le=MAX_SENSITIVITY)]
    words: str


UnitJson = Annotated[TripUnit | PersonUnit, Field(discriminator="kind")]


@closed
class PureCost(TypedDict):
    """What one answer cost in ε and δ."""

    what: str
    epsilon: ExactJson
    delta: ExactJson


@closed
class RhoCost(TypedDict):
    """What one answer cost in ρ."""

    what: str
    rho: ExactJson


@closed
class PureComposition(TypedDict):
    """Costs in ε and δ that add up, or of which the largest counts."""

    composition: Literal["sequential", "parallel"]
    of: str
    parts: list[CostJson]
    epsilon: ExactJson
    delta: ExactJson


@closed
class RhoComposition(TypedDict):
    """Costs in ρ that add up, or of which the largest counts."""

    composition: Literal["sequential", "parallel"]
    of: str
    parts: list[CostJson]
    rho: ExactJson


@closed
class StatedCost(TypedDict):
    """What was spent in ρ, and the (ε, δ) that is stated for it."""

    composition: Literal["stated"]
    parts: Annotated[list[CostJson], Field(min_length=1, max_length=1)]
    rho: ExactJson
    epsilon: ExactJson
    delta: ExactJson


def _kind_of_cost(cost: object) -> str:
    if not isinstance(cost, Mapping):
        return "cost"
    if "what" in cost:
        return "cost in ρ" if "rho" in cost else "cost"
    if cost.get("composition") == "stated":
        return "stated"
    return "composition in ρ" if "rho" in cost else "composition"


CostJson = TypeAliasType(
    "CostJson",
    Annotated[
        Annotated[PureCost, Tag("cost")]
        | Annotated[RhoCost, Tag("cost in ρ")]
        | Annotated[PureComposition, Tag("composition")]
        | Annotated[RhoComposition, Tag("composition in ρ")]
        | Annotated[StatedCost, Tag("stated")],
        Discriminator(_kind_of_cost),
    ],
)


@closed
class CurvePoint(TypedDict):
    """A pair (ε, δ)."""

    epsilon: Annotated[float, Field(gt=0)]
    delta: Annotated[float, Field(gt=0, lt=1)]


@closed
class PrivacyJson(TypedDict):
    """What is promised, to which unit, and the argument for it."""

    holds: Annotated[bool, Field(description="Whether differential privacy is promised at all.")]
    caveat: str
    statement: str
    unit: UnitJson
    epsilon: ExactJson | None
    delta: ExactJson | None
    composition: Annotated[str, Field(description="The argument that adds up what was spent.")]
    spent: CostJson
    rho: NotRequired[
        Annotated[
            ExactJson | None,
            Field(
                description="The ρ of zero-concentrated differential privacy, where the noise is paid for in it."
            ),
        ]
    ]
    curve: NotRequired[
        Annotated[
            list[CurvePoint],
            Field(description="Pairs (ε, δ), all of which the ρ promises at once."),
        ]
    ]


def _states_what_holds(privacy: PrivacyJson) -> PrivacyJson:
    stated = [privacy["epsilon"] is not None, privacy["delta"] is not None]
    if privacy["holds"] and not all(stated):
        raise ValueError("it holds, and states no ε and δ")
    if not privacy["holds"] and (any(stated) or not privacy["caveat"]):
        raise ValueError("it does not hold: it must say why, and state neither ε nor δ")
    return privacy


NOTHING: dict[str, object] = {"type": "null"}
PROMISE_CONDITION: dict[str, object] = {
    "if": {"properties": {"holds": {"const": True}}},
    "then": {"properties": {"epsilon": {"type": "object"}, "delta": {"type": "object"}}},
    "else": {"properties": {"epsilon": NOTHING, "delta": NOTHING, "caveat": {"minLength": 1}}},
}


# Features, measurements, estimate


@closed
class NoiseJson(TypedDict):
    """The noise of a table."""

    name: NotRequired[
        Annotated[
            PartName | None,
            Field(
                description="The name of the noise distribution; null where it is not known. Releases up to 0.2.0 have it in words only."
            ),
        ]
    ]
    law: Annotated[str, Field(description="The same in words.")]
    scale: Scale | None
    variance: Annotated[float, Field(ge=0)] | None
    threshold: Annotated[float | None, Field(description="Noisy counts below it were suppressed.")]
    zeros: Annotated[
        Literal["perturbed", "skipped"],
        Field(description="Whether counts of zero got noise like all others, or none: then they never show."),
    ]


@closed
class FeatureJson(TypedDict):
    """A table of counts."""

    name: Name
    by: list[str]
    size: Annotated[int, Field(ge=1)]
    epsilon: ExactJson | None
    delta: ExactJson | None
    noise: NoiseJson | None
    published: Annotated[
        Literal["trips", "table"],
        Field(description="Whether its counts are sums of the trips, or a table of its own."),
    ]
    rows: Rows
    file: FilePath
    rho: NotRequired[ExactJson | None]


@closed
class MeasurementJson(TypedDict):
    """A noisy answer."""

    feature: Name
    law: Annotated[PartName | None, Field(description="The name of the law of the noise.")]
    epsilon: ExactJson | None
    scale: Scale | None
    variance: Annotated[float, Field(gt=0)] | Literal["by element"] | None
    elements: Rows
    floors: FilePath | None
    rows: Rows
    file: FilePath
    rho: NotRequired[ExactJson | None]


@closed
class LevelJson(TypedDict):
    """A feature of the tree that was measured."""

    name: str
    by: list[str]


@closed
class CertificateJson(TypedDict):
    """How far the solution is from the optimum."""

    stationarity: float
    feasibility: float
    complementarity: float
    consistency: float
    gap: float


@closed
class EstimateJson(TypedDict):
    """How counts were estimated."""

    estimator: Annotated[
        str,
        Field(
            description='"posterior": expected counts given all noisy answers, reconciled; "projection": the closest consistent counts.'
        ),
    ]
    weights: object
    solver: str
    iterations: Size
    objective: float
    kkt_residual: Annotated[float, Field(ge=0)]
    certificate: CertificateJson
    leaves: Rows


@closed
class RoundingJson(TypedDict):
    """How estimates became whole trips."""

    exact: Annotated[
        bool,
        Field(
            description="Every count is its estimate rounded down or up; with rounding on few trip types, every count of a table."
        ),
    ]
    violations: Annotated[
        dict[str, Annotated[int, Field(ge=1)]], Field(description="By feature, how many counts are not.")
    ]
    tolerance: NotRequired[
        Annotated[
            float,
            Field(
                ge=0,
                le=1e-6,
                description="An estimate counts as a whole number if it is no further from it than this part of itself (of 1 below it, of 1000 "
                "above it): floating point is not exact, and where many estimates are near whole numbers the rounding lowers it. Not stated by "
                "versions up to 0.2.",
            ),
        ]
    ]


@closed
class IntervalsJson(TypedDict):
    """How intervals were made, and of which features."""

    confidence: Annotated[float, Field(gt=0, lt=1)]
    how: str
    features: Annotated[list[str], Field(min_length=1)]


# The universe, and files


@closed
class DimensionJson(TypedDict):
    """A dimension."""

    name: str
    size: Annotated[int, Field(ge=1)]
    labels: LabelKind
    edges: Annotated[list[int] | None, Field(description="Seconds of the day between which the periods lie.")]
    file: FilePath


@closed
class AttributeJson(TypedDict):
    """An attribute of one to three dimensions."""

    name: str
    of: Annotated[list[str], Field(min_length=1, max_length=3)]
    labels: LabelKind
    own: bool
    file: FilePath


@closed
class ZerosJson(TypedDict):
    """Combinations that cannot occur."""

    of: Annotated[list[str], Field(min_length=1)]
    file: FilePath


@closed
class UniverseJson(TypedDict):
    """Dimensions, attributes and structural zeros."""

    dimensions: Annotated[list[DimensionJson], Field(min_length=1)]
    attributes: list[AttributeJson]
    zeros: list[ZerosJson]
    size: Annotated[int, Field(ge=1)]
    sha256: Sha256


@closed
class TripsJson(TypedDict):
    """The file of the trips."""

    file: FilePath
    types: Size
    total: Size


@closed
class PlacesJson(TypedDict):
    """The file of the stops."""

    file: FilePath
    ids: LabelKind
    zones: bool


@closed
class PriorJson(TypedDict):
    """Public weights by trip type that entered the estimate; their hash is among the mechanism's settings."""

    file: FilePath


@closed
class PublicJson(TypedDict):
    """Counts that were public before the release. Their numbers are in recipe/settings/public, by feature, in the order of the rows of its table."""

    features: Annotated[list[str], Field(min_length=1)]
    meaning: str


@closed
class OwnerJson(TypedDict, total=False):
    """Whose privacy the ledger accounts for: one data set, or riders that several share."""

    dataset: NotEmpty
    riders: NotEmpty


def _one_owner(owner: OwnerJson) -> OwnerJson:
    if len(owner) != 1:
        raise ValueError("one data set, or riders, must be named")
    return owner


@closed
class LedgerJson(TypedDict):
    """The ledger that was charged."""

    head: Annotated[
        str | None, Field(description="The head of the ledger's hash chain when the release was charged.")
    ]
    id: NotRequired[
        Annotated[
            str,
            Field(
                pattern=f"^[0-9a-f]{{32}}{TEXT_END}",
                description="The ledger's random name. Older folders do not state it.",
            ),
        ]
    ]
    owner: NotRequired[
        Annotated[
            OwnerJson,
            AfterValidator(_one_owner),
            Field(json_schema_extra={"minProperties": 1, "maxProperties": 1}),
        ]
    ]


@closed
class FileJson(TypedDict):
    """What a file must be, byte for byte."""

    sha256: Sha256
    bytes: Size


@closed
class DeploymentJson(TypedDict):
    """The fields of the OpenDP deployments registry that a release can fill in itself."""

    basic: dict[str, object]
    dp_variant: dict[str, object]
    privacy_loss: dict[str, object]
    deployment_model: dict[str, object]
    accounting: dict[str, object]
    implementation: dict[str, object]


# The recipe


@closed
class EarlierRelease(TypedDict):
    """A release of the same series that a prior was learnt from."""

    period: NotRequired[Annotated[str, Field(max_length=200)]]
    manifest_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


Shares = dict[Name, PlainNumber]


def _settings_of_its_own(settings: SettingsJson) -> SettingsJson:
    for name in settings:
        if not 1 <= len(name) <= 1000 or name in SETTINGS_STATED_ELSEWHERE:
            raise ValueError(f"{name[:40]!r} cannot be the name of a setting")
    return settings


@with_config(ConfigDict(extra="allow", strict=True, regex_engine="python-re"))
class SettingsJson(TypedDict, total=False):
    """What its mechanism was told. Mechanisms of other packages may have further settings."""

    budget: PartName | Shares | None
    delta: PlainNumber | Shares | None
    rho: PlainNumber | None
    estimator: PartName | None
    rounding: PartName | None
    solver: PartName | None
    law: PartName | None
    expected_trips: PlainNumber | None
    expected_filled: PlainNumber | None
    levels: list[Name] | None
    measured: list[Name] | None
    tables: list[Name] | None
    preset: Annotated[str, Field(max_length=200)]
    prior: Numbers | None
    prior_source: dict[Name, PlainNumber | list[EarlierRelease]] | None
    prune: bool
    root: bool
    sparse: bool | None
    public: dict[Name, Size | list[Size]] | None
    running: dict[str, object]
    target: Shares | None
    threshold: float | None
    tolerance: Annotated[float, Field(gt=0)]
    weights: Annotated[str, Field(max_length=200)] | dict[Name, PlainNumber | Numbers] | None
    zeros: Annotated[str, Field(max_length=200)]


@closed
class RecipeJson(TypedDict):
    """How it was made: all that is needed, beside the measurements, to make it again."""

    mechanism: PartName
    settings: Annotated[
        SettingsJson,
        AfterValidator(_settings_of_its_own),
        Field(
            json_schema_extra={
                "propertyNames": {
                    "minLength": 1,
                    "maxLength": 1000,
                    "not": {"enum": [*SETTINGS_STATED_ELSEWHERE]},
                }
            }
        ),
    ]


# The whole


def _states_versions(software: dict[str, str]) -> dict[str, str]:
    absent = [name for name in PACKAGES if name not in software]
    if absent:
        raise ValueError(f"the version of {absent[0]} is not stated")
    return software


class LayoutSections(TypedDict):
    """The sections that say which file holds what."""

    features: Annotated[list[FeatureJson], Field(min_length=2)]
    measurements: list[MeasurementJson]
    levels: Annotated[
        list[LevelJson] | None, Field(description="What the measurements are of, where not the features.")
    ]
    universe: UniverseJson
    trips: TripsJson
    places: PlacesJson | None
    prior: NotRequired[PriorJson]
    running: NotRequired[RunningJson]


class Description(TypedDict):
    """The sections that speak of no file."""

    format: Literal["cbdp-release"]
    version: Literal[2]
    status: Literal["release", "simulation, not a release"]
    secure: Annotated[bool, Field(description="Whether the noise came from the operating system's entropy.")]
    about: Annotated[AboutJson | None, Field(description="What the publisher says about the release.")]
    recipe: RecipeJson
    privacy: Annotated[
        PrivacyJson, AfterValidator(_states_what_holds), Field(json_schema_extra=PROMISE_CONDITION)
    ]
    estimate: EstimateJson | None
    rounding: RoundingJson | None
    intervals: IntervalsJson | None
    public: NotRequired[PublicJson]
    series: NotRequired[SeriesJson]
    software: Annotated[
        dict[str, str],
        AfterValidator(_states_versions),
        Field(json_schema_extra={"required": [*PACKAGES]}),
    ]
    ledger: LedgerJson
    deployment: DeploymentJson


@closed
class Manifest(Description, LayoutSections):
    """What a differentially private release of trips says about itself. Nothing here depends on private data beyond the release."""

    files: dict[FilePath, FileJson]


def _says_what_it_is(manifest: Manifest) -> Manifest:
    if manifest["secure"] != (manifest["status"] == "release"):
        raise ValueError("'secure' and 'status' disagree about whether it is a simulation")
    if not manifest["secure"] and manifest["privacy"]["holds"]:
        raise ValueError("a simulation protects nobody")
    return manifest


SIMULATION_CONDITION: dict[str, object] = {
    "if": {"properties": {"secure": {"const": True}}},
    "then": {"properties": {"status": {"const": "release"}}},
    "else": {
        "properties": {
            "status": {"const": SIMULATION},
            "privacy": {"properties": {"holds": {"const": False}}},
        }
    },
}
MANIFESTS = TypeAdapter[Manifest](
    Annotated[
        Manifest,
        AfterValidator(_says_what_it_is),
        Field(json_schema_extra=SIMULATION_CONDITION),
    ]
)


def first_mistake(manifest: object) -> tuple[str, str] | None:
    """Where and how a manifest is not as its types say; None where it is."""
    try:
        MANIFESTS.validate_python(manifest)
    except ValidationError as wrong:
        mistake = wrong.errors(include_url=False, include_context=False, include_input=False)[0]
        here: object = manifest
        path: list[str] = []
        for step in mistake["loc"]:  # which also name the members of unions: these are no keys
            if isinstance(here, dict) and step in here:
                here = here[step]
            elif isinstance(here, list) and isinstance(step, int):
                here = here[int(step)]
            elif mistake["type"] != "missing":
                continue
            path.append(str(step))
        return "/".join(path) or "its top", mistake["msg"]
    return _beyond_columns(manifest)


def _beyond_columns(manifest: object) -> tuple[str, str] | None:
    """The first whole number that columns do not hold; numbers of JSON have any length."""
    level: list[tuple[str, object]] = [("", manifest)]
    while level:
        below: list[tuple[str, object]] = []
        for place, value in level:
            if isinstance(value, int) and abs(value) > MAX_WHOLE_NUMBER:
                return place[1:], f"a whole number of at most {MAX_WHOLE_NUMBER:,} is expected"
            items = (
                value.items()
                if isinstance(value, dict)
                else enumerate(value)
                if isinstance(value, list)
                else ()
            )
            below += [(f"{place}/{key}", item) for key, item in items]
        level = below
    return None


def schema() -> dict[str, object]:
    """The JSON Schema of manifests, as it is published."""
    drawn = cast("dict[str, object]", _published(MANIFESTS.json_schema()))
    sections = cast("dict[str, dict[str, object]]", drawn.pop("$defs"))
    del drawn["$ref"]
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Manifest of a cbdp release",
    }
    return {**head, **sections.pop("manifest"), **drawn, "$defs": sections}


def _published(drawn: JSON) -> JSON:
    """What pydantic drew, under names without a Python suffix, and without what only other tools read."""
    if isinstance(drawn, list):
        return [_published(item) for item in drawn]
    if not isinstance(drawn, dict):
        return drawn
    plain: dict[str, JSON] = {}
    for key, value in drawn.items():
        if key == "$defs" and isinstance(value, dict):
            plain[key] = {_section_name(name): _published(section) for name, section in value.items()}
        elif key == "$ref" and isinstance(value, str):
            plain[key] = f"#/$defs/{_section_name(value.rpartition('/')[2])}"
        elif key == "oneOf":
            plain["anyOf"] = _published(value)
        elif not (key == "title" and isinstance(value, str)) and key != "discriminator":
            plain[key] = _published(value)
    return plain


def _section_name(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.removesuffix("Json")).lower()
