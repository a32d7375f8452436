"""The transit benchmark: the original service is the case study's, and its pieces do what their tables say."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.transit import PUBLISHED, Job, Outcome, demand, error, reshaped, verdicts, work, zone_error


@pytest.mark.parametrize(("day", "near"), [("weekday", 0.1), ("weekend", 0.25)])
def test_the_original_service_is_the_case_studys(day: str, near: float) -> None:
    """Shuttles within 5 % of the published fleet, the wait within 10 % (weekday) or 25 % (weekend), nobody unserved."""
    made = work(Job(day, None))
    shuttles, wait, _ = PUBLISHED[day]["original"]
    assert made.shuttles == pytest.approx(shuttles, rel=0.05)
    assert made.wait == pytest.approx(wait, rel=near)
    assert made.unserved == 0


def test_a_private_fleet_is_tried_on_the_real_riders() -> None:
    """A fleet sized on a private data set is run on the real trips, and an inflated one is too large to be sized."""
    made = work(Job("weekend", "O5"))
    assert made.fleet
    assert made.unserved == 0
    lost = work(Job("weekend", "Lap", "0.1"))
    assert not lost.fleet
    assert "more than" in lost.reason


@pytest.mark.parametrize("tail", [0.5, 1.0, 1.5])
def test_reshaping_keeps_types_and_total(tail: float) -> None:
    """Only the tail changes: the same types have trips, as many in all, with a larger largest for a larger power."""
    _, counts = demand("weekday", 1.0)
    made = reshaped(counts, tail)
    assert made.sum() == counts.sum()
    assert ((made > 0) == (counts > 0)).all()
    assert np.sign(int(made.max()) - int(counts.max())) == np.sign(tail - 1)


def test_errors_by_zone_do_not_cancel() -> None:
    """A fleet that moves shuttles from zone to zone has no error in total and one by zone."""
    job = Job("weekday", None)
    truth, moved = Outcome(job, 1, (10, 10), 100, 100), Outcome(job, 1, (5, 15), 100, 100)
    assert error(moved, truth, "shuttles") == 0
    assert zone_error(moved, truth) == 0.5


def test_verdicts_read_the_table() -> None:
    """The published table passes every verdict but the sign of waits, which it does not print."""
    behind = {
        n: (row[0], row[0], -row[1], row[2]) for n, row in PUBLISHED["weekday"].items() if n != "original"
    }
    assert all(holds for _, holds in verdicts("weekday", behind))
    worse = {**behind, "O5": (0.6, 0.6, 0.0, 0.0)}
    assert sum(holds for _, holds in verdicts("weekday", worse)) == 2
