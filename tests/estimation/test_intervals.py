"""Intervals hold the truth as often as they say, for every mechanism, at zeros and elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

import cbdp
from cbdp.errors import InputError
from cbdp.estimation.intervals import Interval
from cbdp.estimation.posterior import Posterior
from cbdp.mechanisms import (
    ConstraintBased,
    Hierarchical,
    Laplace,
    Mechanism,
    StabilityHistogram,
    ThresholdLaplace,
)

STOPS = cbdp.Dimension(
    [f"s{i}" for i in range(16)], zone=[f"z{i // 2 if i < 6 else 3 + i // 8}" for i in range(16)]
)
TIMES = [f"t{i}" for i in range(8)]
UNIVERSE = cbdp.Universe(origin=STOPS, destination=STOPS, time=TIMES).with_attribute(
    "mode", ("origin", "destination"), lambda o, d: (3 * int(o[1:]) + int(d[1:])) % 7
)
DAG = cbdp.FeatureDag(
    UNIVERSE,
    [
        cbdp.Feature("time", by="time"),
        cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"]),
        cbdp.Feature("mode", by=["mode", "time"]),
    ],
)
LEVELS = ["total", "time", "zone", "mode"]


def _trips(full: float, mean: float, seed: int = 0) -> np.ndarray:
    """A share `full` of the types has trips; whole zone pairs have none."""
    rng = np.random.default_rng(seed)
    counts = np.where(rng.random(UNIVERSE.size) < full, rng.geometric(1 / mean, UNIVERSE.size), 0)
    zone = DAG.partition("zone").of_every_type()
    counts[rng.random(DAG.size("zone"))[zone] < 0.3] = 0
    return counts.astype(np.int64)


def intervals(
    mechanism: Mechanism, release: cbdp.Release, confidence: float = 0.9, **options: Any
) -> Mapping[str, Interval]:
    return mechanism.intervals(release, confidence, **options)


SPARSE, DENSE = _trips(0.02, 12.0), _trips(0.6, 4.0)


def _coverage(
    mechanism: Mechanism, trips: np.ndarray, releases: int, **options: Any
) -> dict[str, np.ndarray]:
    """Whether each interval holds the truth: release × element."""
    counts = cbdp.count(trips, UNIVERSE)
    held: dict[str, list[np.ndarray]] = {}
    for seed in range(releases):
        release = mechanism.simulate(counts, seed)
        for name, made in intervals(mechanism, release, **options).items():
            truth, published = counts.of(mechanism.features, name), release.counts(name)
            assert (made.low >= 0).all()
            assert ((made.low <= published) & (published <= made.high)).all()
            held.setdefault(name, []).append((made.low <= truth) & (truth <= made.high))
    return {name: np.array(rows) for name, rows in held.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "trips"),
    [
        (ConstraintBased(DAG, epsilon=1), SPARSE),
        (ConstraintBased(DAG, epsilon="0.1"), SPARSE),
        (ConstraintBased(DAG, epsilon=1), DENSE),
        (ConstraintBased(DAG, epsilon=1, preset="paper"), SPARSE),
        (ConstraintBased(DAG, epsilon="0.1", preset="paper"), SPARSE),
        (ConstraintBased(DAG, epsilon=1, preset="paper"), DENSE),
        (ConstraintBased(DAG, epsilon="0.3", weights="inverse-variance"), SPARSE),
        (Laplace(DAG, epsilon=1), SPARSE),
        (Hierarchical(DAG, epsilon=1), SPARSE),
    ],
    ids=[
        *("sparse", "small-epsilon", "dense", "paper, sparse", "paper, small-epsilon", "paper, dense"),
        *("inverse-variance", "laplace", "hierarchical"),
    ],
)
def test_coverage(mechanism: Mechanism, trips: np.ndarray) -> None:
    """Pooled over releases and elements, intervals of 90 % hold the truth in about 90 % of every level's elements."""
    held = _coverage(mechanism, trips, 8)
    assert list(held) == LEVELS
    for name, rows in held.items():
        error = np.sqrt(max(rows.mean(axis=1).var() / len(rows), 0.09 / rows.size))
        assert 0.88 - 3 * error <= rows.mean() <= 0.95 + 3 * error, name


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["best", "paper"])
def test_true_zeros_and_others_are_covered_alike(preset: str) -> None:
    """Each true count is held as often: neither zeros nor the busy elements pay for the other's coverage."""
    counts = cbdp.count(SPARSE, UNIVERSE)
    mechanism = ConstraintBased(DAG, epsilon="0.2", preset=preset)
    held = _coverage(mechanism, SPARSE, 8, features=["zone"])["zone"]
    zero = counts.of(DAG, "zone") == 0
    assert 50 < zero.sum() < 190
    assert 0.86 <= held[:, zero].mean() <= 0.97
    assert 0.84 <= held[:, ~zero].mean() <= 0.97


def test_inflated_totals_still_hold_the_truth() -> None:
    """Laplace noise invents trips; the interval reaches down from the published total to the true one."""
    mechanism = Laplace(DAG, epsilon=1)
    release = mechanism.simulate(SPARSE, seed=3)
    total = intervals(mechanism, release)["total"]
    assert release.total > 2 * SPARSE.sum()
    assert total.high[0] == release.total
    assert abs(total.low[0] - SPARSE.sum()) < 6 * np.sqrt(2 * UNIVERSE.size)


def test_repeatable_and_frozen() -> None:
    """The same release gives the same intervals, whole numbers that cannot be replaced; another gives others."""
    mechanism = ConstraintBased(DAG, epsilon=1)
    release, other = (mechanism.simulate(SPARSE, seed=s) for s in (1, 2))
    first, again, differs = (
        intervals(mechanism, r, features=["zone"])["zone"] for r in (release, release, other)
    )
    assert first.low.dtype == first.high.dtype == np.int64
    assert first.low.tolist() == again.low.tolist()
    assert first.high.tolist() == again.high.tolist()
    assert first.high.tolist() != differs.high.tolist()
    with pytest.raises(FrozenInstanceError):
        first.low = first.high  # type: ignore[misc]


@pytest.mark.parametrize("kind", [Laplace, ConstraintBased])
def test_more_confidence_makes_wider_intervals(kind: type[Mechanism]) -> None:
    """With the same runs, the mean width of every level grows with the confidence."""
    mechanism = kind(DAG, epsilon="0.5")
    release = mechanism.simulate(SPARSE, seed=4)
    made = [intervals(mechanism, release, confidence) for confidence in (0.5, 0.8, 0.95)]
    for name in LEVELS:
        width = [float(np.mean(m[name].high - m[name].low)) for m in made]
        assert width == sorted(width)
        assert width[0] < width[2]


def test_intervals_of_the_sparse_path() -> None:
    """Noise drawn only where it matters: intervals are as wide as the table's own noise. Noise on every type tells more."""
    widths, busy = [], []
    for sparse in (False, True):
        hiding = Posterior(revealed=DAG.universe.size // 4) if sparse else None
        mechanism = ConstraintBased(DAG, epsilon=1, sparse=sparse, estimator=hiding)
        release = mechanism.simulate(SPARSE, seed=6)
        found = intervals(mechanism, release, features=["zone"])["zone"]
        assert (found.low <= release.counts("zone")).all()
        assert (release.counts("zone") <= found.high).all()
        widths.append(float(np.mean(found.high - found.low)))
        law = next(m.noise for m in release.measurements if m.feature == "zone")
        far = found.low > 0  # where counts below zero do not shorten it
        busy.append(float(np.mean((found.high - found.low)[far])) / (2 * law.half_width(0.9)))
        assert far.sum() > 10
    assert 0.9 < busy[1] < 1.1
    assert busy[0] < 0.8 * busy[1]
    assert 0.4 < widths[0] / widths[1] < 1


def test_suppressed_counts_may_have_been_as_large_as_the_threshold() -> None:
    """A type that a histogram suppressed is zero, or too small to show: its interval says so."""
    mechanism = StabilityHistogram(DAG, epsilon=1, tables=["singleton"], unit="trip")
    trips = _trips(0.1, 60.0, seed=5)
    release = mechanism.simulate(trips, seed=5)
    made = intervals(mechanism, release, features=["singleton"])["singleton"]
    hidden = release.counts("singleton") == 0
    assert (made.low[hidden] == 0).all()
    assert (made.high[hidden] >= mechanism.threshold_of("singleton") - 1).all()
    assert ((made.low <= trips) & (trips <= made.high))[trips > 0].mean() > 0.8


def test_an_empty_release_has_intervals() -> None:
    """When nothing is published the intervals start at zero and still hold a few trips."""
    mechanism = ConstraintBased(DAG, epsilon="0.1")
    drawn = mechanism.simulate(np.zeros(UNIVERSE.size, dtype=np.int64), seed=1)
    nothing = np.empty(0, dtype=np.int64)
    empty = replace(drawn, index=nothing, value=nothing)
    made = intervals(mechanism, empty)
    for name in LEVELS:
        assert (made[name].low == 0).all()
        assert (made[name].high >= 0).all()


def test_a_measurement_in_another_order_is_not_used() -> None:
    """Answers that do not belong to the elements are far from the truth in every run, so they are left alone."""
    mechanism = Hierarchical(DAG, epsilon=1)
    release = mechanism.simulate(DENSE, seed=1)
    shapes = {m.feature: len(m.values) for m in release.measurements}
    assert shapes["zone"] == DAG.size("zone")
    assert shapes["mode"] != DAG.size("mode")
    made = intervals(mechanism, release, features=["zone", "mode"])
    truth = cbdp.count(DENSE, UNIVERSE)
    for name, interval in made.items():
        held = (interval.low <= truth.of(DAG, name)) & (truth.of(DAG, name) <= interval.high)
        assert held.mean() > 0.8


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"confidence": 1}, "between 0 and 1"),
        ({"confidence": 90}, "between 0 and 1"),
        ({"features": ["zones"]}, "unknown feature 'zones'"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any], says: str) -> None:
    """Each names the value and what would do."""
    mechanism = Laplace(DAG, epsilon=1)
    with pytest.raises(InputError, match=says):
        intervals(mechanism, mechanism.simulate(SPARSE, seed=0), **wrong)


def test_the_mechanism_must_be_the_one_that_made_the_release() -> None:
    """Another mechanism, another ε or other features would simulate other errors."""
    release = Laplace(DAG, epsilon=1).simulate(SPARSE, seed=0)
    fewer = cbdp.FeatureDag(UNIVERSE, [cbdp.Feature("time", by="time")])
    for other in (ConstraintBased(DAG, epsilon=1), Laplace(DAG, epsilon=2)):
        with pytest.raises(InputError, match="use the one that made it"):
            intervals(other, release)
    with pytest.raises(InputError, match="they must agree"):
        intervals(Laplace(fewer, epsilon=1), release)


@pytest.mark.parametrize("kind", [StabilityHistogram, ThresholdLaplace])
def test_tables_published_on_their_own_are_covered_by_size(kind: type[Mechanism]) -> None:
    """Each table by its own noise and threshold, also where trips do not add up to it: zeros, small and large counts hold alike.

    900 zone counts of 15 releases: 84 % at a true coverage of 90 % has a chance below 10⁻⁸.
    """
    mechanism = kind(DAG, epsilon=3, unit="trip")
    counts = cbdp.count(DENSE, UNIVERSE)
    truth = counts.of(DAG, "zone")
    busiest = np.argsort(-truth)[:60]
    held = []
    for seed in range(15):
        made = intervals(mechanism, mechanism.simulate(counts, seed))
        assert "total" not in made
        held.append((made["zone"].low <= truth) & (truth <= made["zone"].high))
    for which in (truth >= 0, truth == 0, (truth > 0) & (truth < 10), truth >= 10, busiest):
        assert np.array(held)[:, which].mean() >= 0.84


# A feature with very unequal elements that is measured only through a finer one

UNEQUAL = [1, 1, 2, 8, 48]  # stops of each region
PLACES = cbdp.Dimension(range(60), region=np.repeat(np.arange(5), UNEQUAL).tolist())
REGIONS = cbdp.FeatureDag(
    cbdp.Universe(stop=PLACES, time=range(3)),
    [cbdp.Feature("region", by="stop.region"), cbdp.Feature("stop", by="stop")],
)


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["best", "paper"])
def test_unequal_elements_of_an_unmeasured_feature(preset: str) -> None:
    """Each region is covered as often as asked, and its interval is as wide as the noise of its own stops adds up to."""
    truth = np.random.default_rng(3).poisson(60, REGIONS.universe.size)
    mechanism = ConstraintBased(REGIONS, 1, measured=["stop", "singleton"], preset=preset)
    wanted = cbdp.count(truth, REGIONS.universe).of(REGIONS, "region")
    held, width = [], []
    for seed in range(60):
        release = mechanism.simulate(truth, seed)
        made = mechanism.intervals(release, 0.9, features=["region"])["region"]
        held.append((made.low <= wanted) & (wanted <= made.high))
        width.append(made.high - made.low)
    covered = np.mean(held, axis=0)
    assert (covered >= 0.9 - 3.5 * np.sqrt(0.09 / 60)).all(), covered
    assert covered[-1] < 1, "an interval that is never wrong is too wide"
    noise = next(m for m in release.measurements if m.feature == "stop").variance[0]
    # the sum of n stops' noise has deviation √(n v); a normal one is within ±1.64 deviations nine times in ten
    told = np.mean(width, axis=0) / (2 * 1.64 * np.sqrt(noise * np.array(UNEQUAL)))
    assert (told > 0.7).all(), told
    assert (told < 1.3).all(), told


def test_noise_below_zero_makes_nothing_certain() -> None:
    """However far below zero a noisy count is, the interval has an upper end above zero, and grows with the noise."""
    widths = []
    for epsilon in (1, 0.25):
        release = ConstraintBased(DAG, epsilon).simulate(np.zeros(UNIVERSE.size, np.int64), 3)
        zone = release.with_intervals().intervals["zone"]
        noisy = next(m for m in release.measurements if m.feature == "zone")
        below = noisy.values < -2 * np.sqrt(np.mean(noisy.variance))
        assert below.any()
        assert (zone.high[below] > 0).all()
        widths.append(zone.high[below].min())
    assert widths[1] > 2 * widths[0]
