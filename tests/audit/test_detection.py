"""Detection: where zeros are skipped a published count proves presence; thresholds and zeros against what is declared."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from attacked_tables import LAWS, P, draw, secret

from cbdp.audit import detection
from cbdp.audit.findings import worst
from cbdp.audit.tables import CountTable, PublishedTables
from cbdp.privacy.noise import noise_distribution


def test_the_assessments_detection_figures() -> None:
    """δ ≈ 1.9e-6 at p = 1.4, 0.00004 for a group of 5 and 0.005 for one of 12; the chances themselves are larger."""
    assert detection.assessed_delta(P, 18) == pytest.approx(1.9e-6, rel=0.01)
    assert round(detection.assessed_delta(P, 18, 5), 5) == pytest.approx(3e-5)
    assert round(detection.assessed_delta(P, 18, 12), 3) == pytest.approx(0.005)
    for law in LAWS:
        noise = noise_distribution(law, P)
        chances = [detection.detection_probability(noise, 18, g) for g in (1, 5, 12)]
        assert chances[0] >= detection.assessed_delta(P, 18)
        for g, chance in zip((1, 5, 12), chances, strict=True):
            drawn = (g + draw(noise, 1_000_000, g) >= 18).mean()
            assert abs(drawn - chance) < 6 * math.sqrt(chance / 1e6) + 2e-6
    assert chances[1] == pytest.approx(
        detection.detection_probability(noise_distribution("laplace", P), 18, 5) * math.exp(0.5 / P), rel=1e-9
    )


def test_skipping_zeros_contradicts_pure_privacy() -> None:
    """The δ that certain detection forces contradicts δ = 0, not a larger one; noised zeros need none."""
    [found] = detection.attack(secret())
    assert found.verdict == "contradicts"
    each = detection.detection_probability(noise_distribution("laplace", P), 18)
    assert float(found.figures["delta"]) == pytest.approx(2 * each - each**2, rel=1e-9)
    assert float(found.figures["assessed_delta"]) == pytest.approx(1.9e-6, rel=0.01)
    assert [f.verdict for f in detection.attack(secret(delta=1e-5))] == ["weakness"]
    assert [f.verdict for f in detection.attack(replace(secret(), epsilon=None))] == ["weakness"]
    assert [f.verdict for f in detection.attack(secret(zeros=True))] == ["clear"]


def test_zeros_that_are_said_to_be_noised_and_are_not() -> None:
    """Too many exact zeros betray that zeros are skipped; noised zeros pass."""
    truth = np.random.default_rng(0).poisson(0.2, 2000)
    noise = noise_distribution("geometric", 2.0)
    honest = truth + draw(noise, 2000, 8)
    keys = {"cell": np.arange(2000)}
    skipped = np.where(truth == 0, 0, honest)
    assert worst(detection.attack(PublishedTables((CountTable("t", keys, honest, noise),), 1.0))) == "clear"
    [found, _] = detection.attack(PublishedTables((CountTable("t", keys, skipped, noise),), 1.0))
    assert found.verdict == "contradicts"
    shown = np.where(honest >= 3, honest, 0)
    few = np.where((honest >= 3) & (truth > 0), honest, 0)
    fine = CountTable("t", keys, shown, noise, 3, universe=2000)
    assert worst(detection.attack(PublishedTables((fine,), 1.0))) == "clear"
    assert worst(detection.attack(PublishedTables((replace(fine, counts=few),), 1.0))) == "contradicts"


def test_thresholds_are_found_and_held_to() -> None:
    """The least of many counts is told where nothing is declared; a count below a declared threshold contradicts."""
    counts = np.random.default_rng(0).geometric(0.02, 500)
    counts = counts[counts >= 18].astype(float)
    table = CountTable("t", {"cell": np.arange(len(counts))}, counts)
    found = detection.find_threshold(table)
    assert found is not None
    assert found.least == 18
    assert detection.find_threshold(replace(table, counts=counts - 17)) is None
    said = replace(table, threshold=20.0)
    assert any(
        f.verdict == "contradicts" and "below" in f.title for f in detection.attack(PublishedTables((said,)))
    )
