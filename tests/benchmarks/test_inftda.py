"""InfTDA's own ground: its sets are drawn as published, the rival keeps its promises, and the measures count what they say."""

from __future__ import annotations

import doctest
import itertools
import math
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from benchmarks import inftda
from benchmarks.inftda import country, demand, expected, ours, rival, sets, tables
from benchmarks.inftda.demand import Demand, levels, summed
from benchmarks.inftda.metrics import Published, at_level, errors
from benchmarks.inftda.tables import Found, compared
from benchmarks.inftda.trials import Row, merged, read, write
from cbdp.errors import InputError
from cbdp.features import SINGLETON


@pytest.mark.parametrize("module", [country, demand, expected, ours, rival, sets])
def test_examples(module: object) -> None:
    """The examples in the benchmark's own documentation hold."""
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def small() -> Demand:
    return sets.small("small")


# The sets


@pytest.mark.parametrize(
    ("name", "places", "filled", "total"),
    [
        ("binary complete", 256, 65_536, 1_051_271),
        ("binary dense", 256, 32_768, 734_688),
        ("binary sparse", 256, 655, 23_302),
        ("random complete", 435, 189_225, 2_019_580),
        ("random dense", 435, 94_612, 1_003_943),
        ("random sparse", 435, 1_892, 67_840),
    ],
)
def test_the_six_sets_have_the_published_sizes(name: str, places: int, filled: int, total: int) -> None:
    """Places, filled pairs and trips of each set; flows lie between 1 and 1,000, and no pair is drawn twice."""
    made = sets.demand(name)
    assert (made.places, len(made.trips), made.total) == (places, filled, total)
    assert (made.trips.min(), made.trips.max()) == (1, 1000)
    assert len(np.unique(made.origin * places + made.destination)) == filled


def test_the_random_hierarchy_is_the_one_that_recursion_draws() -> None:
    """Each area draws its number of areas from its own seed; the n-th inside has that seed + n."""

    def paths(depth: int, seed: int) -> list[tuple[int, ...]]:
        if depth == 0:
            return [()]
        many = random.Random(seed).randint(2, 10)
        return [(n, *rest) for n in range(many) for rest in paths(depth - 1, seed + n)]

    found = paths(4, 42)
    above = sets.drawn(4)
    for level, area in enumerate(above):
        prefixes = {path[:level]: n for n, path in enumerate(dict.fromkeys(p[:level] for p in found))}
        order = {prefix: n for n, prefix in enumerate(dict.fromkeys(p[:level] for p in found))}
        assert len(prefixes) == area.max() + 1
        assert area.tolist() == [order[p[:level]] for p in found]


def test_areas_follow_each_other_in_the_country() -> None:
    """Every region, province and place is there, and the areas inside one are neighbours in number."""
    made = country.country(country.Country(regions=4, provinces=9, places=80, filled=500, trips=5000))
    assert made.sizes == (1, 4, 9, 80)
    for area in made.above:
        assert (np.diff(area) >= 0).all()
    assert len(made.trips) == 500
    assert made.total == 5000
    assert (made.trips >= 1).all()


def test_the_country_has_the_size_of_the_papers() -> None:
    """Its sizes are those of the census that the paper used."""
    of = country.Country()
    assert (of.places, of.places**2, of.filled) == (8092, 65_480_464, 556_120)


# The measures


def test_errors_of_a_release_that_is_known(small: Demand) -> None:
    """One pair moved to an empty one: two errors of its size, one false discovery, one false negative."""
    empty = np.setdiff1d(np.arange(256), small.origin * 16 + small.destination)[0]
    origin, destination = small.origin.copy(), small.destination.copy()
    origin[0], destination[0] = empty // 16, empty % 16
    found = at_level(small, Published(origin, destination, small.trips), (4, 4))
    moved = small.trips[0]
    assert found.mean == pytest.approx(2 * moved / 256)
    assert found.most == moved
    assert found.false_discoveries == pytest.approx(100 / 128)
    assert found.false_negatives == pytest.approx(100 / 128)


def test_the_truth_has_no_error(small: Demand) -> None:
    """At every level, and sums over pairs are the trips."""
    made = errors(small, Published(small.origin, small.destination, small.trips))
    assert list(made) == levels(4)
    assert all(e.numbers == (0, 0, 0, 0) for e in made.values())
    assert all(small.counts(level)[1].sum() == small.total for level in levels(4))


def test_sums_by_key() -> None:
    """Keys come out once and ascending; no keys make no sums."""
    key, value = summed(np.array([5, 2, 5]), np.array([1, 7, 3]))
    assert (key.tolist(), value.tolist()) == ([2, 5], [7, 4])
    assert len(summed(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))[0]) == 0


# The rival


def test_concentrated_privacy_costs_epsilon() -> None:
    """ρ + 2√(ρ ln(1/δ)) is ε again."""
    for epsilon in (0.1, 1.0, 10.0):
        rho = rival.concentrated(epsilon, 1e-8)
        assert rho + 2 * math.sqrt(rho * math.log(1e8)) == pytest.approx(epsilon)


def test_discrete_gaussian_noise() -> None:
    """Its frequencies are those of the law, within five standard errors."""
    drawn = rival.DiscreteGaussian(1.3, np.random.default_rng(0)).draw(200_000)
    z = np.arange(-20, 21)
    mass = np.exp(-0.5 * (z / 1.3) ** 2)
    mass /= mass.sum()
    for value in range(-4, 5):
        p = mass[value + 20]
        assert (drawn == value).mean() == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / 200_000))


def test_families_are_fitted_to_their_parents() -> None:
    """Whole numbers of at least 0 with the parent's sum, nearly as close in the largest deviation as any are."""
    rng = np.random.default_rng(0)
    gaps = []
    for _ in range(300):
        wanted, total = rng.integers(-8, 12, rng.integers(2, 5)), int(rng.integers(1, 9))
        made = wanted.copy()
        rival.fit(made, np.array([len(made)]), np.array([total]))
        assert made.sum() == total
        assert made.min() >= 0
        every = itertools.product(range(total + 1), repeat=len(wanted))
        best = min(np.abs(np.array(y) - wanted).max() for y in every if sum(y) == total)
        gaps.append(np.abs(made - wanted).max() - best)
    assert max(gaps) <= 3
    assert np.mean(np.array(gaps) == 0) > 0.8


def test_what_fits_already_is_not_touched() -> None:
    """A family without noise stays as it is."""
    counts = np.array([3, 0, 4, 9, 1])
    rival.fit(counts, np.array([3, 5]), np.array([7, 10]))
    assert counts.tolist() == [3, 0, 4, 9, 1]


def test_the_rival_with_much_budget_publishes_the_truth(small: Demand) -> None:
    """At an ε without noise every pair is right, on a tree and on a country."""
    for truth in (small, inftda.named("small country")):
        made = rival.inftda(truth, 1e6, seed=0)
        assert all(e.mean == 0 for e in errors(truth, made).values())


def test_the_rival_keeps_the_number_of_trips(small: Demand) -> None:
    """However much noise: the total is public, and areas add up."""
    made = rival.inftda(small, 0.1, seed=3)
    assert made.trips.sum() == small.total
    assert (made.trips > 0).all()


def test_batches_do_not_change_what_is_published(small: Demand, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few families at a time, or all at once: the same draws in the same order."""
    once = rival.inftda(small, 1.0, seed=1)
    monkeypatch.setattr(rival, "AT_ONCE", 7)
    again = rival.inftda(small, 1.0, seed=1)
    assert again.trips.tolist() == once.trips.tolist()
    assert again.origin.tolist() == once.origin.tolist()


# Ours


def test_every_level_is_a_feature(small: Demand) -> None:
    """With as many elements as the level has pairs, and the same counts."""
    dag = ours.features(small)
    counts = ours.counts(small, dag.universe)
    for level in levels(4):
        name = ours.name_of(level, 4)
        assert dag.size(name) == small.pairs(level)
        assert np.flatnonzero(counts.of(dag, name)).size == len(small.counts(level)[0])
    assert list(dag.features)[-1] == SINGLETON


@pytest.mark.parametrize("budget", ["levels", "leaves", "balanced"])
def test_all_of_epsilon_is_spent_without_delta(small: Demand, budget: str) -> None:
    """On the levels below the total, which is public when one trip replaces another."""
    dag = ours.features(small)
    made = ours.mechanism(dag, small.total, "0.1", budget)
    assert sum(a.share for a in made.answers()) == Fraction(1, 10)
    assert made.claim().cost.delta == 0
    assert "total" not in [a.feature for a in made.answers()]
    assert made.unit.sensitivity == 2


def test_ours_meets_the_public_total(small: Demand) -> None:
    """Exactly, at any ε."""
    dag = ours.features(small)
    counts = ours.counts(small, dag.universe)
    for epsilon in ("0.1", "10"):
        made = ours.mechanism(dag, small.total, epsilon, "levels").simulate(counts, 0)
        assert made.total == small.total


def test_expected_ratios_are_those_of_simulated_noise() -> None:
    """At the coarsest level, where nothing is cut off: the rival's standard error is √½ of its noise, over many runs."""
    truth = sets.flowing("large", sets.binary(2), 0.0)
    truth = Demand("large", truth.above, truth.origin, truth.destination, truth.trips + 10_000)
    half = truth.counts((0, 1))[1][0]
    off = []
    for seed in range(2000):
        made = rival.inftda(truth, 1.0, seed)
        off.append(made.trips[truth.above[1][made.destination] == 0].sum() - half)
    noise = math.sqrt(4 / rival.concentrated(1.0))
    assert np.std(off) == pytest.approx(noise * ours.relative_errors([1, 2])[2], rel=0.08)


def test_the_country_without_trips_has_the_same_areas() -> None:
    """So that what is expected of a hierarchy needs no flows."""
    of = country.Country(regions=4, provinces=9, places=80, filled=500, trips=5000)
    for one, other in zip(country.empty(of).above, country.country(of).above, strict=True):
        assert one.tolist() == other.tolist()


# Rows and the page


def test_rows_are_kept(tmp_path: Path) -> None:
    """What is written is read again; what is run anew replaces its own rows and no others."""
    rows = [
        Row(data, e, "InfTDA", 0, 0.5, 0, 1, 2.0, 3.0, 4.0, 5.0) for data in ("a", "b") for e in ("1", "10")
    ]
    write(tmp_path / "rows.csv", rows)
    assert read(tmp_path / "rows.csv") == rows
    new = [Row("a", "1", "InfTDA", 0, 9.0, 0, 1, 2.0, 3.0, 4.0, 5.0)]
    assert sorted((r.data, r.epsilon, r.seconds) for r in merged(rows, new)) == [
        ("a", "1", 9.0), ("a", "10", 0.5), ("b", "1", 0.5), ("b", "10", 0.5),
    ]  # fmt: skip


def test_ratios_to_the_rival() -> None:
    """Means over runs are compared level by level; the exact level 0–0 is left out."""
    rows = [
        Row("a", "1", m, seed, 0.5, *level, mean, 0.0, 0.0, 0.0)
        for m, level, mean, seed in [
            ("InfTDA", (0, 0), 0.0, 0), ("InfTDA", (0, 1), 4.0, 0), ("InfTDA", (0, 1), 8.0, 1),
            ("cbdp, levels", (0, 0), 0.0, 0), ("cbdp, levels", (0, 1), 9.0, 0),
        ]
    ]  # fmt: skip
    (found,) = compared(Found(rows), "cbdp, levels")
    assert (found.level, found.ratio) == ((0, 1), 1.5)
    assert tables.uncertain([4.0, 8.0]) == pytest.approx(2 / 6)
    assert tables.times(Found(rows)).rows == [["a", "0.500", "0.500"]]


def test_smoke_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two small sets: page, figure and numbers; and the page again from the numbers alone."""
    assert inftda.main(["--smoke", "--epsilons", "1", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "inftda.md").read_text("utf-8")
    assert "small country, ε = 1" in page
    assert "δ = 0" in page
    assert (tmp_path / "figures" / "inftda.png").stat().st_size > 10_000
    assert {r.mechanism for r in read(tmp_path / "inftda.csv")} == {"InfTDA", "cbdp, levels", "cbdp, leaves"}
    assert inftda.main(["--page", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "inftda.md").read_text("utf-8") == page
    assert "small tree" in capsys.readouterr().out


def test_bad_options_are_told_in_a_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """An unknown set, no runs, or no numbers: exit code 2, and what to give instead."""
    for argv, said in [
        (["--sets", "binary"], "unknown set 'binary': there are binary complete"),
        (["--runs", "0", "--rival-runs", "0"], "give at least 1"),
        (["--page"], "no numbers are kept"),
    ]:
        assert inftda.main([*argv, "--out", str(tmp_path)]) == 2
        assert said in capsys.readouterr().err
    with pytest.raises(InputError, match="unknown set"):
        inftda.wanted(inftda.options_of(["--sets", "nowhere"]))
