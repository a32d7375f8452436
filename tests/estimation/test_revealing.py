"""How much is revealed of universes that are not listed: all where memory allows it, and then they are like any other."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import cbdp
from cbdp.estimation import post_process
from cbdp.estimation.posterior import Posterior, sparse
from cbdp.estimation.posterior.settings import TUNING
from cbdp.features import SINGLETON
from cbdp.measuring import MAX_DENSE_TRIP_TYPES
from cbdp.mechanisms import ConstraintBased
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.measurement import ALL_REVEALED_THRESHOLD, Measurement
from cbdp.privacy.noise import NoiseDistribution, noise_distribution

STOPS = cbdp.Dimension(range(30), zone=[s // 10 for s in range(30)])
UNIVERSE = cbdp.Universe(origin=STOPS, destination=STOPS, time=range(8))
DAG = cbdp.FeatureDag(
    UNIVERSE,
    [cbdp.Feature("time", by="time"), cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"])],
)
SIZES = DAG.cells.partition.sizes


def trips(seed: int, each: float = 0.3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    busy = rng.lognormal(0, 1, 30)
    origin, destination, _ = UNIVERSE.unrank_codes(np.arange(UNIVERSE.size))
    rate = busy[origin] * busy[destination]
    return rng.poisson(each * UNIVERSE.size * rate / rate.sum())


def answers(truth: np.ndarray, seed: int = 0) -> list:
    counts = cbdp.count(truth, UNIVERSE)
    return cbdp.measure(counts, DAG, 1, sparse=True, entropy=InsecureSeededEntropy(seed))


# --- all of it --------------------------------------------------------------------------------------------------------


def test_as_many_types_are_revealed_as_are_listed() -> None:
    """The limits are one number: no universe is revealed in part that could be listed, and none listed in vain."""
    assert TUNING.revealed == MAX_DENSE_TRIP_TYPES
    assert Posterior().revealed == MAX_DENSE_TRIP_TYPES


@pytest.mark.parametrize("law", ["geometric", "gaussian"])
def test_with_all_revealed_the_estimate_is_that_of_listed_types(law: str) -> None:
    """The same noisy counts lead to the same estimate, whether types were listed or all of them revealed."""
    counts = cbdp.count(trips(1), UNIVERSE)
    paid = {"epsilon": 1} if law == "geometric" else {"rho": Fraction(1, 8)}
    given = [
        cbdp.measure(counts, DAG, law=law, sparse=sparse, entropy=InsecureSeededEntropy(5), **paid)
        for sparse in (False, True)
    ]
    listed, revealed = (post_process(DAG, told) for told in given)
    whole = given[1][-1].measurement()
    assert whole.elements is None
    assert whole.floor is None
    np.testing.assert_array_equal(whole.values, given[0][-1].values)
    np.testing.assert_allclose(revealed.counts(SINGLETON), listed.counts(SINGLETON), rtol=0, atol=1e-9)
    again = post_process(DAG, [*given[1][:-1], whole])
    assert again.counts(SINGLETON).tobytes() == revealed.counts(SINGLETON).tobytes()


def test_a_prior_serves_where_all_is_revealed() -> None:
    """As where types are listed."""
    prior = np.linspace(1, 2, UNIVERSE.size)
    *tables, leaves = answers(trips(2))
    made = post_process(DAG, [*tables, leaves], prior=prior)
    again = post_process(DAG, [*tables, leaves.measurement()], prior=prior)
    assert made.counts(SINGLETON).tobytes() == again.counts(SINGLETON).tobytes()


@pytest.mark.parametrize("law", ["geometric", "gaussian"])
def test_the_rest_is_revealed_from_its_conditional_law(law: str) -> None:
    """All that floors hid, revealed later, has the law of noise that is not above them (six standard errors)."""
    dag = cbdp.FeatureDag(cbdp.Universe(stop=range(40_000)), [])
    counts = cbdp.count({"stop": [3, 3, 9]}, dag.universe)
    paid = {"epsilon": Fraction(1, 2)} if law == "geometric" else {"rho": Fraction(1, 20)}
    answer = cbdp.measure(counts, dag, law=law, sparse=True, entropy=InsecureSeededEntropy(3), **paid)[-1]
    answer.lower(np.array([1]))
    above = answer.measurement()
    answer.lower(np.array([ALL_REVEALED_THRESHOLD]))
    whole = answer.measurement()
    assert whole.floor is None
    np.testing.assert_array_equal(whole.values[above.elements], above.values)
    assert (np.delete(whole.values, above.elements) <= 1).all()
    for z in range(-6, 7):
        chance = float(answer.noise.pmf(z))
        seen = np.mean(np.delete(whole.values, [3, 9]) == z)
        assert abs(seen - chance) < 6 * np.sqrt(chance / 40_000), z


class Failing(InsecureSeededEntropy):
    """Is interrupted at the draw that it is told to."""

    left = -1

    def words(self, *given: object) -> np.ndarray:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return super().words(*given)


@pytest.mark.parametrize("floor", [ALL_REVEALED_THRESHOLD, 2])
def test_an_interrupted_draw_reveals_nothing(floor: int) -> None:
    """What was asked for is revealed as a whole or not at all, and can be asked for again."""
    entropy = Failing(4)
    *_, leaves = cbdp.measure(cbdp.count(trips(3), UNIVERSE), DAG, 1, sparse=True, entropy=entropy)
    entropy.left = 2 if floor > 0 else 1
    with pytest.raises(KeyboardInterrupt):
        leaves.lower(np.full(len(SIZES), floor))
    assert len(leaves.measurement().values) == 0
    leaves.lower(np.full(len(SIZES), floor))
    told = leaves.measurement()
    assert (told.values > floor).all()
    assert 0 < len(told.values) <= UNIVERSE.size


# --- some of it -------------------------------------------------------------------------------------------------------


class Asked:
    """Answers to no question: only what floors depend on."""

    floor = np.full(len(SIZES), 2**61)

    def __init__(self, law: NoiseDistribution) -> None:
        self.noise = law


@pytest.fixture
def every_height(monkeypatch: pytest.MonkeyPatch) -> None:
    """Floors are not merged, as they are where that saves less than it costs."""
    monkeypatch.setattr("cbdp.estimation.projection.DRAWS_PER_THRESHOLD_LEVEL", 1)


def test_floors_follow_from_noisy_tables_and_sizes() -> None:
    """The same tables lead to the same floors, whatever the trips and the noise of their types."""
    *tables, one = answers(trips(4), 1)
    other = answers(trips(5), 2)[-1]
    floors = [
        sparse.posterior_thresholds(DAG, tables, leaves, 2000) for leaves in (one, other, Asked(one.noise))
    ]
    np.testing.assert_array_equal(floors[0], floors[1])
    np.testing.assert_array_equal(floors[0], floors[2])


@pytest.mark.parametrize("law", ["geometric", "gaussian", "rounded"])
@pytest.mark.parametrize("most", [6000, 2000, 400])
def test_about_as_many_are_revealed_as_allowed(law: str, most: int, every_height: None) -> None:
    """Of noise alone, half as many exceed the floors, to a step of the noise; and none is below 0, where more say nothing new."""
    noise = noise_distribution(law, 6 if law != "gaussian" else Fraction(6))
    tables = [m for m in answers(trips(6)) if isinstance(m, Measurement)]
    floor = sparse.posterior_thresholds(DAG, tables, Asked(noise), most)
    revealed = float(noise.survival(floor) @ SIZES)
    assert 0.6 * most / 2 < revealed < 1.5 * most / 2
    assert floor.min() >= 0


def test_busy_cells_have_lower_floors(every_height: None) -> None:
    """A cell with ten times the trips of another is revealed further down."""
    zone = np.repeat([400.0, 40.0, 4.0], 24)
    tables = [Measurement("total", [zone.sum()], scale=1), Measurement("zone", zone, scale=1)]
    floor = sparse.posterior_thresholds(DAG, tables, Asked(noise_distribution("geometric", 8)), 1500)
    busy = zone[DAG.cells.element_of_cell["zone"]]
    assert floor[busy == 400].max() < floor[busy == 40].min() < floor[busy == 4].min()


def test_floors_stay_high_where_lower_ones_would_tell_nothing() -> None:
    """Where a type has a millionth of a trip, noisy counts below say nothing about stops: floors are those of projection."""
    stops = cbdp.Dimension(range(100_000), zone=[s // 10_000 for s in range(100_000)])
    vast = cbdp.FeatureDag(
        cbdp.Universe(origin=stops, destination=stops), [cbdp.Feature("zone", by=["origin.zone"])]
    )
    tables = [Measurement("total", [5000], scale=1), Measurement("zone", np.full(10, 500.0), scale=1)]
    leaves = Asked(noise_distribution("geometric", 2))
    leaves.floor = np.full(vast.cells.size, 2**61)
    made = sparse.posterior_thresholds(vast, tables, leaves, TUNING.revealed)
    np.testing.assert_array_equal(made, sparse.initial_thresholds(vast, tables, leaves))


@pytest.mark.parametrize("most", [3000, 500])
def test_what_is_published_leads_to_the_same_estimate(most: int) -> None:
    """Whatever a later reader's own limit is."""
    *tables, leaves = answers(trips(7))
    made = post_process(DAG, [*tables, leaves], estimator=Posterior(revealed=most))
    published = leaves.measurement()
    assert 0 < len(published.values) < UNIVERSE.size
    for later in (Posterior(revealed=most), Posterior()):
        again = post_process(DAG, [*tables, published], estimator=later)
        assert again.counts(SINGLETON).tobytes() == made.counts(SINGLETON).tobytes()


@pytest.mark.slow
def test_the_fewer_are_revealed_the_less_sharp_and_no_step() -> None:
    """With floors at zero the estimate is about as sharp as with all types listed; with higher ones less so (fixed seeds)."""
    found: dict[int, float] = {}
    for most in (UNIVERSE.size, UNIVERSE.size - 1, UNIVERSE.size // 16):
        off = []
        for seed in range(6):
            truth = trips(seed + 20)
            mechanism = ConstraintBased(DAG, 1, sparse=True, estimator=Posterior(revealed=most))
            made = mechanism.simulate(truth, seed).estimate.counts(SINGLETON)
            off.append(np.mean((made - truth) ** 2))
        found[most] = float(np.sqrt(np.mean(off)))
    listed, half, few = found.values()
    assert half < 1.05 * listed
    assert half < few < 1.5 * listed
