"""One contract for all mechanisms, and the figures that were published of them (tests/app attacks their claims)."""

from __future__ import annotations

import inspect
import math
from fractions import Fraction

import numpy as np
import pytest

import cbdp
from cbdp.errors import BudgetError, InputError
from cbdp.mechanisms import (
    ConstraintBased,
    Hierarchical,
    Laplace,
    Mechanism,
    StabilityHistogram,
    ThresholdLaplace,
    nested,
)
from cbdp.privacy.accounting import Parallel, Sequential
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.unit import Person, Trip

ALL = [Laplace, Hierarchical, ConstraintBased, StabilityHistogram, ThresholdLaplace]
CONSISTENT = [Laplace, Hierarchical, ConstraintBased]
CITY = cbdp.datasets.ann_arbor(seed=3, hours=("08:00", "09:00"))
TINY = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"]), [])


@pytest.mark.parametrize("kind", ALL)
def test_contract(kind: type[Mechanism]) -> None:
    """Features and ε in, a release of whole non-negative trips out, in canonical order, from secure noise."""
    mechanism = kind(CITY.features(), epsilon=1)
    release = mechanism.release(CITY.trips)
    assert release.secure
    assert release.mechanism == kind.name
    assert release.value.dtype == np.int64
    assert (release.value > 0).all()
    assert (np.diff(release.index) > 0).all()
    columns = release.trips().columns()
    assert list(columns) == ["origin", "destination", "time", "count"]
    assert len(columns["origin"]) == len(release.index)
    assert mechanism.claim().cost.epsilon == 1


@pytest.mark.parametrize("kind", CONSISTENT)
def test_tables_add_up(kind: type[Mechanism]) -> None:
    """Every feature's published counts are sums of the published trips."""
    dag = CITY.features()
    release = kind(dag, epsilon=1).simulate(CITY.trips, seed=1)
    for name in dag.features:
        assert release.counts(name).sum() == release.total
    time = release.counts("zone").reshape(16, -1).sum(axis=0)
    assert release.counts("time").tolist() == time.tolist()


@pytest.mark.parametrize("kind", ALL)
def test_a_release_takes_no_random_state(kind: type[Mechanism]) -> None:
    """`release` has no seed and no source; `simulate` has a seed and marks what it returns as insecure."""
    assert set(inspect.signature(kind.release).parameters) == {"self", "trips", "columns", "clock"}
    simulated = kind(CITY.features(), epsilon=1).simulate(CITY.trips, seed=7)
    again = kind(CITY.features(), epsilon=1).simulate(CITY.trips, seed=7)
    assert not simulated.secure
    assert simulated.value.tolist() == again.value.tolist()


def test_a_release_refuses_counts_bounded_by_a_seed() -> None:
    """Which trips of a person were dropped must be as secret as the noise; a simulation may use such counts."""
    card = Person("card", 1)
    trips = {"stop": ["A", "B"], "card": ["x", "x"]}
    counts = cbdp.count(trips, TINY.universe, unit=card, entropy=InsecureSeededEntropy(0))
    with pytest.raises(InputError, match="seeded source"):
        Laplace(TINY, 1, unit=card).release(counts)
    assert not Laplace(TINY, 1, unit=card).simulate(counts, seed=0).secure
    assert Laplace(TINY, 1, unit=card).release(cbdp.count(trips, TINY.universe, unit=card)).secure


@pytest.mark.parametrize("kind", ALL)
def test_row_order_and_rows_outside_change_nothing(kind: type[Mechanism]) -> None:
    """Under one noise source, shuffled rows and rows outside the universe give the same release."""
    order = np.random.default_rng(0).permutation(len(CITY.trips["origin"]))
    shuffled = {k: np.append(v[order], "nowhere") for k, v in CITY.trips.items()}
    mechanism = kind(CITY.features(), epsilon=1)
    one, two = mechanism.simulate(CITY.trips, seed=2), mechanism.simulate(shuffled, seed=2)
    assert one.index.tolist() == two.index.tolist()
    assert one.value.tolist() == two.value.tolist()


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "a lot"])
def test_bad_epsilon_is_refused_before_data_is_seen(kind: type[Mechanism], epsilon: object) -> None:
    """The constructor says so."""
    with pytest.raises(InputError, match="epsilon"):
        kind(TINY, epsilon=epsilon)  # type: ignore[arg-type]


def test_bad_settings_are_refused() -> None:
    """Each names the value and what to do."""
    with pytest.raises(InputError, match="needs a FeatureDag"):
        Laplace("zone", 1)  # type: ignore[arg-type]
    with pytest.raises(BudgetError, match="more than epsilon"):
        ConstraintBased(TINY, 1, budget={"total": 0.6, "singleton": 0.6})
    with pytest.raises(InputError, match="singleton"):
        ConstraintBased(TINY, 1, measured=["total"])
    with pytest.raises(InputError, match="delta"):
        StabilityHistogram(TINY, 1, delta=1)
    with pytest.raises(InputError, match="delta is 0"):
        StabilityHistogram(TINY, 1, delta=0)
    with pytest.raises(InputError, match="unknown noise law 'gauss': did you mean 'gaussian'"):
        Laplace(TINY, 1, law="gauss")
    with pytest.raises(InputError, match="zeros"):
        ThresholdLaplace(TINY, 1, zeros="kept")
    with pytest.raises(InputError, match="unknown feature"):
        Hierarchical(TINY, 1, levels=["zone"])
    counts = cbdp.count(np.array([1, 0]), TINY.universe)
    with pytest.raises(InputError, match="bounded for"):
        Laplace(TINY, 1, unit=Person("card", 2)).release(counts)


def test_sensitivity_reaches_the_noise() -> None:
    """The scale is sensitivity over share of ε, and nobody sets it by hand."""
    trips = {"stop": ["A", "A", "B"], "card": ["x", "x", "y"]}
    for unit, sensitivity in [(Trip(), 1), (Trip("replace"), 2), (Person("card", 5), 5)]:
        release = ConstraintBased(TINY, 1, unit=unit, preset="paper").simulate(trips, seed=0)
        assert {m.scale for m in release.measurements} == {Fraction(2 * sensitivity)}
        assert {m.epsilon for m in release.measurements} == {Fraction(1, 2)}


# --- published figures -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "published"), [(0.1, 320_940), (0.05, 656_577), (0.01, 3_312_350)])
def test_laplace_invents_the_published_number_of_trips(epsilon: float, published: int) -> None:
    """Clipping makes millions of trips out of 4,878 (within 8 %, simulated and expected)."""
    city = cbdp.datasets.ann_arbor(seed=0, hours=("08:00", "10:00"))
    mechanism = Laplace(city.features(), epsilon)
    assert mechanism.simulate(city.trips, seed=0).total == pytest.approx(published, rel=0.08)
    assert mechanism.expected_total(4878) == pytest.approx(published, rel=0.08)


def test_laplace_over_the_service_day() -> None:
    """261,032 trips out of 37,714 at ε = 1 (within 2 %)."""
    city = cbdp.datasets.ann_arbor(seed=0)
    total = Laplace(city.features(), 1).simulate(city.trips, seed=0).total
    assert total == pytest.approx(261_032, rel=0.02)


@pytest.mark.slow
def test_constraint_based_beats_laplace_by_an_order_of_magnitude_when_epsilon_is_small() -> None:
    """Root mean square error per trip type on the sparse city at ε = 0.1 and 0.01; and hierarchical does not."""
    city = cbdp.datasets.ann_arbor(seed=0, hours=("08:00", "10:00"))
    truth, dag = city.counts(), city.features()

    def error(mechanism: Mechanism) -> float:
        release = mechanism.simulate(truth, seed=0)
        return float(np.sqrt(np.mean((release.counts("singleton") - truth) ** 2)))

    for epsilon, factor in [(1, 1.1), (0.1, 3), (0.01, 15)]:
        best = error(ConstraintBased(dag, epsilon))
        assert error(Laplace(dag, epsilon)) > factor * best
        assert error(Hierarchical(dag, epsilon)) > factor * best


def test_nested_features_form_a_tree() -> None:
    """The paper's H5: each level splits the one above, and its QP twins are one line each."""
    dag = CITY.features()
    tree = nested(dag)
    assert [list(e) for e in tree.edges] == [
        ["time", "total"],
        ["zone", "time"],
        ["mode", "zone"],
        ["singleton", "mode"],
    ]
    for weights in ("uniform", "size"):
        release = ConstraintBased(tree, 1, weights=weights).simulate(CITY.trips, seed=1)
        assert release.estimate is not None
        assert release.estimate.solution.kkt_residual < 1e-9


# --- Opal ------------------------------------------------------------------------------------------------------------


def _opal_part() -> tuple[cbdp.FeatureDag, np.ndarray]:
    """One day of ferry tap-ons by time and location."""
    from benchmarks.harness.opal_taps import opal_taps

    taps = opal_taps(seed=0)
    universe = taps.universes["ferry"]
    counts = taps.counts(taps.days[0], "ferry").reshape([len(d) for d in universe.dimensions.values()])[0]
    dims = {n: universe.dimensions[n] for n in ("time", "location")}
    dag = cbdp.FeatureDag(
        cbdp.Universe(**dims), [cbdp.Feature("time", by="time"), cbdp.Feature("location", by="location")]
    )
    return dag, counts.reshape(-1)


def test_stability_histogram_is_algorithm_1() -> None:
    """Scale 2/ε, threshold 2 ln(2/δ)/ε + 1, zeros never appear, and tables disagree."""
    dag, truth = _opal_part()
    budget = {"time": 1, "location": 1, "singleton": 2}
    mechanism = StabilityHistogram(dag, 4, budget=budget, delta=Fraction(1, 8_000_000))
    assert mechanism.scale("time") == 2
    assert mechanism.scale("singleton") == 1
    assert mechanism.threshold_of("time") == pytest.approx(2 * math.log(16_000_000) + 1)
    assert mechanism.threshold_of("singleton") == pytest.approx(math.log(16_000_000) + 1)
    release = mechanism.simulate(truth, seed=0)
    published = release.counts("singleton")
    assert (published[truth == 0] == 0).all()
    assert published[published > 0].min() >= mechanism.threshold_of("singleton")
    assert release.counts("time").sum() != published.sum()
    day = mechanism.claim().cost
    both = Parallel((Sequential((day, day), "kinds of tap"),) * 56, "day × mode parts")
    assert (both.epsilon, both.delta) == (8, Fraction(6, 8_000_000))


def test_constraint_based_opal_tables_agree_and_perturb_zeros() -> None:
    """What the assessment asked for: pure ε-DP, zeros perturbed, tables that agree."""
    dag, truth = _opal_part()
    mechanism = ConstraintBased(dag, 4, unit=Trip("replace"))
    release = mechanism.simulate(truth, seed=0)
    leaves = release.counts("singleton").reshape(96, -1)
    assert release.counts("time").tolist() == leaves.sum(axis=1).tolist()
    assert release.counts("location").tolist() == leaves.sum(axis=0).tolist()
    noisy = next(m for m in release.measurements if m.feature == "singleton").values
    assert (noisy[truth == 0] != 0).mean() > 0.3
    assert mechanism.claim().cost.delta == 0


def test_second_algorithm_is_marked_as_not_private() -> None:
    """Its δ lower bound is the chance that one trip shows: near the assessment's 2 in a million at p = 1.4."""
    mechanism = ThresholdLaplace(TINY, Fraction(10, 14), tables=["singleton"])
    claim = mechanism.claim()
    assert not claim.holds
    assert "not differentially private" in str(claim)
    assert mechanism.scale("singleton") == Fraction(14, 10)
    assert 1e-6 < mechanism.detection("singleton") < 5e-6
    assert mechanism.detection("singleton", group=12) > 1000 * mechanism.detection("singleton")
    assert ThresholdLaplace(TINY, 1, zeros="perturbed").claim().holds
