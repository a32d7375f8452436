"""Scale recovery: from pairs with equal truth and from totals, with intervals that hold as often as they say."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from attacked_tables import LAWS, P, manly, tables_of

from cbdp.audit import scale_recovery
from cbdp.privacy.noise import noise_distribution


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [12, 400])
def test_the_scale_is_recovered_from_manly_pairs(law: str, n: int) -> None:
    """From pairs with equal truth p = 1.4 lies in its interval, and the interval shrinks with their number."""
    noise = noise_distribution(law, P)
    [found] = scale_recovery.attack(manly(noise, n, 1, noise))
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
    noise = noise_distribution("rounded", P)
    held = 0
    for seed in range(200):
        [group] = scale_recovery.residual_groups(manly(noise, n, seed, noise, None))
        fit = scale_recovery.fit_scale(group, 0.9)
        held += fit.low <= P <= fit.high
    assert 155 <= held <= 198  # five standard deviations below 180, and a little for discreteness


@pytest.mark.parametrize(("declared", "word"), [(3.0, "less"), (0.7, "more")])
def test_a_wrong_declaration_is_contradicted(declared: float, word: str) -> None:
    """Twice or half the true scale is outside an interval that errs once in a million."""
    noise = noise_distribution("geometric", P)
    [found] = scale_recovery.attack(manly(noise, 400, 2, noise_distribution("geometric", declared)))
    assert found.verdict == "contradicts"
    assert word in found.title


def test_an_undeclared_scale_is_a_weakness_and_no_noise_contradicts() -> None:
    """Without a declaration the scale is told; where noise is declared and none is there, that is a contradiction."""
    noise = noise_distribution("geometric", P)
    [found] = scale_recovery.attack(manly(noise, 400, 3, None))
    assert found.verdict == "weakness"
    assert float(found.figures["low"]) < P < float(found.figures["high"])
    silent = manly(noise_distribution("geometric", 0.01), 50, 3, noise)
    assert [f.verdict for f in scale_recovery.attack(silent)] == ["contradicts"]


def test_totals_tell_the_scale_too() -> None:
    """A total less the sum of its parts has a law of known noises: a scale declared 1.5 times too large is caught."""
    published, _ = tables_of(np.random.default_rng(5), 300, 4)
    assert {f.verdict for f in scale_recovery.attack(published)} == {"clear"}
    wrong = tuple(replace(t, noise=t.noise.times(1.5)) if t.noise else t for t in published.tables)
    found = scale_recovery.attack(replace(published, tables=wrong))
    assert any(f.verdict == "contradicts" and "less" in f.title for f in found)


def test_what_is_said_to_be_found_is_found() -> None:
    """Noise of the factor that a clear finding names is contradicted in at least 85 of 100 releases, as 95 % of many would be."""
    noise = noise_distribution("geometric", P)
    [clear] = scale_recovery.attack(manly(noise, 150, 1, noise, None))
    small = float(re.findall(r"less than ([0-9.]+) times", clear.power)[0])
    less = noise_distribution("geometric", round(P * small, 2))
    found = [scale_recovery.attack(manly(less, 150, seed, noise, None))[0].verdict for seed in range(100)]
    assert found.count("contradicts") >= 85


@pytest.mark.parametrize("law", ["geometric", "gaussian", "laplace"])
def test_wide_noise_and_many_sizes_of_sums_are_fitted_too(law: str) -> None:
    """Totals of 1 to 400 parts with noise of thousands: the fitted scale is near the true one, by a sum of almost normal laws."""
    rng, noise = np.random.default_rng(4), noise_distribution(law, 2000.0)
    many = rng.integers(1, 400, 300)
    value = np.rint(rng.normal(0, 1, 300) * np.sqrt((1 + many) * noise.variance()))
    found = scale_recovery.fit_scale(
        scale_recovery.Residuals("sums", value, noise, noise, many, declared=True), 0.999
    )
    assert found.low < 2000 < found.high
    assert found.high / found.low < 1.4
