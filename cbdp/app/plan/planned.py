"""From a configuration to a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cbdp.app.config import Config
from cbdp.app.plan.about import about_of
from cbdp.app.plan.account import Account, account_of, output_of
from cbdp.app.plan.features import features_of
from cbdp.app.plan.mechanism import mechanism_of
from cbdp.app.plan.request import asked_of, request_of
from cbdp.app.plan.source import source_hash
from cbdp.app.plan.stops import stops_of
from cbdp.app.plan.trips import Given, check_columns, check_names, columns_of, schema_of, unit_of
from cbdp.app.plan.universe import universe_of
from cbdp.estimate.public import total_of
from cbdp.features import FeatureDag, Universe
from cbdp.features.places import Stops
from cbdp.mechanisms import Mechanism
from cbdp.privacy.unit import Unit
from cbdp.release import About
from cbdp.trips import Clock, Schema


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


def plan(config: Config) -> Plan:
    """What a configuration means; what is wrong with it, or with its public inputs, is one line with its place."""
    trips = schema_of(config)
    stops = stops_of(config, trips)
    universe = universe_of(config, stops, trips)
    check_names(config, universe, trips)
    check_columns(config, universe, trips)
    features = features_of(config, universe)
    mechanism = mechanism_of(config, features, unit_of(config, trips, universe))
    columns = columns_of(universe, trips)
    request = request_of(asked_of(config, columns, trips.clock, mechanism), source_hash(trips.given))
    account = account_of(config, mechanism, request)
    return Plan(
        config,
        trips.given,
        columns,
        trips.clock,
        stops,
        features,
        mechanism,
        account,
        output_of(config, account),
        request,
        about_of(config),
        trips.source,
    )
