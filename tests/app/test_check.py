"""`cbdp check` on a terminal: one screen, warnings last; more if asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_city import plan_of

from cbdp.app import cli
from cbdp.forecast import explain
from cbdp.forecast.check import SCREEN_WIDTH

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    "change",
    [
        ("cap = 2.0", "cap = 2.0"),
        ("cap = 2.0", 'cap = 2.0\nunit = { person = "card", max_trips = 4, per = "day", apart = "time" }'),
        ("epsilon = 1.0", 'rho = 0.02\nlaw = "gaussian"'),
        ("epsilon = 1.0\n", 'epsilon = 1.0\nbudget = "leaves"\n'),
        ('"constraint-based"', '"hierarchical"'),
        ('"constraint-based"', '"threshold-laplace"'),
    ],
)
def test_it_fits_on_one_screen(city: Path, change: tuple[str, str]) -> None:
    """At most 40 lines, none too long; every table once; warnings after all else, and no graph."""
    told = explain(plan_of(city, change))
    lines = str(told).rstrip("\n").split("\n")
    assert 12 <= len(lines) <= 40
    assert max(map(len, lines)) <= SCREEN_WIDTH or str(city) in max(lines, key=len)
    (start,) = (n for n, line in enumerate(lines) if line in ("Warnings", "No warnings."))
    warned = [line for line in lines[start:] if line.startswith("  - ")]
    assert len(warned) == len(told.warnings)
    assert "graph TD" not in str(told)
    for n in told.noise:
        assert sum(line.startswith(f"{n.feature} ") for line in lines) == 1


def test_tables_are_aligned(city: Path) -> None:
    """Numbers end where their heading ends."""
    lines = str(explain(plan_of(city))).split("\n")
    head = next(n for n, line in enumerate(lines) if line.startswith("table "))
    ends = [
        lines[head].index(name) + len(name)
        for name in ("counts", "noise", "is published as", "within", "±20 % from")
    ]
    for line in lines[head + 1 : head + 6]:
        for end in ends:
            assert line[end - 1] != " "
            assert line[end] == " "


def test_more_is_shown_if_asked(city: Path, capsys: Captured) -> None:
    """All sections, the graph for other programs, or numbers."""
    config = str(city / "cbdp.toml")
    assert cli.main(["check", config, "--all"]) == 0
    everything = capsys.readouterr().out
    assert "What budgets would do" in everything
    assert "What would be written" in everything
    assert cli.main(["check", config, "--picture"]) == 0
    assert capsys.readouterr().out.startswith("graph TD")
    assert cli.main(["check", config, "--json", "--within", "zone=5"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["epsilon"] == 1.0
    assert [t["table"] for t in found["tables"]] == ["total", "time", "zone", "mode", "singleton"]
    assert sum(t["share"] for t in found["tables"]) == pytest.approx(1)
    assert found["answers"][0].startswith("For 'zone' to be within 5 %")
