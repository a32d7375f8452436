"""What a forecast is made of: public facts of a planned release, and of its mechanism. Nothing here can count or measure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from cbdp.config import TimeGrid
from cbdp.config.sections import ZonesSection
from cbdp.features import FeatureDag, Universe
from cbdp.ledger import ChargeScope
from cbdp.privacy.accounting import PrivacyGuarantee
from cbdp.privacy.expected_error import DemandFacts
from cbdp.privacy.measurement import PlannedAnswer
from cbdp.privacy.noise import NoiseDistribution, PrivacyMeasure
from cbdp.privacy.unit import Sensitivity, Unit
from cbdp.release import About
from cbdp_features.calendar import seconds_of_day
from cbdp_features.places import Stops

if TYPE_CHECKING:
    from cbdp.config import Config
    from cbdp.forecast.account import Account
    from cbdp.forecast.calendar import Slot


SECONDS_PER_UNIT = {"s": 1, "min": 60, "h": 3600}


class PlannedMechanism(Protocol):
    """What a mechanism promises and plans, before any data is seen."""

    @property
    def name(self) -> str: ...
    @property
    def asks_tables(self) -> bool: ...
    @property
    def models_errors(self) -> bool: ...
    @property
    def features(self) -> FeatureDag: ...
    @property
    def measured_features(self) -> FeatureDag: ...
    @property
    def unit(self) -> Any: ...
    @property
    def currency(self) -> PrivacyMeasure: ...
    @property
    def amount(self) -> Fraction: ...
    def claim(self) -> PrivacyGuarantee: ...
    def answers(self) -> tuple[PlannedAnswer, ...]: ...
    def change(self, feature: str) -> Sensitivity: ...
    def share_of(self, feature: str) -> Callable[[Fraction], Fraction]: ...
    def expected_errors(self, facts: DemandFacts) -> Mapping[str, Mapping[str, float]]: ...
    def remarks(self) -> Sequence[str]: ...
    def with_other_law(self) -> PlannedMechanism | None: ...


class ModelledMechanism(PlannedMechanism, Protocol):
    """A mechanism whose errors a model tells for any amount and any shares."""

    @property
    def law(self) -> str: ...
    @property
    def law_kind(self) -> type[NoiseDistribution]: ...
    @property
    def delta(self) -> Any: ...
    @property
    def budget(self) -> Any: ...
    @property
    def public(self) -> Any: ...
    @property
    def queried(self) -> Sequence[str] | None: ...
    @property
    def expects(self) -> bool: ...
    def facts(self) -> DemandFacts: ...
    def changes(self) -> tuple[tuple[str, Sensitivity], ...]: ...


def is_modelled(mechanism: PlannedMechanism) -> TypeGuard[ModelledMechanism]:
    """Whether a model tells the mechanism's errors."""
    return mechanism.models_errors


@dataclass(frozen=True, eq=False)
class Variant:
    """A plan's features and mechanism with other periods or zones; None: as configured."""

    every: str | None
    clusters: int | None
    features: FeatureDag
    mechanism: PlannedMechanism


class PlannedRelease(Protocol):
    """A plan as forecasts see it. What asks the trips' schema, or builds another mechanism, is the plan's own to answer."""

    @property
    def config(self) -> Config: ...
    @property
    def mechanism(self) -> PlannedMechanism: ...
    @property
    def account(self) -> Account: ...
    @property
    def output(self) -> Path: ...
    @property
    def features(self) -> FeatureDag: ...
    @property
    def stops(self) -> Stops | None: ...
    @property
    def columns(self) -> Mapping[str, str]: ...
    @property
    def about(self) -> About | None: ...
    @property
    def slot(self) -> Slot | None: ...
    @property
    def covers(self) -> ChargeScope | None: ...
    @property
    def universe(self) -> Universe: ...
    @property
    def unit(self) -> Unit: ...
    @property
    def dataset(self) -> str: ...
    @property
    def request(self) -> str: ...
    @property
    def asked(self) -> str: ...
    @property
    def confidence(self) -> float: ...
    @property
    def exports(self) -> tuple[str, ...]: ...
    @property
    def expected_trips(self) -> int | None: ...
    @property
    def public(self) -> Mapping[str, Sequence[int]]: ...
    @property
    def person_column(self) -> str | None: ...
    @property
    def unbought(self) -> bool: ...
    def schema_warnings(self) -> Iterator[str]: ...
    def variants(self) -> Iterator[Variant]: ...
    def varied(self, variant: Variant) -> PlannedRelease: ...


def zoning(config: Config) -> str:
    """The key by which fewer zones are asked for: that of the configuration, where it draws zones itself."""
    return "balanced" if config.universe.zones and config.universe.zones.balanced else "clusters"


def seconds(every: str) -> int:
    """How long a period is.

    >>> seconds("30min"), seconds("1h")
    (1800, 3600)
    """
    match = re.fullmatch(r"(\d+)(s|min|h)", every)
    assert match is not None
    return int(match[1]) * SECONDS_PER_UNIT[match[2]]


# Other periods and fewer zones, from public inputs


PERIOD_MINUTES = (5, 10, 15, 30, 60, 120, 180, 240, 360, 720)  # minutes of a period that people use
FINER, COARSER = 1, 3  # periods to choose from, beside the configured ones
ZONE_SHARES = (0.75, 0.5, 0.25)  # of the configured number of zones
MIN_ZONES = 2  # one zone is the total


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


def other_periods(plan: PlannedRelease) -> list[str]:
    """Other lengths of a period that fill the hours evenly: one finer, some coarser. Named periods have none."""
    grid = plan.config.universe.time
    if not isinstance(grid, TimeGrid):
        return []
    span, configured = seconds_of_day(grid.end) - seconds_of_day(grid.start), seconds(grid.every)
    fit = sorted({60 * m for m in PERIOD_MINUTES if span % (60 * m) == 0 and 60 * m < span} | {span})
    finer, coarser = [s for s in fit if s < configured], [s for s in fit if s > configured]
    return [_period_text(s) for s in (*finer[-FINER:], *_evenly_chosen(coarser, COARSER))]


def fewer_zones(plan: PlannedRelease) -> list[int]:
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
