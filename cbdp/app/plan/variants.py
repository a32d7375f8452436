"""The same plan with other periods and fewer zones: what a configuration could say instead, worked out from public inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cbdp.app.config import Config, TimeGrid
from cbdp.app.config.settings import ZonesSection
from cbdp.app.plan.facts import Variant, seconds, zoning
from cbdp.app.plan.features import features_of
from cbdp.app.plan.mechanism import mechanism_of
from cbdp.app.plan.planned import Plan
from cbdp.app.plan.stops import stops_of
from cbdp.app.plan.trips import TripSchema, schema_of
from cbdp.app.plan.universe import universe_of
from cbdp.errors import CbdpError
from cbdp.features.calendar import seconds_of

LENGTHS = (5, 10, 15, 30, 60, 120, 180, 240, 360, 720)  # minutes of a period that people use
FINER, COARSER = 1, 3  # periods to choose from, beside the configured ones
PARTS = (0.75, 0.5, 0.25)  # of the zones
FEWEST = 2


def variants(plan: Plan) -> Iterator[Variant]:
    """The configured plan first, then every choice of periods and zones that the public inputs allow."""
    yield Variant(None, None, plan.features, plan.mechanism)
    trips = schema_of(plan.config)
    for every in (None, *lengths(plan)):
        for clusters in (None, *zones(plan)):
            if every is None and clusters is None:
                continue
            made = variant(plan, trips, every, clusters)
            if made is not None:
                yield made


def variant(plan: Plan, trips: TripSchema, every: str | None, clusters: int | None) -> Variant | None:
    """The plan with these periods and so many zones; None where something else of it goes by the configured ones."""
    config = changed(plan.config, every, clusters)
    try:
        universe = universe_of(config, stops_of(config, trips), trips)
        features = features_of(config, universe)
        return Variant(every, clusters, features, mechanism_of(config, features, plan.unit))
    except CbdpError:  # a table of modes by zone, say, or public counts of periods
        return None


def changed(config: Config, every: str | None, clusters: int | None) -> Config:
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


def lengths(plan: Plan) -> list[str]:
    """Other lengths of a period that fill the hours evenly: one finer, some coarser. Named periods have none."""
    grid = plan.config.universe.time
    if not isinstance(grid, TimeGrid):
        return []
    span, own = seconds_of(grid.end) - seconds_of(grid.start), seconds(grid.every)
    fit = sorted({60 * m for m in LENGTHS if span % (60 * m) == 0 and 60 * m < span} | {span})
    finer, coarser = [s for s in fit if s < own], [s for s in fit if s > own]
    return [_written(s) for s in (*finer[-FINER:], *_spread(coarser, COARSER))]


def zones(plan: Plan) -> list[int]:
    """Fewer zones, drawn anew from the stops' coordinates; none where tables do not go by zones."""
    stops = plan.stops
    if stops is None or stops.zone is None:
        return []
    if not any(".zone" in by for feature in plan.features.features.values() for by in feature.by):
        return []
    many = len(set(stops.zone))
    found = dict.fromkeys(round(part * many) for part in PARTS)
    return [n for n in found if FEWEST <= n < many]


def _written(length: int) -> str:
    return f"{length // 60}min" if length % 60 == 0 else f"{length}s"


def _spread(found: Sequence[int], many: int) -> list[int]:
    """So many of these, from the first to the last."""
    if len(found) <= many:
        return list(found)
    step = (len(found) - 1) / (many - 1)
    return [found[round(n * step)] for n in range(many)]
