"""From a configuration to a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from cbdp.app.config import Config
from cbdp.app.plan.about import about_of
from cbdp.app.plan.account import Account, account_of, output_of
from cbdp.app.plan.bought import after_purchase, unbought
from cbdp.app.plan.facts import Variant
from cbdp.app.plan.features import features_of
from cbdp.app.plan.mechanism import mechanism_of
from cbdp.app.plan.periods import Slot, check_series, first_slot, series_of
from cbdp.app.plan.request import asked_of, request_of
from cbdp.app.plan.service_days import check_alike, service_days
from cbdp.app.plan.slots import applied, check_fits, covers_of, part_of, request_of_slot
from cbdp.app.plan.source import source_hash
from cbdp.app.plan.stops import stops_of
from cbdp.app.plan.trips import Given, TripSchema, check_columns, check_names, columns_of, schema_of, unit_of
from cbdp.app.plan.universe import universe_of
from cbdp.estimate.public import total_of
from cbdp.features import FeatureDag, Universe
from cbdp.features.places import Stops
from cbdp.mechanisms import Mechanism
from cbdp.privacy.ledger import Covers, Ledger, Part
from cbdp.privacy.unit import Unit
from cbdp.release import About, Release
from cbdp.release.series import InSeries
from cbdp.trips import Clock, Counts, Schema, planning
from cbdp.trips.days import Days


class BesideRelease(Protocol):
    """Running totals of a series, of which a release is part: charged beside it, and measured with it."""

    def charge(self, ledger: Ledger) -> None: ...
    def release(self, counts: Counts) -> Release: ...


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything a release needs but the trips' rows."""

    config: Config = field(repr=False)
    trips: Given  # what `cbdp.count` takes
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
    covers: Covers | None = None  # the days and the unit that the charge is for
    slot: Slot | None = None  # which release of a series it is
    changes: tuple[str, ...] = ()  # of universe and features, since the version before
    renamed: tuple[tuple[str, str], ...] = ()  # stops, since then: old name, new name
    running: BesideRelease | None = None  # running totals that go with the release

    @property
    def days(self) -> Days | None:
        """The service days whose trips are counted; None: all rows."""
        return None if self.slot is None else Days(self.slot.first, self.slot.last)

    @property
    def part(self) -> Part | None:
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
        unit: Unit = self.mechanism.unit
        return unit

    @property
    def confidence(self) -> float:
        return self.config.output.confidence

    @property
    def exports(self) -> tuple[str, ...]:
        return self.config.output.export

    @property
    def expected_trips(self) -> int | None:
        return self.config.data.expected_trips or total_of(self.public)

    @property
    def public(self) -> Mapping[str, Sequence[int]]:
        """Counts that are public already, by feature."""
        return getattr(self.mechanism, "public", None) or {}

    # What a forecast asks and only the plan can answer: its schema, or another mechanism, is needed for it. No row is read.

    @property
    def person_column(self) -> str | None:
        """The column that may tell persons apart, as it is stated or by its name."""
        from cbdp.app.guessing.columns import guess_columns

        guessed = guess_columns(self.schema) if self.schema else {}
        return self.config.data.columns.get("person") or guessed.get("person")

    @property
    def unbought(self) -> bool:
        """Whether the unit's max_trips is a guess, because nothing was bought yet."""
        return unbought(self.config, self.universe, self.columns, self.clock, self.unit)

    def schema_warnings(self) -> Iterator[str]:
        """What of the trips' columns deserves a warning, by their names and types."""
        from cbdp.app.inspecting.plausibility import schema_warnings

        return schema_warnings(self)

    def variants(self) -> Iterator[Variant]:
        """This plan first, then every choice of periods and zones that the public inputs allow."""
        from cbdp.app.plan.variants import variants

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
        config = applied(config, slot)
    trips = schema_of(config)
    stops = stops_of(config, trips)
    universe = universe_of(config, stops, trips)
    check_names(config, universe, trips)
    check_columns(config, universe, trips)
    features = features_of(config, universe)
    unit = unit_of(config, trips, universe)
    config = after_purchase(config, unit)
    mechanism = mechanism_of(config, features, unit)
    columns: Mapping[str, str] = columns_of(universe, trips, mechanism.unit)
    if slot is None:
        request = request_of(asked_of(config, columns, trips.clock, mechanism), source_hash(trips.given))
    else:
        check_fits(config, mechanism.unit, universe)
        columns = _dated(config, columns, universe, trips, mechanism.unit, slot)
        request = request_of_slot(config, slot)
    covers = _covered(mechanism, universe, slot, columns, trips)
    account = _account(config, mechanism, request, covers, must_fit=must_fit)
    return Plan(
        config,
        trips.given,
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
) -> Covers:
    """The days and the unit that the charge is for, and how rows are given these days."""
    covers = covers_of(mechanism.unit, universe, slot, mechanism)
    if covers.first is None and covers.per == "release":
        return covers  # it tells no days apart
    return replace(
        covers,
        days=service_days(columns, universe, trips.clock, trips.source, pinned=slot is not None),
    )


def _account(
    config: Config, mechanism: Mechanism, request: str, covers: Covers, *, must_fit: bool = True
) -> Account:
    """What the ledger says of a request; a release must fit into it, and read days as others near it do."""
    found = account_of(config, mechanism, request, covers, must_fit=must_fit)
    if must_fit:
        check_alike(config, covers, found.path)
    return found


def plan_of(earlier: Plan, config: Config, slot: Slot) -> Plan:
    """The plan of another release of the same series, which shares all but its period with an earlier one of the same stage."""
    config = applied(config, slot)
    request = request_of_slot(config, slot)
    if config.data.trips != earlier.config.data.trips:  # a file of its own, whose times may have another zone
        trips = schema_of(config)
        earlier = replace(earlier, trips=trips.given, schema=trips.source)
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
    dated = {**columns, planning.DAY: trips.column(planning.DAY)}
    if planning.DAY not in config.data.columns and trips.column("time") not in trips.source.kinds:
        dated = dict(columns)  # nobody says where the day is: the plan of the count finds it, or says so
    with config.source.at("data", "columns"):
        planning.make_plan(trips.source, universe, dated, unit, trips.clock, Days(slot.first, slot.last))
    return dated
