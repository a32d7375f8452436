"""Buying a public max_trips: charged once, stated everywhere, and part of the release's ε."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from small_city import plan_of

from cbdp.app import choosing
from cbdp.app.cli import main
from cbdp.audit import guarantee_check
from cbdp.audit.findings import worst
from cbdp.config import read
from cbdp.errors import InputError
from cbdp.forecast import explain
from cbdp.ledger import Ledger
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.unit import PrivateQuantile
from cbdp.release import load
from cbdp.release.manifest import check_manifest

UNIT = (
    "[mechanism]",
    'unit = { person = "card", max_trips = { quantile = 0.9, epsilon = 0.25 } }\n[mechanism]',
)


def _bought(city: Path, *changes: tuple[str, str]) -> choosing.Choice:
    plan_of(city, UNIT, *changes)
    assert main(["ledger", "create", str(city / "cbdp.toml")]) == 0
    return choosing.buy(read(city / "cbdp.toml"), InsecureSeededEntropy(1), accept_unusual=True)


def test_it_is_charged_once_and_noted(city: Path) -> None:
    """The ledger has the charge with its file; a second purchase finds the first, and so does every plan."""
    made = _bought(city)
    again = choosing.buy(read(city / "cbdp.toml"), accept_unusual=True)
    assert (made.fresh, again.fresh) == (True, False)
    assert again.max_trips == made.max_trips in range(1, 101)
    with Ledger.view(city / "ledger.sqlite") as ledger:
        ledger.verify()
        assert float(ledger.spent.value) == 0.25
        assert [c.what for c in ledger.charges()] == ["max_trips"]
    stated = json.loads(made.path.read_text())
    assert stated["max_trips"] == made.max_trips
    assert stated["bought"] == {
        "quantile": {"exact": "9/10", "decimal": 0.9},
        "epsilon": {"exact": "1/4", "decimal": 0.25},
    }
    plan = plan_of(city, UNIT)
    assert plan.unit.max_trips == made.max_trips  # type: ignore[union-attr]
    assert plan.unit.bought == PrivateQuantile("0.9", "0.25")  # type: ignore[union-attr]


def test_the_release_spends_the_rest(city: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ε = 1 in all: a quarter for max_trips, the rest for the tables; the manifest says both, and the same request is found again."""
    made = _bought(city)
    for _ in range(2):
        assert main(["release", str(city / "cbdp.toml"), "--accept-unusual"]) == 0
    assert "has been released before" in capsys.readouterr().out
    release = load(city / "release")
    assert release.claim.cost.epsilon == Fraction(3, 4)
    unit: Any = release.claim.unit
    assert (unit.max_trips, unit.bought) == (made.max_trips, PrivateQuantile("0.9", "0.25"))
    assert f"{made.max_trips} was bought for ε = 1/4 more" in str(release.claim)
    with Ledger.view(city / "ledger.sqlite") as ledger:
        assert float(ledger.spent.value) == 1
    check_manifest(release.manifest, "the manifest")
    assert worst(guarantee_check.attack(release.manifest, release.features)) == "clear"


def test_check_works_before_and_release_does_not(city: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before the purchase `check_manifest` goes by a guess and says so; `release` stops, and nothing is spent."""
    plan = plan_of(city, UNIT)
    said = " ".join(explain(plan).text.split())
    assert "max_trips is bought by `cbdp choose`, which was not done yet: what is shown goes by 10" in said
    assert "bought for ε = 0.25 of the release's ε, as what 90 % of persons do not exceed" in said
    assert main(["release", "--create-ledger", str(city / "cbdp.toml")]) == 2
    assert "max_trips is not bought yet: run `cbdp choose`" in capsys.readouterr().err
    assert not (city / "ledger.sqlite").exists()


def test_a_run_that_died_before_its_note_is_noted_by_the_next(
    city: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between file and note: the next run notes what was drawn, and pays nothing. Killed before the file: it pays again."""
    monkeypatch.setattr(Ledger, "released", _die)
    with pytest.raises(KeyboardInterrupt):
        _bought(city)
    monkeypatch.undo()
    (file,) = city.glob("ledger-max_trips-*.json")
    drawn = json.loads(file.read_text())["max_trips"]
    again = choosing.buy(read(city / "cbdp.toml"), accept_unusual=True)
    assert (again.max_trips, again.fresh) == (drawn, False)
    with Ledger.view(city / "ledger.sqlite") as ledger:
        assert float(ledger.spent.value) == 0.25
        assert not ledger.unfinished()


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_file_that_was_changed_is_refused(city: Path) -> None:
    """The ledger knows its hash: nobody can choose another number after the fact."""
    made = _bought(city)
    made.path.write_text(made.path.read_text().replace(f'"max_trips": {made.max_trips}', '"max_trips": 77'))
    with pytest.raises(InputError, match="is not what was written then"):
        plan_of(city, UNIT)


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        (
            '{ person = "card", max_trips = { quantile = 1.5, epsilon = 0.25 } }',
            "must be at least 0 and below 1",
        ),
        ('{ person = "card", max_trips = { quantile = 0, epsilon = 0.25 } }', "strictly between 0 and 1"),
        ('{ person = "card", max_trips = { quantile = 0.9 } }', "needs 'epsilon'"),
        ('{ person = "card", max_trips = { quantile = 0.9, epsilon = 1 } }', "has no more than that"),
    ],
)
def test_what_cannot_be_bought_is_one_line(city: Path, unit: str, said: str) -> None:
    """With the line of the configuration; nothing is spent."""
    with pytest.raises(InputError, match=said):
        plan_of(city, ("[mechanism]", f"unit = {unit}\n[mechanism]"))


def test_there_must_be_something_to_buy_and_a_ledger(city: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`cbdp choose` says what is missing."""
    assert main(["choose", str(city / "cbdp.toml")]) == 2
    assert "there is nothing to buy" in capsys.readouterr().err
    plan_of(city, UNIT)
    assert main(["choose", str(city / "cbdp.toml")]) == 2
    assert "there is no ledger" in capsys.readouterr().err


@pytest.mark.slow
def test_runs_at_once_buy_once(city: Path) -> None:
    """Three processes at the same time: one charge, one number, and the others find it."""
    plan_of(city, UNIT)
    assert main(["ledger", "create", str(city / "cbdp.toml")]) == 0
    command = [sys.executable, "-m", "cbdp", "choose", str(city / "cbdp.toml"), "--accept-unusual"]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [run.communicate()[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert len({line.split(" (")[0] for line in said}) == 1
    assert sum("was charged" in line for line in said) == 1
    with Ledger.view(city / "ledger.sqlite") as ledger:
        assert float(ledger.spent.value) == 0.25
