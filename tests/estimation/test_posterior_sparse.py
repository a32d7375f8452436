"""The posterior estimator where trip types are not listed: censored counts, dealt trips, accuracy."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import poisson

import cbdp
from cbdp.counting.counts import Counts
from cbdp.errors import InputError
from cbdp.estimation import Estimate, post_process
from cbdp.estimation.posterior import Posterior, censored, likelihood, sparse
from cbdp.estimation.posterior import sparse as dealing
from cbdp.estimation.posterior.settings import TUNING
from cbdp.features import SINGLETON, FeatureDag
from cbdp.measuring.samplers.laplace import GeometricSampler
from cbdp.mechanisms import ConstraintBased
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.measurement import Measurement
from cbdp.privacy.noise import noise_distribution

CITY = cbdp.datasets.ann_arbor(seed=0, hours=("08:00", "10:00"))
DAG = CITY.features()
TRUTH = cbdp.count(CITY.trips, DAG.universe)
HIDING = Posterior(revealed=DAG.universe.size // 4)  # as if the types were too many to reveal all


def vast(stops: int, periods: int = 20) -> FeatureDag:
    """Stops in ten zones and of three kinds: the tables do not grow with the universe."""
    every = np.arange(stops)
    place = cbdp.Dimension(range(stops), zone=(every * 10 // stops).tolist(), kind=(every % 3).tolist())
    universe = cbdp.Universe(origin=place, destination=place, time=range(periods))
    by = {name: [f"origin.{name}", f"destination.{name}", "time"] for name in ("zone", "kind")}
    return FeatureDag(
        universe, [cbdp.Feature("time", by="time"), *(cbdp.Feature(n, by=b) for n, b in by.items())]
    )


def some(dag: FeatureDag, trips: int, seed: int) -> Counts:
    """Trips between stops of unequal size; few types have many of them."""
    rng = np.random.default_rng(seed)
    stops, periods = len(dag.universe.dimensions["origin"]), len(dag.universe.dimensions["time"])
    types = trips // 8
    ends = [(stops * rng.random(types) ** 2.5).astype(np.int64) for _ in range(2)]
    index = np.unique(dag.universe.rank_codes([*ends, rng.integers(0, periods, types)]))
    likely = rng.pareto(1.2, len(index)) + 0.1
    value = 1 + rng.multinomial(trips - len(index), likely / likely.sum())
    return Counts(dag.universe, index.astype(np.int64), value.astype(np.int64))


def cell_counts(dag: FeatureDag, index: np.ndarray, value: np.ndarray) -> np.ndarray:
    cell = dag.cells.partition.element_of(dag.universe.unrank_codes(index))
    return np.bincount(cell, value, dag.cells.size)


def leaf_error(truth: Counts, index: np.ndarray, value: np.ndarray) -> float:
    """The sum of squares over all types, listed or not."""
    place, inside = np.unique(np.concatenate([truth.index, index]), return_inverse=True)
    return float(np.sum(np.bincount(inside, np.concatenate([-truth.value, value]), len(place)) ** 2))


def errors(dag: FeatureDag, truth: Counts, estimate: Estimate) -> dict[str, float]:
    """Sums of squared errors by feature."""
    held = cell_counts(dag, truth.index, truth.value)
    found = {SINGLETON: leaf_error(truth, *estimate.trips())}
    for name, inside in dag.cells.element_of_cell.items():
        found[name] = float(np.sum((np.bincount(inside, held) - estimate.counts(name)) ** 2))
    return found


def mean_errors(
    dag: FeatureDag, truth: Counts, epsilon: object, seeds: range, **how: object
) -> dict[str, float]:
    """Root mean squares over runs, times the root of a feature's size."""
    mechanism = ConstraintBased(dag, epsilon, **how)
    runs = [errors(dag, truth, mechanism.simulate(truth, seed=s).estimate) for s in seeds]
    return {name: float(np.sqrt(np.mean([run[name] for run in runs]))) for name in runs[0]}


def measured(dag: FeatureDag, truth: Counts, epsilon: Fraction, seed: int = 0) -> list:
    """Tables, and last the noisy counts of types, revealed on demand."""
    return cbdp.measure(truth, dag, epsilon, sparse=True, entropy=InsecureSeededEntropy(seed))


# --- the law of what is not seen --------------------------------------------------------------------------------------


def test_mixtures_keep_the_mean_and_add_up() -> None:
    """Whatever the shape, a mixture is a law, and its mean is the expected count while that lies within the table."""
    means = np.concatenate([[0.0], 1e-9 * 1.3 ** np.arange(180)])
    rate = np.array([1e-8, 1e-6, 1e-3, 0.3, 7.0])
    made = likelihood.lognormal_mixtures(means, rate, censored.CENSORED_SHAPES)
    assert (made >= 0).all()
    assert made.sum(axis=2) == pytest.approx(1.0, abs=1e-9)
    whole = (
        rate[:, None] / (1 - censored.CENSORED_SHAPES[:, 0]) * np.exp(7 * censored.CENSORED_SHAPES[:, 1])
        < means[-1]
    )
    wanted = np.broadcast_to(rate[:, None], whole.shape)
    assert (made @ means)[whole] == pytest.approx(wanted[whole], rel=1e-4)


@pytest.mark.parametrize("law", ["geometric", "rounded", "another_law:Twice"])
@pytest.mark.parametrize("floor", [-3, 0, 4, 11])
def test_censored_counts_by_bayes(floor: int, law: str) -> None:
    """The expected count of a type not above its floor, and its square, are those of a sum over every count and noise."""
    dag = FeatureDag(cbdp.Universe(stop=range(50)), [])
    where = {"elements": np.array([3, 8]), "floor": np.array([floor])}
    leaves = Measurement(SINGLETON, [13, 30], scale=Fraction(5, 2), law=law, **where)
    known = censored.censored_counts(dag, leaves, censored.cell_groups(dag))
    counts = np.arange(200)
    hidden = 1 - noise_distribution(law, Fraction(5, 2)).survival(floor - counts)
    for row, mean in enumerate(known.table.means):
        if mean < 10:  # beyond, the table ends before the law does
            chance = poisson.pmf(counts, mean) * hidden
            assert known.below[row, 0] == pytest.approx(chance.sum(), rel=1e-6)
            assert known.above[row, 0] == pytest.approx(1 - chance.sum(), abs=1e-9)
            assert known.first[row, 0] == pytest.approx(chance @ counts, rel=1e-6)
            assert known.second[row, 0] == pytest.approx(chance @ counts**2, rel=1e-6)


def test_expected_counts_of_cells_follow_clear_tables_and_ignore_noise() -> None:
    """Elements far above noise get what was measured; a table of nothing but noise leaves the total spread evenly."""
    dag = vast(30, 4)
    rng = np.random.default_rng(3)
    time = np.array([4000, 1000, 300, 2700])
    told = [Measurement("total", [8000], scale=2), Measurement("time", time, scale=2)]
    held = sparse._cell_counts(sparse._cell_margins(dag, told), 8000.0, dag.cells.partition.sizes, 0.0)
    assert np.bincount(dag.cells.element_of_cell["time"], held) == pytest.approx(time, rel=0.02)
    noise = GeometricSampler(Fraction(10)).sample(
        dag.size("zone"), InsecureSeededEntropy(int(rng.integers(99)))
    )
    told = [Measurement("total", [400], scale=10), Measurement("zone", noise + 1, scale=10)]
    held = sparse._cell_counts(sparse._cell_margins(dag, told), 400.0, dag.cells.partition.sizes, 0.0)
    assert np.ptp(held / dag.cells.partition.sizes) < 0.2 * 400 / dag.universe.size


# --- dealing ----------------------------------------------------------------------------------------------------------


def taken(dag: FeatureDag, index: np.ndarray) -> censored.GroupPosterior:
    cell = dag.cells.partition.element_of(dag.universe.unrank_codes(index))
    none = np.zeros(len(index))
    return censored.GroupPosterior(
        censored.cell_groups(dag),
        index,
        cell,
        none,
        none,
        none,
        np.zeros(dag.cells.size),
        np.zeros(dag.cells.size),
    )


@pytest.mark.slow
@pytest.mark.parametrize("stops", [12, 40, 200_000])
def test_dealt_trips_are_other_types_of_the_same_cell(stops: int) -> None:
    """Mass stays in its cell, no type is dealt to twice or was known before, and the same seed deals the same."""
    dag = vast(stops, 3)
    rng = np.random.default_rng(1)
    sizes = dag.cells.partition.sizes
    cells = np.repeat(np.arange(dag.cells.size), np.minimum(sizes // 2, 30))
    places = (rng.random(len(cells)) * sizes[cells]).astype(np.int64)
    known = taken(dag, np.unique(dag.cells.partition.type_at(cells, places)))
    mass = rng.gamma(0.3, 100.0, dag.cells.size) * (rng.random(dag.cells.size) < 0.7)
    index, value = dealing.allocate(known, mass, seed=5)
    assert (np.diff(index) > 0).all()
    assert (value > 0).all()
    assert not np.isin(index, known.index).any()
    assert cell_counts(dag, index, value) == pytest.approx(mass, rel=1e-9)
    assert len(index) <= TUNING.min_allocated_types + mass.sum() + dag.cells.size
    again = dealing.allocate(known, mass, seed=5)
    assert np.array_equal(index, again[0])
    assert np.array_equal(value, again[1])
    if stops > 1000:
        assert not np.array_equal(index, dealing.allocate(known, mass, seed=6)[0])


def test_dealing_is_even_within_a_cell() -> None:
    """Each type of a cell is as likely as another: of 300 deals, each gets its share within six standard errors."""
    dag = FeatureDag(cbdp.Universe(stop=range(40)), [])
    known = taken(dag, np.array([0, 7, 20, 39]))
    often = np.zeros(40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dealing, "TUNING", replace(TUNING, min_allocated_types=1, max_allocated_types=1))
        for seed in range(300):
            index, _ = dealing.allocate(known, np.array([9.0]), seed)
            assert len(index) == 9
            often[index] += 1
    free = np.delete(often, known.index)
    assert free.sum() == 2700
    assert (np.abs(free - 75) < 6 * np.sqrt(300 * 0.25 * 0.75)).all()


# --- the whole --------------------------------------------------------------------------------------------------------


class Published:
    """What the engine may use of noisy counts, and nothing else of them."""

    def __init__(self, answer: object) -> None:
        self.lower, self.measurement, self.noise = answer.lower, answer.measurement, answer.noise
        self._floor = lambda: answer.floor

    @property
    def floor(self) -> np.ndarray:
        return self._floor()


def test_estimate_is_a_function_of_what_is_published() -> None:
    """Only the revealed noisy counts are used: with the rest out of reach, the same answer comes out, to the last bit."""
    made = []
    for wrap in (lambda a: a, Published):
        *tables, answer = measured(DAG, TRUTH, Fraction(1), seed=4)
        made.append(post_process(DAG, [*tables, wrap(answer)], estimator=HIDING))
    assert np.array_equal(made[0].index, made[1].index)
    assert np.array_equal(made[0].solution.leaves, made[1].solution.leaves)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [10, 1, Fraction(1, 10), Fraction(1, 100)])
def test_release_is_certified_and_adds_up(epsilon: Fraction) -> None:
    """The certificate holds, every table is the sum of the trips, and rounding keeps every count or says how many it did not."""
    release = ConstraintBased(DAG, epsilon, sparse=True, estimator=HIDING).simulate(TRUTH, seed=2)
    estimate = release.estimate
    assert estimate.solution.kkt_residual < 1e-9
    index, value = estimate.trips()
    assert (value > 0).all()
    held = cell_counts(DAG, index, value)
    for name, inside in DAG.cells.element_of_cell.items():
        assert estimate.counts(name) == pytest.approx(np.bincount(inside, held), abs=1e-6)
        off = np.abs(release.counts(name) - estimate.counts(name)) > 1 + 1e-6
        assert off.sum() == release.violations.get(name, 0), name
        assert np.abs(release.counts(name) - estimate.counts(name)).max() < 3
    assert estimate.counts(SINGLETON).sum() == pytest.approx(estimate.counts("total")[0])


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1, Fraction(1, 10), Fraction(1, 100)])
def test_sparse_city_is_as_accurate_as_with_all_types_listed(epsilon: Fraction) -> None:
    """Types below the floor cost little accuracy, and no table is further off than by projection (fixed seeds; of the few times chance is allowed for)."""
    seeds = range(3)
    ours = mean_errors(DAG, TRUTH, epsilon, seeds, sparse=True, estimator=HIDING)
    dense = mean_errors(DAG, TRUTH, epsilon, seeds, sparse=False, estimator="posterior")
    projected = mean_errors(DAG, TRUTH, epsilon, seeds, sparse=True, estimator="projection")
    assert ours[SINGLETON] < 1.15 * dense[SINGLETON]
    assert ours[SINGLETON] < 0.95 * projected[SINGLETON]
    for name in ("time", "zone", "mode"):
        assert ours[name] < 1.2 * dense[name], name
        assert ours[name] < (1.15 if name == "time" else 1.05) * projected[name], name


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1, Fraction(1, 10)])
def test_vast_universe(epsilon: Fraction) -> None:
    """Among 10¹² types, trips are listed and not types; tables are no worse than by projection, leaves better."""
    dag = vast(223_607)
    truth = some(dag, 40_000, seed=1)
    assert dag.universe.size > 10**12 - 10**8
    listed = ConstraintBased(dag, epsilon).simulate(truth, seed=2).estimate.index
    assert len(listed) < 2 * TUNING.min_allocated_types + 40_000 + 2 * dag.cells.size
    ours, theirs = (
        mean_errors(dag, truth, epsilon, range(3, 5), estimator=name) for name in ("posterior", "projection")
    )
    assert ours[SINGLETON] < theirs[SINGLETON]
    for name in ("time", "zone", "kind"):
        assert ours[name] < 1.1 * theirs[name], name


@pytest.mark.slow
def test_a_giant_does_not_swell_its_neighbours() -> None:
    """A type with most trips of its tables is believed itself, and no trips are expected of its cell on its account."""
    dag = vast(3000, 4)
    rest = some(dag, 4000, seed=2)
    giant = int(dag.universe.rank_codes([np.array([1500]), np.array([2000]), np.array([2])])[0])
    index = np.union1d(rest.index, [giant])
    value = np.ones(len(index), dtype=np.int64)
    value[np.searchsorted(index, rest.index)] = rest.value
    value[np.searchsorted(index, giant)] = 100_000
    truth = Counts(dag.universe, index, value)
    *tables, answer = measured(dag, truth, Fraction(1), seed=7)
    estimate = post_process(dag, [*tables, answer], estimator="posterior")
    listed, count = estimate.trips()
    assert count[listed == giant] == pytest.approx(100_000, abs=100)
    assert np.sort(count)[-2] < 1000
    for name in ("total", "time", "zone", "kind"):
        wanted = np.bincount(dag.cells.element_of_cell[name], cell_counts(dag, index, value))
        assert np.abs(estimate.counts(name) - wanted).max() < 14 * float(tables[-1].scale), name


@pytest.mark.parametrize("trips", [0, 1])
def test_next_to_nothing(trips: int) -> None:
    """Without trips, or with one, nothing breaks, and hardly any trips are invented."""
    dag = vast(3000, 4)
    truth = Counts(dag.universe, np.arange(trips, dtype=np.int64), np.ones(trips, dtype=np.int64))
    release = ConstraintBased(dag, 1, estimator="posterior").simulate(truth, seed=1)
    assert release.total < 200
    assert release.estimate.solution.kkt_residual < 1e-9


def test_every_type_known() -> None:
    """Where every type has many trips, all noisy counts lie above floors and nothing is left to deal out."""
    dag = FeatureDag(cbdp.Universe(origin=range(8), time=range(3)), [cbdp.Feature("time", by="time")])
    truth = cbdp.count(np.full(24, 5000), dag.universe)
    estimate = (
        ConstraintBased(dag, 1, sparse=True, estimator=Posterior(revealed=20)).simulate(truth, 0).estimate
    )
    assert np.array_equal(estimate.index, np.arange(24))
    assert estimate.counts(SINGLETON) == pytest.approx(5000, abs=60)


# --- which estimator --------------------------------------------------------------------------------------------------


def test_default_of_a_large_universe() -> None:
    """The posterior, unless weights ask for projection or nothing but single types is measured."""
    large = vast(1000)
    assert ConstraintBased(large, 1).estimator == "posterior"
    assert ConstraintBased(large, 1, weights="size").estimator == "projection"
    assert ConstraintBased(large, 1, preset="paper").estimator == "projection"
    assert ConstraintBased(large, 1, measured=[SINGLETON]).estimator == "projection"


def test_what_a_large_universe_cannot_have_is_refused() -> None:
    """A prior for types that are not listed, and a posterior without any table, are errors that say what to do."""
    with pytest.raises(InputError, match="sparse=False"):
        ConstraintBased(DAG, 1, sparse=True, prior=np.ones(DAG.universe.size))
    *tables, answer = measured(DAG, TRUTH, Fraction(1))
    with pytest.raises(InputError, match="'total' at least"):
        post_process(DAG, [answer], estimator=HIDING)
    with pytest.raises(InputError, match="a floor and a scale"):
        sparse.sparse_posterior(DAG, tables, Measurement(SINGLETON, np.zeros(DAG.universe.size), scale=2))


def test_what_a_large_universe_costs_is_told() -> None:
    """Only where it is the case."""
    vague = "too many to reveal"
    assert vague in ConstraintBased(vast(1000), 1).remarks()[0]
    whole = (ConstraintBased(DAG, 1), ConstraintBased(DAG, 1, sparse=True))
    exact = (ConstraintBased(vast(1000), 1, preset="paper"), ConstraintBased(vast(1000), 1, sparse=False))
    assert not any(vague in said for one in (*whole, *exact) for said in one.remarks())
