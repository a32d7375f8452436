"""The benchmark of tables: what it compares is what it says."""

from __future__ import annotations

import math

import pytest

from benchmarks import sums
from cbdp.features import SINGLETON
from cbdp.mechanisms import ConstraintBased


def test_the_noise_of_a_table_is_that_of_its_law() -> None:
    """The third figure is the noise itself: of 12,480 types within six standard errors of a mean square of such noise."""
    case = sums.case_of("night")
    (law,) = (a.law for a in ConstraintBased(case[0], 1).answers() if a.feature == SINGLETON)
    off = sums.errors(case, "1", "balanced", 1)
    chance = 6 * math.sqrt((law.excess_kurtosis + 2) / case[0].size(SINGLETON))
    assert off[SINGLETON][2] ** 2 == pytest.approx(law.variance(), rel=chance)


def test_the_page_names_every_table(capsys: pytest.CaptureFixture[str]) -> None:
    """A row for each measured feature, and how many tables miss the mark."""
    given = ["--runs", "1", "--city", "night", "--epsilon", "1", "--budget", "balanced"]
    assert sums.main(given) == 0
    said = capsys.readouterr().out
    assert all(f"| night | 1 | balanced | {name} |" in said for name in ("total", "time", "zone", SINGLETON))
    assert "of 3 tables" in said
