"""From a configuration to a plan: universe, features, mechanism, account and request of a release.

Public inputs only are read. Of the trips only the schema is looked at, never a row; nothing is written and nothing is spent.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Protocol

from cbdp.app.trips import (
    TripSchema,
    after_purchase,
    check_alike,
    check_columns,
    check_names,
    columns_of,
    is_unbought,
    schema_of,
    service_days,
    source_hash,
    unit_of,
)
from cbdp.config import Config, DataSection, TimeGrid
from cbdp.config.sections import ZonesSection, budget_parts, mechanism_parts, noise_parts
from cbdp.counting import Clock, Counts, Schema
from cbdp.counting import plan as counting_plan
from cbdp.counting.plan import ServiceDays
from cbdp.counting.reading import TripSource
from cbdp.errors import CbdpError
from cbdp.estimation.invariants import public_total
from cbdp.features import SINGLETON, TOTAL, FeatureDag, Universe
from cbdp.forecast.account import Account, account_of, output_of
from cbdp.forecast.calendar import (
    Slot,
    check_fits,
    check_series,
    config_of_slot,
    covers_of,
    first_slot,
    part_of,
    request_of_slot,
    series_of,
)
from cbdp.forecast.inputs import (
    about_of,
    check_chosen,
    check_features,
    features_of,
    public_counts,
    stops_of,
    universe_of,
    weights_of,
)
from cbdp.forecast.plan import Variant, seconds, zoning
from cbdp.ledger import ChargeScope, Ledger, SeriesPart
from cbdp.measuring import MAX_DENSE_TRIP_TYPES
from cbdp.mechanisms import Mechanism
from cbdp.mechanisms.base import AdditiveNoiseMechanism
from cbdp.parts import Parts, Setting, settings_of
from cbdp.privacy.accounting import DPCost, ZCDPCost, single_costs
from cbdp.privacy.noise import NOISE_DISTRIBUTIONS
from cbdp.privacy.unit import Unit
from cbdp.release import About, Release
from cbdp.release.layout import universe_hash
from cbdp.release.series import InSeries
from cbdp.rounding.roundings import cost_per_wrong_type
from cbdp_features.calendar import seconds_of_day
from cbdp_features.places import Stops


class BesideRelease(Protocol):
    """Running totals of a series, of which a release is part: charged beside it, and measured with it."""

    def charge(self, ledger: Ledger) -> None: ...
    def release(self, counts: Counts) -> Release: ...


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything a release needs but the trips' rows."""

    config: Config = field(repr=False)
    trips: TripSource  # what `cbdp.count` takes
    columns: Mapping[str, str]  # dimension → column of the trips
    clock: Clock
    stops: Stops | None
    features: FeatureDag
    mechanism: Mechanism
    account: Account
    output: Path
    request: str  # what the ledger knows the release by: `asked`, and where the trips are
    about: About | None = None
    schema: Schema | None = field(default=None, repr=False)  # of the trips
    covers: ChargeScope | None = None  # the days and the unit that the charge is for
    slot: Slot | None = None  # which release of a series it is
    changes: tuple[str, ...] = ()  # of universe and features, since the version before
    renamed: tuple[tuple[str, str], ...] = ()  # stops, since then: old name, new name
    running: BesideRelease | None = None  # running totals that go with the release

    @property
    def days(self) -> ServiceDays | None:
        """The service days whose trips are counted; None: all rows."""
        return None if self.slot is None else ServiceDays(self.slot.first, self.slot.last)

    @property
    def part(self) -> SeriesPart | None:
        return None if self.slot is None else part_of(self.config, self.slot, self.features)

    @property
    def series(self) -> InSeries | None:
        if self.slot is None:
            return None
        return replace(
            self.slot.place(series_of(self.config)),
            changes=self.changes,
            renamed=self.renamed,
            days=self.service_days,
        )

    @property
    def service_days(self) -> str:
        """How rows are given a service day, in words: all releases of a series do it alike."""
        return service_days(
            self.columns, self.universe, self.clock, self.schema, pinned=self.slot is not None
        )

    @property
    def dataset(self) -> str:
        return self.config.data.id

    @property
    def asked(self) -> str:
        """SHA-256 of all that is public and decides what is released."""
        return self.request.partition(":")[0]

    @property
    def universe(self) -> Universe:
        return self.features.universe

    @property
    def unit(self) -> Unit:
        return self.mechanism.protected

    @property
    def confidence(self) -> float:
        return self.config.output.confidence

    @property
    def exports(self) -> tuple[str, ...]:
        return self.config.output.export

    @property
    def expected_trips(self) -> int | None:
        return self.config.data.expected_trips or public_total(self.public)

    @property
    def public(self) -> Mapping[str, Sequence[int]]:
        """Counts that are public already, by feature."""
        return getattr(self.mechanism, "public", None) or {}

    # What a forecast asks and only the plan can answer: its schema, or another mechanism, is needed for it. No row is read.

    @property
    def person_column(self) -> str | None:
        """The column that may tell persons apart, as it is stated or by its name."""
        from cbdp.config.guessing import guess_columns

        guessed = guess_columns(self.schema) if self.schema else {}
        return self.config.data.columns.get("person") or guessed.get("person")

    @property
    def unbought(self) -> bool:
        """Whether the unit's max_trips is a guess, because nothing was bought yet."""
        return is_unbought(self.config, self.universe, self.columns, self.clock, self.unit)

    def schema_warnings(self) -> Iterator[str]:
        """What of the trips' columns deserves a warning, by their names and types."""
        from cbdp.app.inspecting import reading_of_plan
        from cbdp.counting.plausibility import schema_warnings

        return iter(()) if self.schema is None else schema_warnings(reading_of_plan(self))

    def variants(self) -> Iterator[Variant]:
        """This plan first, then every choice of periods and zones that the public inputs allow."""
        return variants(self)

    def varied(self, variant: Variant) -> Plan:
        """The plan with the periods and zones of a variant."""
        assert isinstance(variant.mechanism, Mechanism)
        return replace(self, features=variant.features, mechanism=variant.mechanism)


def plan(config: Config, slot: Slot | None = None, *, must_fit: bool = True) -> Plan:
    """What a configuration means; what is wrong with it, or with its public inputs, is one line with its place.

    Of a series it is one release: that of the slot, or the first. Who only looks for settings that fit gives `must_fit=False`: then the
    ledger may have too little left, and the output may exist.
    """
    if config.series is not None:
        check_series(config)
        slot = slot or first_slot(config)
        config = config_of_slot(config, slot)
    trips = schema_of(config)
    stops = stops_of(config, trips)
    universe = universe_of(config, stops, trips)
    check_names(config, universe, trips)
    check_columns(config, universe, trips)
    features = features_of(config, universe)
    unit = unit_of(config, trips, universe)
    config = after_purchase(config, unit)
    mechanism = mechanism_of(config, features, unit)
    columns: Mapping[str, str] = columns_of(universe, trips, mechanism.protected)
    if slot is None:
        request = request_of(
            public_request_of(config, columns, trips.clock, mechanism), source_hash(trips.trips)
        )
    else:
        check_fits(config, mechanism.protected, universe)
        columns = _dated(config, columns, universe, trips, mechanism.protected, slot)
        request = request_of_slot(config, slot)
    covers = _covered(mechanism, universe, slot, columns, trips)
    account = _account(config, mechanism, request, covers, must_fit=must_fit)
    return Plan(
        config,
        trips.trips,
        columns,
        trips.clock,
        stops,
        features,
        mechanism,
        account,
        output_of(config, account) if must_fit else config.path(config.output.path),
        request,
        about_of(config),
        trips.source,
        covers,
        slot,
    )


def _covered(
    mechanism: Mechanism, universe: Universe, slot: Slot | None, columns: Mapping[str, str], trips: TripSchema
) -> ChargeScope:
    """The days and the unit that the charge is for, and how rows are given these days."""
    covers = covers_of(mechanism.protected, universe, slot, mechanism)
    if covers.first is None and covers.per == "release":
        return covers  # it tells no days apart
    return replace(
        covers,
        days=service_days(columns, universe, trips.clock, trips.source, pinned=slot is not None),
    )


def _account(
    config: Config, mechanism: Mechanism, request: str, covers: ChargeScope, *, must_fit: bool = True
) -> Account:
    """What the ledger says of a request; a release must fit into it, and read days as others near it do."""
    account = account_of(config, mechanism, request, covers, must_fit=must_fit)
    if must_fit:
        check_alike(config, covers, account.path)
    return account


def plan_of(earlier: Plan, config: Config, slot: Slot) -> Plan:
    """The plan of another release of the same series, which shares all but its period with an earlier one of the same stage."""
    config = config_of_slot(config, slot)
    request = request_of_slot(config, slot)
    if config.data.trips != earlier.config.data.trips:  # a file of its own, whose times may have another zone
        trips = schema_of(config)
        earlier = replace(earlier, trips=trips.trips, schema=trips.source)
    covers = replace(covers_of(earlier.unit, earlier.universe, slot), days=earlier.service_days)
    account = _account(config, earlier.mechanism, request, covers)
    return replace(
        earlier,
        config=config,
        account=account,
        output=output_of(config, account),
        request=request,
        about=about_of(config),
        covers=covers,
        slot=slot,
    )


def _dated(
    config: Config,
    columns: Mapping[str, str],
    universe: Universe,
    trips: TripSchema,
    unit: Unit,
    slot: Slot,
) -> Mapping[str, str]:
    """The columns with that of the day, which says in which period a trip is; checked by the schema."""
    dated = {**columns, counting_plan.DAY_KEY: trips.column(counting_plan.DAY_KEY)}
    if counting_plan.DAY_KEY not in config.data.columns and trips.column("time") not in trips.source.kinds:
        dated = dict(columns)  # nobody says where the day is: the plan of the count finds it, or says so
    with config.source.at("data", "columns"):
        counting_plan.make_plan(
            trips.source, universe, dated, unit, trips.clock, ServiceDays(slot.first, slot.last)
        )
    return dated


# The mechanism of a plan, with its settings, its budget and its δ


OPTIMAL_BUDGET = "optimal"  # the budget that goes by a target


def mechanism_of(config: Config, features: FeatureDag, unit: Unit) -> Mechanism:
    with config.source.at("mechanism", "name"):
        cls: type[Mechanism] = mechanism_parts().get(config.mechanism.name)
    settings = (
        _settings(config, cls, features)
        | _budget_settings(config, cls, features)
        | _noise_settings(config, cls)
        | _delta_settings(config, cls, features)
        | _public_settings(config, cls, features)
    )
    privacy = config.privacy
    where: tuple[str, ...] = ("mechanism",)
    if privacy.target is not None:
        where = ("privacy", "target")
    elif isinstance(privacy.budget, Mapping) or privacy.budget == OPTIMAL_BUDGET:
        where = ("privacy", "budget")
    elif privacy.law is not None:
        where = ("privacy", "law")
    with config.source.at(*where):
        return cls(features, privacy.epsilon, unit, **settings)


def _has_field(cls: type[Mechanism], name: str) -> bool:
    return name in [f.name for f in dataclasses.fields(cls)]


def _settings(config: Config, cls: type[Mechanism], features: FeatureDag) -> dict[str, Any]:
    """The settings that are written, checked against the features, the installed parts and the files."""
    declared = settings_of(cls)
    settings: dict[str, Any] = {}
    for name, value in config.mechanism.settings.items():
        keys = ("mechanism", name)
        if declared[name].kind == "names" or isinstance(value, Mapping):
            check_features(config, features, keys, value)
        with config.source.at(*keys):
            settings |= _setting_values(config, features, name, declared[name], value)
    if SINGLETON not in settings.get("measured", [SINGLETON]):
        raise config.source.error(
            ("mechanism", "measured"), f"{SINGLETON!r} is not measured: every trip type needs a noisy count"
        )
    return settings


def _setting_values(
    config: Config, features: FeatureDag, name: str, declared: Setting, value: Any
) -> dict[str, Any]:
    """What the mechanism is given for a setting."""
    if isinstance(declared.choices, Parts) and isinstance(value, str):
        check_chosen(declared.choices, value)
    if declared.kind != "file":
        return {name: value}
    weights, source = weights_of(config, features.universe, value, MAX_DENSE_TRIP_TYPES)
    return {name: weights, f"{name}_source": source}


def _budget_settings(config: Config, cls: type[Mechanism], features: FeatureDag) -> dict[str, Any]:
    """How ε is shared: as it is written, or for a target."""
    privacy = config.privacy
    settings: dict[str, Any] = {}
    if privacy.budget is not None:
        if not _has_field(cls, "budget"):
            raise config.source.error(
                ("privacy", "budget"),
                f"{cls.name} measures once and has no budget to share: leave budget out",
            )
        with config.source.at("privacy", "budget"):
            if isinstance(privacy.budget, Mapping):
                check_features(config, features, ("privacy", "budget"), privacy.budget)
            else:
                check_chosen(budget_parts(), privacy.budget)
        settings["budget"] = privacy.budget
    if privacy.target is not None:
        if not _has_field(cls, "target"):
            raise config.source.error(
                ("privacy", "target"), f"{cls.name} cannot share ε for a target: leave target out"
            )
        check_features(config, features, ("privacy", "target"), privacy.target)
        settings |= {
            "target": privacy.target,
            "expected_trips": config.data.expected_trips,
            "expected_filled": config.data.expected_filled,
        }
    return settings


def _public_settings(config: Config, cls: type[Mechanism], features: FeatureDag) -> dict[str, Any]:
    """Counts that are public already, for a mechanism that can meet them."""
    if config.privacy.public is None:
        return {}
    if not _has_field(cls, "public"):
        raise config.source.error(
            ("privacy", "public"),
            f"{cls.name} cannot meet public counts: leave public out, or use constraint-based",
        )
    return {"public": public_counts(config, features)}


def _noise_settings(config: Config, cls: type[Mechanism]) -> dict[str, Any]:
    """The law of the noise and what it is paid for in; the mechanism says which go together."""
    privacy, setting = config.privacy, config.mechanism.settings.get("law")
    if not issubclass(cls, AdditiveNoiseMechanism):
        for name in ("law", "rho"):
            if getattr(privacy, name) is not None:
                raise config.source.error(
                    ("privacy", name), f"{cls.name} draws geometric noise and spends ε: leave {name} out"
                )
        return {}
    if privacy.law is not None and setting not in (None, privacy.law):
        raise config.source.error(
            ("privacy", "law"),
            f"law is {privacy.law!r} here and {setting!r} in [mechanism]: leave one of them out",
        )
    with config.source.at(*(("privacy", "law") if setting is None else ("mechanism", "law"))):
        chosen: str = privacy.law or setting or cls.law
        check_chosen(noise_parts(), chosen)
        currency = NOISE_DISTRIBUTIONS.get(chosen).currency
    amounts = {"rho": privacy.rho, "delta": privacy.delta or None}
    for name, value in amounts.items():
        if currency == "epsilon" and value is not None:
            raise config.source.error(
                ("privacy", name),
                f'law {chosen!r} spends pure ε, and no {"ρ" if name == "rho" else "δ"}: leave {name} out, or write law = "gaussian"',
            )
    return {"law": chosen} | {name: value for name, value in amounts.items() if value is not None}


def _delta_settings(config: Config, cls: type[Mechanism], features: FeatureDag) -> dict[str, Any]:
    """δ is stated for the whole release, and shared evenly among the tables that need it."""
    delta = config.privacy.delta
    if issubclass(cls, AdditiveNoiseMechanism):
        return {}
    if not _has_field(cls, "delta"):
        if delta:
            raise config.source.error(("privacy", "delta"), f"{cls.name} spends no δ: leave delta out")
        return {}
    if not delta:
        raise config.source.error(
            ("privacy", "delta"), f"{cls.name} skips zeros and pays with δ: give a delta above 0, like 1e-6"
        )
    tables = config.mechanism.settings.get("tables") or [n for n in features.features if n != TOTAL]
    return {"delta": delta / len(tables)}


# The request: what identifies a release, so that the same one is not paid for twice
#
# It is a hash of everything public that decides what is released, and one of the trips' whereabouts. An audit compares the first alone, for trips
# may be moved after a release. The output's path, the confidence of intervals and [about] are in neither: to change them costs no ε.


REQUEST_VERSION = 2  # of what is hashed: another number, and no earlier release is recognised
GEOMETRIC = "geometric"  # the law that goes without saying
SETTINGS_STATED_BY_COST = (
    "measured",
    "tables",
    "preset",
)  # what is spent, and the other settings, say the same
# Of [data]: what is stated by other parts of the request, and what decides no count. All that is not listed counts.
DATA_STATED_ELSEWHERE = (
    "trips",
    "id",
    "columns",
    "timezone",
    "time_format",
    "holidays",
    "day_starts",
    "stops",
    "stop_columns",
)
DATA_WITHOUT_EFFECT = ("riders", "expected_trips", "expected_filled")


def request_of(asked: str, source: str) -> str:
    return f"{asked}:{source}"


def public_request_of(config: Config, columns: Mapping[str, str], clock: Clock, mechanism: Mechanism) -> str:
    """A hash of all that is public and decides what is released; `columns` are those of the dimensions."""
    features, cost = mechanism.features, mechanism.claim().cost
    stated = {
        "version": REQUEST_VERSION,
        "dataset": config.data.id,
        "reading": _reading(config.data, columns),
        "clock": _clock(clock),
        "universe": universe_hash(features.universe),
        "features": {name: list(feature.by) for name, feature in features.features.items()},
        "recipe": _recipe(mechanism),
        "unit": [str(mechanism.protected), getattr(mechanism.protected, "column", None)],
        "spends": [_spend(p) for p in single_costs(cost)],
        "cost": [str(cost.epsilon), str(cost.delta)],
    }
    law = getattr(mechanism, "law", GEOMETRIC)
    if law != GEOMETRIC:
        stated["law"] = law
    if mechanism.recipe.public:
        stated["public"] = dict(mechanism.recipe.public)
    text = json.dumps(stated, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _spend(part: DPCost | ZCDPCost) -> list[str]:
    if isinstance(part, ZCDPCost):
        return [part.what, "rho", str(part.rho)]
    return [part.what, str(part.epsilon), str(part.delta)]


def _clock(clock: Clock) -> dict[str, str]:
    """What is set; of settings that older versions had not, only what is not the default, so that their requests stay the same."""
    newer = {f.name for f in fields(clock) if f.name == "day_starts" and getattr(clock, f.name) == f.default}
    return {f.name: repr(getattr(clock, f.name)) for f in fields(clock) if f.name not in newer}


def _reading(data: DataSection, columns: Mapping[str, str]) -> dict[str, Any]:
    """How rows are read. The column of persons counts where persons are protected, and then the unit names it.

    Settings that are not made are left out, so that one that an older version had not leaves its requests as they were.
    """
    others = {role: column for role, column in data.columns.items() if role not in ("person", "day")}
    further = {
        f.name: repr(getattr(data, f.name))
        for f in fields(data)
        if f.name not in DATA_STATED_ELSEWHERE + DATA_WITHOUT_EFFECT
    }
    unset = {f.name: repr(f.default) for f in fields(data) if f.default is not MISSING}
    unset |= {f.name: repr(f.default_factory()) for f in fields(data) if f.default_factory is not MISSING}
    stated = {name: value for name, value in further.items() if value != unset.get(name)}
    return {"columns": others | dict(columns), **stated}


def _recipe(mechanism: Mechanism) -> dict[str, Any]:
    """The recipe without what can be spelt in several ways and is said by what is spent."""
    stated = mechanism.recipe.settings
    settings = {n: stated[n] for n in settings_of(type(mechanism)) if n not in SETTINGS_STATED_BY_COST}
    if settings.get("rounding") == "few":  # its price is by the budget's name, beyond what that spends
        settings["rounding"] = ["few", cost_per_wrong_type(getattr(mechanism, "budget", None))]
    return {"mechanism": mechanism.name, "settings": settings}


# Alternatives: the same plan with other periods and fewer zones, from public inputs


PERIOD_MINUTES = (5, 10, 15, 30, 60, 120, 180, 240, 360, 720)  # minutes of a period that people use
FINER, COARSER = 1, 3  # periods to choose from, beside the configured ones
ZONE_SHARES = (0.75, 0.5, 0.25)  # of the configured number of zones
MIN_ZONES = 2  # one zone is the total


def variants(plan: Plan) -> Iterator[Variant]:
    """The configured plan first, then every choice of periods and zones that the public inputs allow."""
    yield Variant(None, None, plan.features, plan.mechanism)
    trips = schema_of(plan.config)
    for every in (None, *other_periods(plan)):
        for clusters in (None, *fewer_zones(plan)):
            if every is None and clusters is None:
                continue
            alternative = variant(plan, trips, every, clusters)
            if alternative is not None:
                yield alternative


def variant(plan: Plan, trips: TripSchema, every: str | None, clusters: int | None) -> Variant | None:
    """The plan with these periods and so many zones; None where something else of it goes by the configured ones."""
    config = config_of_variant(plan.config, every, clusters)
    try:
        universe = universe_of(config, stops_of(config, trips), trips)
        features = features_of(config, universe)
        return Variant(every, clusters, features, mechanism_of(config, features, plan.unit))
    except CbdpError:  # a table of modes by zone, say, or public counts of periods
        return None


def config_of_variant(config: Config, every: str | None, clusters: int | None) -> Config:
    universe = config.universe
    if every is not None:
        assert isinstance(universe.time, TimeGrid)
        universe = replace(universe, time=replace(universe.time, every=every))
    if clusters is not None:
        fewer = (
            ZonesSection(balanced=clusters)
            if zoning(config) == "balanced"
            else ZonesSection(clusters=clusters)
        )
        universe = replace(universe, zones=fewer)
    return replace(config, universe=universe)


def other_periods(plan: Plan) -> list[str]:
    """Other lengths of a period that fill the hours evenly: one finer, some coarser. Named periods have none."""
    grid = plan.config.universe.time
    if not isinstance(grid, TimeGrid):
        return []
    span, configured = seconds_of_day(grid.end) - seconds_of_day(grid.start), seconds(grid.every)
    fit = sorted({60 * m for m in PERIOD_MINUTES if span % (60 * m) == 0 and 60 * m < span} | {span})
    finer, coarser = [s for s in fit if s < configured], [s for s in fit if s > configured]
    return [_period_text(s) for s in (*finer[-FINER:], *_evenly_chosen(coarser, COARSER))]


def fewer_zones(plan: Plan) -> list[int]:
    """Fewer zones, drawn anew from the stops' coordinates; none where tables do not go by zones."""
    stops = plan.stops
    if stops is None or stops.zone is None:
        return []
    if not any(".zone" in by for feature in plan.features.features.values() for by in feature.by):
        return []
    many = len(set(stops.zone))
    numbers = dict.fromkeys(round(part * many) for part in ZONE_SHARES)
    return [n for n in numbers if MIN_ZONES <= n < many]


def _period_text(length: int) -> str:
    return f"{length // 60}min" if length % 60 == 0 else f"{length}s"


def _evenly_chosen(candidates: Sequence[int], many: int) -> list[int]:
    """So many of these, from the first to the last."""
    if len(candidates) <= many:
        return list(candidates)
    step = (len(candidates) - 1) / (many - 1)
    return [candidates[round(n * step)] for n in range(many)]


__all__ = ["Account", "Plan", "plan"]
