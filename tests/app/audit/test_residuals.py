"""The noise of a release against its declared law, with the true counts at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from audited import small
from scipy.stats import binom

import cbdp
from cbdp.app.audit import residuals
from cbdp.app.audit.truth import truth
from cbdp.audit.membership import noisy_answers
from cbdp.estimation.posterior import Posterior
from cbdp.measuring.samplers import sampler_of
from cbdp.measuring.samplers.laplace import GeometricSampler
from cbdp.privacy.measurement import Measurement
from cbdp.privacy.noise import noise_distribution
from cbdp.release.release import Release


def stated(
    dag: cbdp.FeatureDag, counts: cbdp.Counts, epsilon: int, draw: Callable[[str, np.ndarray], np.ndarray]
) -> Release:
    """A release that claims ε and looks right in every file, whose noise is drawn by somebody else's rule."""
    mechanism = cbdp.ConstraintBased(dag, epsilon, preset="paper")
    share = Fraction(epsilon, len(dag.features))
    measured = [
        Measurement(name, (exact := counts.of(dag, name)) + draw(name, exact), scale=1 / share, epsilon=share)
        for name in dag.features
    ]
    return replace(mechanism.finish(measured), secure=True)


def honest(name: str, exact: np.ndarray) -> np.ndarray:
    return GeometricSampler(Fraction(4)).sample(len(exact))


def halved(name: str, exact: np.ndarray) -> np.ndarray:
    return GeometricSampler(Fraction(2)).sample(len(exact))


def zeros_skipped(name: str, exact: np.ndarray) -> np.ndarray:
    return np.where(exact == 0, 0, honest(name, exact))


def only_zeros(name: str, exact: np.ndarray) -> np.ndarray:
    return np.where(exact == 0, honest(name, exact), 0)


def one_sided(name: str, exact: np.ndarray) -> np.ndarray:
    return np.abs(honest(name, exact))


def some_exact(name: str, exact: np.ndarray) -> np.ndarray:
    return np.where(np.arange(len(exact)) % 3 == 0, 0, honest(name, exact))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (halved, "singleton: the noise on true zeros does not follow its declared law"),
        (zeros_skipped, "singleton: true zeros were published without noise"),
        (only_zeros, "singleton: the noise on other counts does not follow its declared law"),
        (one_sided, "singleton: the noise on true zeros does not follow its declared law"),
        (some_exact, "singleton: the noise on true zeros does not follow its declared law"),
    ],
)
def test_noise_of_another_law_is_found(
    tmp_path: Path, draw: Callable[[str, np.ndarray], np.ndarray], words: str
) -> None:
    """Without the trips such a release may look right; with them the noise gives it away."""
    dag, counts = small()
    stated(dag, counts, 1, draw).save(tmp_path / "release")
    done = cbdp.audit_release(tmp_path / "release", trips=counts)
    assert words in [f.title for f in done.of("contradicts")]
    assert done.sensitive
    found = next(f for f in done.findings if f.title == words)
    assert found.figures["log10 of the odds"] > 6 or "distribution" in found.evidence


def test_the_same_release_with_honest_noise_passes(tmp_path: Path) -> None:
    """The test above fails for the noise alone: the same construction with the declared law is clear."""
    dag, counts = small()
    stated(dag, counts, 1, honest).save(tmp_path / "release")
    assert cbdp.audit_release(tmp_path / "release", trips=counts).of("contradicts") == []


def test_zeros_left_out_of_a_sparse_release_are_found() -> None:
    """Where only what exceeds a floor is published, zeros that never show give themselves away by their absence."""
    dag, counts = small()
    some = Posterior(revealed=dag.universe.size // 2)
    release = cbdp.ConstraintBased(dag, 1, sparse=True, estimator=some).release(counts)
    single = release.measurements[-1]
    kept = np.isin(single.elements, counts.index)
    fewer = replace(single, values=single.values[kept], elements=single.elements[kept], variance=None)
    broken = replace(release, measurements=[*release.measurements[:-1], fewer])
    true = truth(counts, release)
    assert [f.verdict for f in residuals.attack_residuals(release, true)] == ["clear"]
    found = [f for f in residuals.attack_residuals(broken, true) if f.verdict == "contradicts"]
    assert [f.title for f in found] == ["singleton: true zeros were published without noise"]


@pytest.mark.parametrize("name", ["geometric", "rounded"])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(4)])
def test_the_laws_are_the_samplers(name: str, scale: Fraction) -> None:
    """Probabilities add up, the distribution function is their sum, and 200,000 samples agree (chance 10⁻⁹)."""
    law = noise_distribution(name, scale)
    z = np.arange(-400, 401)
    pmf = np.exp(law.log_pmf(z))
    assert abs(pmf.sum() - 1) < 1e-12
    assert np.allclose(np.cumsum(pmf), np.exp(law.log_cdf(z)), atol=1e-12)
    assert abs(float(pmf @ np.abs(z)) - law.mean_size()) < 1e-9
    drawn = sampler_of(law).sample(200_000)
    for value in range(-3, 4):
        p, hits = float(np.exp(law.log_pmf(np.array([value])))[0]), int((drawn == value).sum())
        assert binom.ppf(1e-9 / 14, 200_000, p) <= hits <= binom.isf(1e-9 / 14, 200_000, p)


def test_the_odds_are_an_e_value() -> None:
    """Summed over all outcomes the odds of each other law come to 1 (to at most 1): no false alarm can hide there."""
    law = noise_distribution("geometric", 2.0)
    dag, counts = small()
    answers = noisy_answers(cbdp.ConstraintBased(dag, 1).simulate(counts, 0))[0]
    answers = replace(answers, law=law)
    expected = np.zeros(len(residuals.SCALE_FACTORS) + len(residuals.NOISELESS_SHARES))
    none = np.empty(0, dtype=np.int64)
    floor = 3
    for z in range(floor + 1, 500):  # visible
        group = residuals.Group(
            answers, "other counts", np.array([z]), np.array([1]), none, none, expected=1.0
        )
        expected += np.exp(group.log_odds() + law.log_pmf(np.array([z])))
    hidden = residuals.Group(
        answers, "other counts", none, none, np.array([floor]), np.array([1]), expected=1.0
    )
    expected += np.exp(hidden.log_odds() + law.log_cdf(np.array([floor])))
    assert np.allclose(expected, 1, atol=1e-5)


def test_persons_beyond_the_bound_are_left_out(tmp_path: Path) -> None:
    """What a person with too many trips added is not known: counts with their trips are not tested, others are."""
    rng = np.random.default_rng(1)
    stops = [f"S{i}" for i in range(30)]
    universe = cbdp.Universe(origin=stops, destination=stops)
    dag = cbdp.FeatureDag(universe, [cbdp.Feature("from", by="origin")])
    n = 3000
    card = np.where(rng.random(n) < 0.1, 0, rng.integers(1, 2500, n))  # card 0 has hundreds of trips
    trips = {
        "origin": [stops[i] for i in rng.integers(0, 30, n)],
        "destination": [stops[i] for i in rng.integers(0, 30, n)],
        "card": card.tolist(),
    }
    release = cbdp.ConstraintBased(dag, 2, unit=cbdp.Person("card", 4)).release(trips)
    release.save(tmp_path / "release")
    true = truth(trips, release)
    heavy = {c for c in set(card.tolist()) if (card == c).sum() > 4}
    types = universe.rank_codes(
        [np.array([stops.index(s) for s in trips[d]]) for d in ("origin", "destination")]
    )
    assert set(true.loose.tolist()) == {int(t) for t, c in zip(types, card, strict=True) if c in heavy}
    assert true.total == sum(c not in heavy for c in card.tolist())
    assert all(1 <= len(r) <= 4 for r in true.riders)
    done = cbdp.audit_release(tmp_path / "release", trips=trips)
    assert done.of("contradicts") == []
    assert any("Persons with more trips" in words for words in done.left_out)
    assert "residuals" in {f.check for f in done.findings}
