"""The benchmark of running totals: its arithmetic, and what is seen."""

from __future__ import annotations

import pytest

from benchmarks import running


def test_a_table_of_deviations(capsys: pytest.CaptureFixture[str]) -> None:
    """Of 30 days: the square root is the best with Gaussian noise, and seen as stated."""
    assert running.main(["--periods", "30", "--runs", "6"]) == 0
    rows = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines()[2:]]
    stated = {(r[1].strip(), r[2].strip()): (float(r[6]), float(r[7])) for r in rows}
    assert stated["gaussian", "square root"][0] == pytest.approx(2.15, abs=0.01)
    assert stated["gaussian", "each alone"][0] == pytest.approx(30**0.5, abs=0.01)
    assert all(seen == pytest.approx(said, rel=0.3) for said, seen in stated.values())
