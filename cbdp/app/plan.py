"""From a configuration to a plan: universe, features, mechanism, account and request of a release.

Public inputs only are read. Of the trips only the schema is looked at, never a row; nothing is written and nothing is spent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from cbdp.app.trips import (
    PublicInputs,
    TripSchema,
    columns_of,
    inputs_of,
    schema_of,
    service_days,
    unit_of,
)
from cbdp.config import Config
from cbdp.config.sections import mechanism_parts
from cbdp.counting import Clock, Counts, Schema
from cbdp.counting import plan as counting_plan
from cbdp.counting.files import source_hash
from cbdp.counting.linking import Prepared
from cbdp.counting.plan import ServiceDays
from cbdp.counting.reading import TripSource
from cbdp.errors import CbdpError
from cbdp.estimation.invariants import public_total
from cbdp.features import FeatureDag, Universe
from cbdp.forecast.account import (
    Account,
    account_of,
    after_purchase,
    is_unbought,
    output_of,
    public_request_of,
    request_of,
)
from cbdp.forecast.calendar import (
    Slot,
    check_fits,
    config_of_slot,
    covers_of,
    part_of,
    release_of_series,
    request_of_slot,
    series_of,
)
from cbdp.forecast.continuity import check_alike
from cbdp.forecast.inputs import (
    MechanismKind,
    about_of,
    features_of,
    mechanism_settings,
    place_of_settings,
    stops_of,
    universe_of,
)
from cbdp.forecast.plan import Variant, config_of_variant, fewer_zones, other_periods
from cbdp.ledger import ChargeScope, Ledger, SeriesPart
from cbdp.measuring import MAX_DENSE_TRIP_TYPES
from cbdp.mechanisms import Mechanism
from cbdp.mechanisms.base import AdditiveNoiseMechanism
from cbdp.parts import settings_of
from cbdp.privacy.unit import Unit
from cbdp.release import About, Release
from cbdp.release.series import InSeries
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
        from cbdp.app.inspecting import guessed_person

        return self.config.data.columns.get("person") or guessed_person(self.schema)

    @property
    def unbought(self) -> bool:
        """Whether the unit's max_trips is a guess, because nothing was bought yet."""
        return is_unbought(self.config, self.universe, self.columns, self.clock, self.unit)

    def schema_warnings(self) -> Iterator[str]:
        """What of the trips' columns deserves a warning, by their names and types."""
        from cbdp.app.inspecting import warnings_of_schema

        return warnings_of_schema(self)

    def service_days_at(self, config: Config) -> str:
        """How rows of another release of the series would be given a service day now."""
        trips = schema_of(config)
        return service_days(self.columns, self.universe, trips.clock, trips.source, pinned=True)

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
        config, slot = release_of_series(config, slot)
    inputs, features, unit = _inputs(config)
    config = after_purchase(config, unit)
    mechanism = mechanism_of(config, features, unit)
    columns, request = _requested(config, inputs, mechanism, slot)
    covers = _covered(mechanism, inputs, slot, columns)
    account = _account(config, mechanism, request, covers, must_fit=must_fit)
    return Plan(
        config,
        inputs.trips.trips,
        columns,
        inputs.trips.clock,
        inputs.stops,
        features,
        mechanism,
        account,
        output_of(config, account) if must_fit else config.path(config.output.path),
        request,
        about_of(config),
        inputs.trips.source,
        covers,
        slot,
    )


def _inputs(config: Config) -> tuple[PublicInputs, FeatureDag, Unit]:
    inputs = inputs_of(config)
    features = features_of(config, inputs.universe)
    return inputs, features, unit_of(config, inputs.trips, inputs.universe)


def _requested(
    config: Config, inputs: PublicInputs, mechanism: Mechanism, slot: Slot | None
) -> tuple[Mapping[str, str], str]:
    """The columns that are read, and what the ledger will know the release by."""
    trips, universe = inputs.trips, inputs.universe
    columns = columns_of(universe, trips, mechanism.protected)
    if slot is None:
        source = trips.trips.trips if isinstance(trips.trips, Prepared) else trips.trips
        asked = public_request_of(config, columns, trips.clock, mechanism)
        return columns, request_of(asked, source_hash(source))
    check_fits(config, mechanism.protected, universe)
    dated = _dated(config, columns, universe, trips, mechanism.protected, slot)
    return dated, request_of_slot(config, slot)


def _covered(
    mechanism: Mechanism, inputs: PublicInputs, slot: Slot | None, columns: Mapping[str, str]
) -> ChargeScope:
    """The days and the unit that the charge is for, and how rows are given these days."""
    trips, universe = inputs.trips, inputs.universe
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


def mechanism_of(config: Config, features: FeatureDag, unit: Unit) -> Mechanism:
    with config.source.at("mechanism", "name"):
        cls: type[Mechanism] = mechanism_parts().get(config.mechanism.name)
    law = cls.law if issubclass(cls, AdditiveNoiseMechanism) else None
    kind = MechanismKind(cls.name, frozenset(f.name for f in dataclasses.fields(cls)), law, settings_of(cls))
    settings = mechanism_settings(config, kind, features, MAX_DENSE_TRIP_TYPES)
    with config.source.at(*place_of_settings(config)):
        return cls(features, config.privacy.epsilon, unit, **settings)


# Alternatives: the same plan with other periods and fewer zones, from public inputs


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


__all__ = ["Account", "Plan", "plan"]
