"""Ready-made feature sets of the published case studies: the CBDP paper's (Fioretto and others 2018) and Opal's (Asghar and others 2018)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature

import numpy as np

from cbdp.errors import InputError
from cbdp_features.dag import SINGLETON, TOTAL, Feature, FeatureDag
from cbdp_features.universe import Labels, Universe

TRIP_ENDS, DAY_DIMENSION = ("origin", "destination"), "day"

EXTRA_FEATURES: Mapping[str, tuple[str, ...]] = {
    "origin": ("origin",),
    "destination": ("destination",),
    "origin-time": ("origin", "time"),
    "destination-time": ("destination", "time"),
    "origin-destination": ("origin", "destination"),
}
"""Further features of trips that `odmts` adds on request: worth their share of ε where a target names them."""


def odmts(
    universe: Universe,
    zones: Labels | None = None,
    modes: Labels | None = None,
    *,
    level: int = 5,
    extra: Sequence[str] = (),
) -> FeatureDag:
    """The case study's features: total, time, zone pair × time, mode × time and singleton (F1–F5 of the CBDP paper).

    `zones` labels the stops, `modes` the (origin, destination) pairs or the (origin, destination, time) types; leave
    one out when the universe has it already. `level` 4 leaves the modes out, 3 the zones as well (O4 and O3). `extra`
    adds features of single stops or pairs of them: origin, destination, origin-time, destination-time, origin-destination.
    With these the features form more than two families, and rounding may miss some counts by one; it reports which.

    A universe with days, or with further dimensions, gets tables that tell these apart (`features_for_uncovered_dimensions`).

    >>> from cbdp_features import periods
    >>> city = Universe(origin=["A", "B"], destination=["A", "B"], time=periods("08:00", "10:00", "1h"))
    >>> odmts(city, zones={"A": "n", "B": "s"}, modes=[["walk", "bus"], ["bus", "walk"]])
    FeatureDag(total 1, time 2, zone 8, mode 4, singleton 8)
    >>> odmts(city, level=3, extra=["origin-time"])
    FeatureDag(total 1, time 2, origin-time 4, singleton 8)
    >>> week = Universe(origin=["A", "B"], destination=["A", "B"], day=["sat", "sun"], time=["am", "pm"])
    >>> odmts(week, level=3)
    FeatureDag(total 1, time 2, day 2, day-time 4, singleton 16)
    """
    if level not in (3, 4, 5):
        raise InputError(f"odmts level {level}: 3 (time), 4 (and zones) or 5 (and modes)")
    features = [Feature("time", by="time")]
    if level >= 4:
        for end in TRIP_ENDS:
            if zones is not None:
                universe = universe.with_attribute(f"{end}.zone", end, zones)
        features.append(Feature("zone", by=["origin.zone", "destination.zone", "time"]))
    if level >= 5:
        if modes is not None:
            universe = _with_modes(universe, modes)
        features.append(Feature("mode", by=["mode", "time"]))
    return FeatureDag(
        universe, [*features, *features_for_uncovered_dimensions(universe, features), *extra_features(extra)]
    )


def features_for_uncovered_dimensions(
    universe: Universe, features: Sequence[Feature], beside: Sequence[str] = ()
) -> list[Feature]:
    """Tables for the dimensions that no feature distinguishes: days by themselves and with the time, others by themselves.

    Without them counts by day would be a guess from single trip types. Stops are left to their zones and to `extra`: with tables
    of both ends every trip type is a cell of its own, and other tables get less of ε (docs/explanation/tables.md has the figures). `beside` are
    attributes that every table groups by as well.
    """
    covered = {dim for feature in features for name in feature.by for dim in universe.attribute(name).of}
    taken = {TOTAL, SINGLETON, *(feature.name for feature in features)}
    tables = []
    for name, dimension in universe.dimensions.items():
        if name in (*TRIP_ENDS, *covered) or len(dimension) == 1:
            continue
        tables.append(Feature(f"by-{name}" if name in taken else name, by=[*beside, name]))
        if name == DAY_DIMENSION and "time" in universe.dimensions:
            tables.append(Feature("day-time", by=[*beside, name, "time"]))
    return tables


def extra_features(names: Sequence[str]) -> list[Feature]:
    """The further features of these names."""
    if isinstance(names, str):
        raise InputError(f"extra is {names!r}: give a list of names")
    for name in names:
        if name not in EXTRA_FEATURES:
            raise InputError(f"unknown extra feature {name!r}: there are {', '.join(EXTRA_FEATURES)}")
    return [Feature(name, by=EXTRA_FEATURES[name]) for name in names]


def _with_modes(universe: Universe, modes: Labels) -> Universe:
    """Modes are of (origin, destination), or of the time as well: their own shape says which."""
    triple = ("origin", "destination", "time")
    return universe.with_attribute("mode", triple if _number_of_dimensions(modes) == 3 else triple[:2], modes)


def _number_of_dimensions(modes: Labels) -> int:
    if isinstance(modes, Mapping):
        if not modes:
            raise InputError("modes is empty: label every (origin, destination)")
        return len(next(iter(modes)))
    if callable(modes):
        taken = signature(modes).parameters.values()
        return sum(
            p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in taken
        )
    return np.ndim(np.asarray(modes, dtype=object))


def opal(universe: Universe) -> FeatureDag:
    """Opal's tables for taps ⟨tap, time, location⟩: by time, by location and by both, each for tap-ons and tap-offs.

    Days and further dimensions get tables of their own, as with `odmts`.

    >>> taps = Universe(tap=["on", "off"], time=["08:00", "08:15"], location=["Manly", "Quay", "Circular"])
    >>> opal(taps)
    FeatureDag(total 1, tap 2, time 4, location 6, singleton 12)
    """
    features = opal_features()
    return FeatureDag(
        universe, [*features, *features_for_uncovered_dimensions(universe, features, beside=["tap"])]
    )


def opal_features() -> list[Feature]:
    """Opal's tables, without those for further dimensions."""
    return [
        Feature("tap", by="tap"),
        Feature("time", by=["tap", "time"]),
        Feature("location", by=["tap", "location"]),
    ]
