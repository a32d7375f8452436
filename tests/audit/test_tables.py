"""The statistical attacks on published tables: laws, scale, detection, differencing, consistency, descriptions."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from benchmarks import theorem5
from cbdp.audit import consistency, described, detection, differencing, scale
from cbdp.audit.finding import Finding, worst
from cbdp.audit.laws import at_zero, law_of, survival, terms_of, variance
from cbdp.audit.tables import LAWS, Noise, Pair, Published, Sum, Table, knowing
from cbdp.errors import InputError
from cbdp.measuring.samplers.geometric import GeometricSampler
from cbdp.measuring.samplers.rounded import RoundedSampler
from cbdp.privacy.entropy import InsecureSeededEntropy

P = 1.4
MADE = {"discrete-laplace": GeometricSampler, "rounded-laplace": RoundedSampler}
SECRET = [("Manly Wharf", 91), ("Circular Quay No. 3 Wharf", 41), ("Cremorne Point Wharf", 0)]


def mass(noise: Noise, reach: int) -> NDArray[np.float64]:
    """P(L = k) for |k| up to a reach, by differences of the survival function."""
    up = np.array([survival(noise, k) - survival(noise, k + 1) for k in range(1, reach + 1)])
    return np.concatenate([up[::-1], [at_zero(noise)], up])


def draw(noise: Noise, n: int, seed: int) -> NDArray[np.float64]:
    if noise.law == "laplace":
        return np.random.default_rng(seed).laplace(0, noise.scale, n)
    sampler = MADE[noise.law](Fraction(str(noise.scale)))
    drawn: NDArray[np.float64] = sampler.sample(n, InsecureSeededEntropy(seed)).astype(float)
    return drawn


# Laws


@pytest.mark.parametrize("law", ["discrete-laplace", "rounded-laplace"])
def test_a_whole_sum_has_the_law_of_the_convolution(law: str) -> None:
    """Tails and probabilities of a sum of noises of two scales are those that direct convolution gives."""
    a, b = Noise(law, 1.4), Noise(law, 3.0)  # type: ignore[arg-type]
    one, two = mass(a, 400), mass(b, 400)
    direct = np.convolve(np.convolve(np.convolve(one, one), two), two)
    middle = len(direct) // 2
    found = law_of([(a, 1.0, 1), (a, -1.0, 1), (b, 1.0, 2)])
    x = np.array([0.0, 1, 5, 20, 60])
    expected = [min(1.0, 2 * direct[middle + int(k) :].sum()) for k in x]
    assert found.tail(x) == pytest.approx(expected, rel=1e-6)
    assert found.log_mass(x) == pytest.approx(np.log(direct[middle + x.astype(int)]), abs=1e-5)
    assert found.variance == pytest.approx(float(direct @ (np.arange(len(direct)) - middle) ** 2), rel=1e-9)
    far = np.array([150.0])
    assert 2 * direct[middle + 150 :].sum() < found.tail(far)[0] < 1e-15


@pytest.mark.parametrize("law", LAWS)
def test_one_noise_has_its_declared_law(law: str) -> None:
    """Variance and survival of each law are those of our exact sampler and of the closed form."""
    noise = Noise(law, P)  # type: ignore[arg-type]
    if noise.whole:
        sampler = MADE[law](Fraction(7, 5))
        assert variance(noise) == pytest.approx(sampler.variance(), rel=1e-12)
        assert survival(noise, 17) == pytest.approx(float(sampler.survival(np.array(16))), rel=1e-9)
        assert mass(noise, 300).sum() == pytest.approx(1.0, abs=1e-12)
    else:
        assert survival(noise, 17) == pytest.approx(math.exp(-17 / P) / 2)
    assert survival(noise, -3) == pytest.approx(1 - survival(noise, 4 if noise.whole else 3))


def test_the_sum_of_three_laplace_noises_has_its_closed_form() -> None:
    """Density and quantiles of a continuous sum agree with (u² + 3u + 3) exp(−u)/16."""
    found = law_of([(Noise("laplace", P), 1.0, 3)])
    u = np.array([0.1, 1.0, 4.0, 20.0, 60.0])
    assert found.log_mass(u * P) == pytest.approx(np.log((u * u + 3 * u + 3) * np.exp(-u) / 16 / P), abs=1e-9)
    for alpha in (0.5, 0.05, 0.001):
        width = found.half_width(alpha)
        assert 1 - alpha <= theorem5.coverage(P, width) <= 1 - alpha + 0.01
    assert found.deviation == pytest.approx(math.sqrt(6) * P)


def test_intervals_of_sums_with_any_weights_hold_as_often_as_they_say() -> None:
    """With many weights that are no whole numbers the interval covers at least its share, and hardly more."""
    noise, n = Noise("discrete-laplace", 2.0), 200_000
    weights = np.linspace(0.05, 1.3, 90)
    drawn = draw(noise, n * len(weights), 4).reshape(n, -1) @ weights
    law = law_of(terms_of(noise, weights))
    for alpha in (0.5, 0.05, 0.01):
        outside = float((np.abs(drawn) > law.half_width(alpha)).mean())
        assert 0.85 * alpha < outside < alpha + 5 * math.sqrt(alpha / n)


def test_a_far_tail_is_bounded_from_above() -> None:
    """Beyond what a transform resolves, tails and quantiles are on the safe side of the exact ones."""
    noise = Noise("discrete-laplace", 1.0)
    law, exact = law_of([(noise, 1.0, 1)]), 2 * survival(noise, 60)
    assert exact <= law.tail(60.0)[0] < 1e-20
    assert 2 * survival(noise, law.half_width(1e-20) + 1) <= 1e-20


# Scale


def manly(
    noise: Noise, n: int, seed: int, declared: Noise | None, threshold: float | None = 18, low: int = 1
) -> Published:
    """Crossings counted at both ends, of which small counts are suppressed."""
    truth = np.random.default_rng(seed).integers(low, 400, n)
    counts = np.tile(truth, 2) + draw(noise, 2 * n, seed)
    if threshold is not None:
        counts[counts < threshold] = 0
    keys = {"tap": np.repeat(["on", "off"], n), "crossing": np.tile(np.arange(n), 2)}
    table = Table("ferry", keys, counts, declared, threshold, shows_zeros=False)
    return Published((table,), equal=(Pair("ferry", np.arange(n), "ferry", np.arange(n, 2 * n)),))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [12, 400])
def test_the_scale_is_recovered_from_manly_pairs(law: str, n: int) -> None:
    """From pairs with equal truth p = 1.4 lies in its interval, and the interval shrinks with their number."""
    noise = Noise(law, P)  # type: ignore[arg-type]
    [found] = scale.attack(manly(noise, n, 1, noise))
    assert found.verdict == "clear"
    figures = {k: float(v) for k, v in found.figures.items()}
    assert figures["surely_low"] < figures["low"] <= P <= figures["high"] < figures["surely_high"]
    if n == 400:
        assert figures["high"] - figures["low"] < 0.4
        assert figures["surely_high"] < 2


@pytest.mark.slow
@pytest.mark.parametrize("n", [8, 60])
def test_the_interval_of_the_scale_holds_as_often_as_it_says(n: int) -> None:
    """Of 200 intervals of 90 %, between 155 and 198 hold: both the exact test and the likelihood."""
    noise = Noise("rounded-laplace", P)
    held = 0
    for seed in range(200):
        [group] = scale.residuals(manly(noise, n, seed, noise, None))
        fit = scale.fit(group, 0.9)
        held += fit.low <= P <= fit.high
    assert 155 <= held <= 198  # five standard deviations below 180, and a little for discreteness


@pytest.mark.parametrize(("declared", "word"), [(3.0, "less"), (0.7, "more")])
def test_a_wrong_declaration_is_contradicted(declared: float, word: str) -> None:
    """Twice or half the true scale is outside an interval that errs once in a million."""
    noise = Noise("discrete-laplace", P)
    [found] = scale.attack(manly(noise, 400, 2, Noise("discrete-laplace", declared)))
    assert found.verdict == "contradicts"
    assert word in found.title


def test_an_undeclared_scale_is_a_weakness_and_no_noise_contradicts() -> None:
    """Without a declaration the scale is told; where noise is declared and none is there, that is a contradiction."""
    noise = Noise("discrete-laplace", P)
    [found] = scale.attack(manly(noise, 400, 3, None))
    assert found.verdict == "weakness"
    assert float(found.figures["low"]) < P < float(found.figures["high"])
    silent = manly(Noise("discrete-laplace", 0.01), 50, 3, noise)
    assert [f.verdict for f in scale.attack(silent)] == ["contradicts"]


def tables_of(
    rng: np.random.Generator, times: int, places: int, hidden: float = 0.0, b: float = 1.0
) -> tuple[Published, NDArray[np.int64]]:
    """Tables by time, by place and by both, noised on their own; a share of the cells is small and hidden below 18."""
    time, place = (axis.reshape(-1) for axis in np.indices((times, places)))
    truth = rng.integers(80, 400, times * places)
    small = rng.random(len(truth)) < hidden
    truth[small] = rng.integers(1, 12, int(small.sum()))
    fine, coarse = Noise("rounded-laplace", b), Noise("rounded-laplace", 2 * b)
    counts = truth + np.rint(rng.laplace(0, b, len(truth)))
    counts[counts < 18] = 0
    by_time = np.bincount(time, truth) + np.rint(rng.laplace(0, 2 * b, times))
    by_place = np.bincount(place, truth) + np.rint(rng.laplace(0, 2 * b, places))
    made = (
        Table("time", {"time": np.arange(times)}, by_time, coarse, 18, shows_zeros=False),
        Table("place", {"place": np.arange(places)}, by_place, coarse, 18, shows_zeros=False),
        Table("both", {"time": time, "place": place}, counts, fine, 18, shows_zeros=False),
    )
    return Published(made, epsilon=8, delta=1e-6), truth


def test_totals_tell_the_scale_too() -> None:
    """A total less the sum of its parts has a law of known noises: a scale declared 1.5 times too large is caught."""
    published, _ = tables_of(np.random.default_rng(5), 300, 4)
    assert {f.verdict for f in scale.attack(published)} == {"clear"}
    wrong = tuple(
        replace(t, noise=Noise("rounded-laplace", 1.5 * t.noise.scale)) if t.noise else t
        for t in published.tables
    )
    found = scale.attack(replace(published, tables=wrong))
    assert any(f.verdict == "contradicts" and "less" in f.title for f in found)


# Detection


def test_the_assessments_detection_figures() -> None:
    """δ ≈ 1.9e-6 at p = 1.4, 0.00004 for a group of 5 and 0.005 for one of 12; the chances themselves are larger."""
    assert detection.assessed(P, 18) == pytest.approx(1.9e-6, rel=0.01)
    assert round(detection.assessed(P, 18, 5), 5) == pytest.approx(3e-5)
    assert round(detection.assessed(P, 18, 12), 3) == pytest.approx(0.005)
    for law in LAWS:
        noise = Noise(law, P)  # type: ignore[arg-type]
        chances = [detection.detected(noise, 18, g) for g in (1, 5, 12)]
        assert chances[0] >= detection.assessed(P, 18)
        for g, chance in zip((1, 5, 12), chances, strict=True):
            drawn = (g + draw(noise, 1_000_000, g) >= 18).mean()
            assert abs(drawn - chance) < 6 * math.sqrt(chance / 1e6) + 2e-6
    assert chances[1] == pytest.approx(
        detection.detected(Noise("laplace", P), 18, 5) * math.exp(0.5 / P), rel=1e-9
    )


def secret(
    noise: Noise | None = None, *, listed: bool = True, zeros: bool = False, delta: float = 0.0
) -> Published:
    """The assessment's Table 2: 91 and 41 by place, 150 in all, and a wharf whose count is hidden."""
    own = noise or Noise("laplace", P)
    rows = SECRET if listed else SECRET[:2]
    keys = {"time": np.full(len(rows), "00:00"), "loc": np.array([r[0] for r in rows])}
    counts = np.array([r[1] for r in rows], dtype=float)
    both = Table("time-loc", keys, counts, own, 18, shows_zeros=zeros, closed=listed)
    time = Table("time", {"time": np.array(["00:00"])}, np.array([150.0]), own, 18, shows_zeros=zeros)
    return Published((both, time), epsilon=8, delta=delta)


def test_skipping_zeros_contradicts_pure_privacy() -> None:
    """The δ that certain detection forces contradicts δ = 0, not a larger one; noised zeros need none."""
    [found] = detection.attack(secret())
    assert found.verdict == "contradicts"
    each = detection.detected(Noise("laplace", P), 18)
    assert float(found.figures["delta"]) == pytest.approx(2 * each - each**2, rel=1e-9)
    assert float(found.figures["assessed_delta"]) == pytest.approx(1.9e-6, rel=0.01)
    assert [f.verdict for f in detection.attack(secret(delta=1e-5))] == ["weakness"]
    assert [f.verdict for f in detection.attack(replace(secret(), epsilon=None))] == ["weakness"]
    assert [f.verdict for f in detection.attack(secret(zeros=True))] == ["clear"]


def test_zeros_that_are_said_to_be_noised_and_are_not() -> None:
    """Too many exact zeros betray that zeros are skipped; noised zeros pass."""
    truth = np.random.default_rng(0).poisson(0.2, 2000)
    noise = Noise("discrete-laplace", 2.0)
    honest = truth + draw(noise, 2000, 8)
    keys = {"cell": np.arange(2000)}
    skipped = np.where(truth == 0, 0, honest)
    assert worst(detection.attack(Published((Table("t", keys, honest, noise),), 1.0))) == "clear"
    [found, _] = detection.attack(Published((Table("t", keys, skipped, noise),), 1.0))
    assert found.verdict == "contradicts"
    shown = np.where(honest >= 3, honest, 0)
    few = np.where((honest >= 3) & (truth > 0), honest, 0)
    fine = Table("t", keys, shown, noise, 3, universe=2000)
    assert worst(detection.attack(Published((fine,), 1.0))) == "clear"
    assert worst(detection.attack(Published((replace(fine, counts=few),), 1.0))) == "contradicts"


def test_thresholds_are_found_and_held_to() -> None:
    """The least of many counts is told where nothing is declared; a count below a declared threshold contradicts."""
    counts = np.random.default_rng(0).geometric(0.02, 500)
    counts = counts[counts >= 18].astype(float)
    table = Table("t", {"cell": np.arange(len(counts))}, counts)
    found = detection.find_threshold(table)
    assert found is not None
    assert found.least == 18
    assert detection.find_threshold(replace(table, counts=counts - 17)) is None
    said = replace(table, threshold=20.0)
    assert any(
        f.verdict == "contradicts" and "below" in f.title for f in detection.attack(Published((said,)))
    )


# Differencing


@pytest.mark.parametrize("listed", [True, False])
def test_the_secret_ferry(listed: bool) -> None:
    """S − X − Y = 18 from 91, 41 and 150, with a standard deviation of √6 · 1.4 and an interval by the exact law."""
    [found] = differencing.pinned(secret(listed=listed))
    assert found.estimate == pytest.approx(18)
    assert found.deviation == pytest.approx(math.sqrt(6) * P)
    assert round(found.deviation, 1) == 3.4
    assert found.terms == 3
    assert 18 - found.low == pytest.approx(theorem5.exact(P, 0.05))
    assert theorem5.coverage(P, 18 - found.low) == pytest.approx(0.95, abs=0.003)
    assert found.telling
    [finding, *_] = differencing.attack(secret(listed=listed))
    assert finding.verdict == "weakness"
    assert "1 hidden count of 'time-loc' is" in finding.title


def test_theorem_5_covers_far_too_seldom() -> None:
    """The assessment's 95 % interval holds about every second time, as printed every fourth; the exact one does as it says."""
    for width, low, high in (
        (theorem5.half_width(P, 0.05), 0.53, 0.54),
        (theorem5.printed(P, 0.05), 0.25, 0.26),
        (theorem5.exact(P, 0.05), 0.949, 0.953),
    ):
        simulated = theorem5.simulated(P, width, 400_000, 7)
        assert abs(simulated - theorem5.coverage(P, width)) < 6 * 0.5 / math.sqrt(400_000)
        assert low < theorem5.coverage(P, width) < high
    assert theorem5.main(["--draws", "100000"]) == 0


def test_identifiable_cells_are_the_bridges_of_the_bipartite_graph() -> None:
    """With totals by row and by column, a hidden cell is determined exactly when it lies on no cycle of hidden cells."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        rows, columns = 12, 15
        cells = np.flatnonzero(rng.random(rows * columns) < 0.12)
        if not len(cells):
            continue
        row, column = cells // columns, cells % columns
        every = np.arange(len(cells))
        matrix = sparse.csc_matrix(
            (np.ones(2 * len(cells)), (np.concatenate([row, rows + column]), np.concatenate([every, every]))),
            shape=(rows + columns, len(cells)),
        )
        graph = nx.Graph((f"r{r}", f"c{c}") for r, c in zip(row, column, strict=True))
        bridges = {frozenset(edge) for edge in nx.bridges(graph)}
        expected = [frozenset((f"r{r}", f"c{c}")) in bridges for r, c in zip(row, column, strict=True)]
        assert differencing.identifiable(matrix).tolist() == expected


def test_estimates_are_the_best_that_dense_least_squares_finds() -> None:
    """Estimate and deviation of each pinned count are those of generalised least squares on the whole system."""
    published, _ = tables_of(np.random.default_rng(3), 7, 6, hidden=0.15)
    system = differencing.assemble(published)
    matrix, shown = system.relations.toarray(), system.shown
    each = np.array([variance(n) for n in system.noises])[system.noise]
    _, singular, right = np.linalg.svd(matrix)
    basis = right[(singular > 1e-9).sum() :].T  # x = basis z: all true counts that satisfy the relations
    design = basis[shown] / np.sqrt(each[shown])[:, None]
    inverse = np.linalg.pinv(design)
    found = [p for p in differencing.pinned(published) if p.single and p.table == "both"]
    assert found
    start = len(published["time"]) + len(published["place"])
    for p in found:
        weights = basis[start + p.rows[0]] @ inverse
        assert p.estimate == pytest.approx(
            float(weights @ (system.value[shown] / np.sqrt(each[shown]))), rel=1e-5
        )
        assert p.deviation == pytest.approx(float(np.linalg.norm(weights)), rel=1e-5)


@pytest.mark.slow
def test_intervals_of_pinned_counts_hold() -> None:
    """Over many releases, 95 % intervals of hidden counts and of their sums hold at least 90 % of the time."""
    held, made = 0, 0
    for seed in range(25):
        published, truth = tables_of(np.random.default_rng(seed), 24, 8, hidden=0.04)
        for p in differencing.pinned(published):
            if p.table == "both":
                held += p.low - 1e-9 <= truth[list(p.rows)].sum() <= p.high + 1e-9
                made += 1
    assert made > 100
    assert held > 0.9 * made


@pytest.mark.slow
def test_large_tables_are_solved_at_once() -> None:
    """A hundred thousand cells, and two thousand hidden counts found together with the interval of each."""
    rng = np.random.default_rng(0)
    published, truth = tables_of(rng, 300, 340)
    both = published["both"]
    hidden = np.arange(0, 300, 5) * 340 + rng.integers(0, 340, 60)
    counts = both.counts.copy()
    counts[hidden] = 0
    large = tuple(replace(both, counts=counts) if t is both else t for t in published.tables)
    found = differencing.pinned(replace(published, tables=large))
    assert {p.rows[0] for p in found if p.single and p.table == "both"} == set(hidden.tolist())
    covered = [p.low <= truth[p.rows[0]] <= p.estimate + (p.estimate - p.low) for p in found if p.single]
    assert np.mean(covered) > 0.85
    many, few = tables_of(rng, 2000, 4)
    counts = many["both"].counts.copy()
    counts[np.arange(0, 8000, 4) + rng.integers(0, 4, 2000)] = 0
    tables = (many["time"], replace(many["both"], counts=counts))
    assert len(few) == 8000
    assert sum(p.single for p in differencing.pinned(Published(tables))) == 2000


def test_equal_counts_and_knowledge_pin_down_more() -> None:
    """The other end of a point-to-point line tells a hidden count, and a timetable leaves one of several possible."""
    noise = Noise("discrete-laplace", 1.0)
    keys = {"tap": ["on", "off"], "time": ["06:45", "07:15"]}
    table = Table("t", keys, [19, 0], noise, 18, shows_zeros=False)  # type: ignore[arg-type]
    [found] = differencing.pinned(Published((table,), equal=(Pair("t", [0], "t", [1]),)))  # type: ignore[arg-type]
    assert (found.rows, found.estimate) == ((1,), 19.0)
    published = secret()
    both = published["time-loc"]
    wharves = np.append(both.keys["loc"], ["Balmain Wharf", "South Mosman Wharf"])
    wide = replace(
        both, keys={"time": np.full(5, "00:00"), "loc": wharves}, counts=np.append(both.counts, [0.0, 0.0])
    )
    several = replace(published, tables=(wide, published["time"]))
    assert [len(p.cells) for p in differencing.pinned(several)] == [3]
    timetable = np.isin(wharves, [name for name, _ in SECRET])
    [one] = differencing.pinned(knowing(several, "time-loc", timetable))
    assert one.cells == ("time-loc: time 00:00, loc Cremorne Point Wharf",)


def test_tables_without_hidden_counts_leave_nothing_to_find() -> None:
    """Where all is shown there is nothing to difference; where nothing adds up nothing is found."""
    shown = Table("t", {"k": np.arange(3)}, np.ones(3), Noise("laplace", 1.0))
    assert [f.verdict for f in differencing.attack(Published((shown,)))] == ["clear"]
    alone = replace(secret(), tables=secret().tables[:1])
    assert [f.verdict for f in differencing.attack(alone)] == ["clear"]


# Consistency


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, [f.title for f in findings]
    return findings[0]


def test_sound_tables_are_never_called_inconsistent() -> None:
    """Of 60 honest table sets with hidden counts none is contradicted, at a risk of one in a million each."""
    for seed in range(60):
        published, _ = tables_of(np.random.default_rng(seed), 20, 10, hidden=0.1 * (seed % 2))
        assert only(consistency.attack(published)).verdict == "clear"


@pytest.mark.parametrize("hidden", [0.0, 0.1])
@pytest.mark.parametrize("by", [80.0, -80.0])
def test_a_changed_count_is_named(hidden: float, by: float) -> None:
    """One count moved by more than noise explains is found, and its time or place is named."""
    published, _ = tables_of(np.random.default_rng(1), 20, 10, hidden=hidden)
    time = published["time"]
    counts = time.counts.copy()
    counts[7] += by if not hidden else 4 * by
    changed = replace(published, tables=(replace(time, counts=counts), *published.tables[1:]))
    found = only(consistency.attack(changed))
    assert found.verdict == "contradicts"
    assert "time: time 7 by" in found.evidence
    assert consistency.disagreements(changed)[0].cell == "time: time 7"


def test_exact_sums_must_be_exact() -> None:
    """Where figures are claimed to add up, a difference of one is a contradiction."""
    total = Table("total", {}, np.array([7.0]), canonical=True)
    part = Table("part", {"k": np.arange(3)}, np.array([1.0, 2.0, 4.0]))
    claimed = Published((total, part), sums=(Sum("total", "part", np.zeros(3, dtype=np.int64), exact=True),))
    assert only(consistency.attack(claimed)).verdict == "clear"
    wrong = replace(claimed, tables=(replace(total, counts=np.array([8.0])), part))
    assert only(consistency.attack(wrong)).verdict == "contradicts"


def test_what_a_sound_table_cannot_have() -> None:
    """Cells listed twice, broken numbers, negative counts, too many cells and cells outside are each told."""
    keys = {"k": np.array(["a", "b", "c", "d"])}
    fine = Table("t", keys, np.array([3.0, 1.0, 2.0, 5.0]))
    noise = Noise("discrete-laplace", 1.0)
    cases = {
        "more than once": replace(fine, keys={"k": np.array(["a", "b", "b", "c"])}),
        "not whole": replace(fine, counts=np.array([3.0, 1.5, 2.0, 5.0]), noise=noise),
        "negative": replace(fine, counts=np.array([3.0, -1.0, 2.0, 5.0])),
        "universe of 3": replace(fine, universe=3),
        "infinite": replace(fine, counts=np.array([3.0, np.inf, 2.0, 5.0])),
    }
    assert only(consistency.attack(Published((fine,)))).verdict == "clear"
    for words, table in cases.items():
        found = only(consistency.attack(Published((table,))))
        assert found.verdict == "contradicts"
        assert words in found.title
    negative = replace(fine, counts=np.array([3.0, -1.0, 2.0, 5.0]), noise=noise)
    assert only(consistency.attack(Published((negative,)))).verdict == "clear"
    total = Table("total", {"k": np.array(["a", "b"])}, np.array([3.0, 1.0]))
    part = Table("part", {"k": keys["k"], "j": np.arange(4)}, fine.counts)
    assert "belong to no row" in only(consistency.attack(Published((total, part)))).title


def test_the_order_of_rows() -> None:
    """Rows sorted by keys, in either direction, or by count are canonical; a shuffled table is not."""
    day, stop = np.repeat(["9", "10"], 30), np.tile([f"s{i:02d}" for i in range(30)], 2)
    counts = np.random.default_rng(0).integers(1, 1000, 60).astype(float)
    table = Table("t", {"stop": stop, "day": day}, counts)
    assert consistency.order(table) == "by day, stop"
    assert (
        consistency.order(replace(table, keys={"stop": stop[::-1], "day": day}))
        == "by day, stop (descending)"
    )
    assert consistency.order(replace(table, counts=np.sort(counts)[::-1])) == "by count"
    mixed = np.random.default_rng(1).permutation(60)
    shuffled = Table("t", {"stop": stop[mixed], "day": day[mixed]}, counts)
    assert consistency.order(shuffled) is None
    assert only(consistency.attack(Published((shuffled,)))).verdict == "weakness"


# Descriptions

DESCRIPTION = """
epsilon = 8
[[table]]
name = "both"
file = "both.csv"
keys = ["tap", "time", "loc"]
noise = { law = "rounded-laplace", scale = 1.4 }
threshold = 18
zeros = "skipped"
cells = "CELLS"
[[table]]
name = "time"
file = "time.parquet"
keys = { tap = "Tap", time = "Time" }
count = "n"
noise = { law = "rounded-laplace", scale = 1.4 }
threshold = 18
zeros = "skipped"
[[equal]]
first = { table = "both", where = { tap = "on", loc = "Manly Wharf" } }
second = { table = "both", where = { tap = "off", loc = "Circular Quay No. 3 Wharf" } }
shift = { time = 30 }
"""
BOTH = """tap,time,loc,count
off,00:00,Circular Quay No. 3 Wharf,41
off,00:00,Manly Wharf,91
off,07:15,Circular Quay No. 3 Wharf,86
on,06:45,Manly Wharf,88
"""
CELLS = BOTH.replace(",count", "").replace(",41", "").replace(",91", "").replace(",86", "").replace(",88", "")


def folder(at: Path, *, text: str = DESCRIPTION, cells: str = "cells.csv") -> Path:
    import pyarrow as pa
    from pyarrow import parquet

    at.mkdir(exist_ok=True)
    (at / "audit.toml").write_text(text.replace("CELLS", cells), encoding="utf-8")
    (at / "both.csv").write_text(BOTH, encoding="utf-8")
    (at / "cells.csv").write_text(CELLS + "off,00:00,Cremorne Point Wharf\n", encoding="utf-8")
    rows = {"Tap": ["off", "off", "on"], "Time": ["00:00", "07:15", "06:45"], "n": [150, 85, 90]}
    parquet.write_table(pa.table(rows), at / "time.parquet")
    return at


def test_a_described_folder_is_attacked(tmp_path: Path) -> None:
    """CSV and Parquet are read by their description; the assessment's rows give the secret ferry and the Manly pair."""
    published = described.read(folder(tmp_path))
    assert published.epsilon == 8
    [pair] = published.equal
    assert published["both"].label(int(pair.first_rows[0])) == "both: tap on, time 06:45, loc Manly Wharf"
    assert published["both"].counts[pair.second_rows].tolist() == [86]
    [found] = [p for p in differencing.pinned(published) if p.telling]
    assert found.cells == ("both: tap off, time 00:00, loc Cremorne Point Wharf",)
    assert found.estimate == pytest.approx(18)
    assert worst(detection.attack(published)) == "contradicts"
    assert only(consistency.attack(published)).verdict == "clear"


@pytest.mark.parametrize(("cells", "hidden"), [("listed", 0), ("some", 0), ("product", 8), ("cells.csv", 1)])
def test_which_cells_there_are(tmp_path: Path, cells: str, hidden: int) -> None:
    """A table lists all its cells, or some, or has a cell for each combination of labels, or for each of a list."""
    table = described.read(folder(tmp_path, cells=cells))["both"]
    assert int((~table.shown).sum()) == hidden
    assert table.closed == (cells != "some")


WRONG = {
    "no column 'place'": ('keys = ["tap", "time", "loc"]', 'keys = ["tap", "time", "place"]'),
    "unknown law": ('law = "rounded-laplace"', 'law = "gauss"'),
    "which is unknown": ("threshold = 18", "treshold = 18"),
    "not in": ('file = "both.csv"', 'file = "none.csv"'),
    "are 'kept'": ('zeros = "skipped"', 'zeros = "kept"'),
    "epsilon is": ("epsilon = 8", "epsilon = -1"),
    "no row of 'both'": ('loc = "Manly Wharf"', 'loc = "Nowhere"'),
    "no table 'all'": ('first = { table = "both"', 'first = { table = "all"'),
    "cannot be shifted": (
        "shift = { time = 30 }",
        "shift = { time = 30 }\n[[sum]]\ntotal = 'time'\npart = 'none'",
    ),
    "give a list of columns": ('keys = ["tap", "time", "loc"]', 'keys = "tap"'),
    "is 'high', give": ("scale = 1.4", "scale = 'high'"),
}


@pytest.mark.parametrize("words", WRONG)
def test_a_wrong_description_is_one_clear_line(tmp_path: Path, words: str) -> None:
    """Every mistake is our error, names the file and what to change, and is no traceback."""
    old, new = WRONG[words]
    expected = "no table 'none'" if "none'" in new and "sum" in new else words
    with pytest.raises(InputError, match=expected) as caught:
        described.read(folder(tmp_path, text=DESCRIPTION.replace(old, new)))
    assert "audit.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    """A missing description, text that is no TOML, counts that are no numbers and labels that never meet are refused."""
    with pytest.raises(InputError, match="can be read in"):
        described.read(tmp_path)
    made = folder(tmp_path)
    (made / "both.csv").write_text(BOTH.replace("41", "many"), encoding="utf-8")
    with pytest.raises(InputError, match="row 1 is 'many', which is no count"):
        described.read(made)
    sums = DESCRIPTION + '[[sum]]\ntotal = "time"\npart = "both"\nmatch = { tap = "loc", time = "time" }\n'
    with pytest.raises(InputError, match="written alike"):
        described.read(folder(tmp_path, text=sums))
    (made / "audit.toml").write_text("[[table", encoding="utf-8")
    with pytest.raises(InputError, match="at the end of an array"):
        described.read(made)
    (folder(tmp_path) / "cells.csv").write_text("tap,time,loc\non,06:45,Manly Wharf\n", encoding="utf-8")
    with pytest.raises(InputError, match="not among the cells"):
        described.read(tmp_path)


def test_declared_sums_are_followed(tmp_path: Path) -> None:
    """Sums may be declared with other names, and tables that share keys by accident kept apart."""
    declared = DESCRIPTION + '[[sum]]\ntotal = "time"\npart = "both"\n'
    [found] = described.read(folder(tmp_path, text=declared)).relations
    assert found.rows.tolist() == [0, 0, 1, 2, 0]
    assert described.read(folder(tmp_path, text="sums = 'none'\n" + DESCRIPTION)).relations == ()


def test_tables_refuse_what_makes_no_sense() -> None:
    """Keys of another length, two tables of one name, relations of unknown tables and impossible noise are refused."""
    table = Table("t", {"k": np.arange(2)}, np.ones(2))
    with pytest.raises(InputError, match="3 values for 2 counts"):
        Table("t", {"k": np.arange(3)}, np.ones(2))
    with pytest.raises(InputError, match="two tables are named"):
        Published((table, table))
    with pytest.raises(InputError, match="there are t"):
        Published((table,), sums=(Sum("t", "u", np.zeros(2, dtype=np.int64)),))
    with pytest.raises(InputError, match="does not have"):
        Published((table,), equal=(Pair("t", np.array([0]), "t", np.array([5])),))
    with pytest.raises(InputError, match="at least 0"):
        Noise("laplace", -1.0)
    with pytest.raises(InputError, match="name them all"):
        table.find({"j": [1]})
    assert table.find({"k": [1, 7]}).tolist() == [1, -1]
