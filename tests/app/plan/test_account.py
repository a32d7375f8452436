"""The account of a plan: what the ledger says, only read."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from small_city import CONFIG, plan_of, state_of

from cbdp.app import explain
from cbdp.errors import CbdpError, InputError
from cbdp.privacy.ledger import BudgetError, Ledger


def test_a_ledger_of_another_data_set_is_refused(city: Path) -> None:
    """The line is that of the data set's name, or of the ledger where none is stated."""
    Ledger.open(city / "ledger.sqlite", dataset="village", cap=2, create=True).close()
    before = state_of(city)
    with pytest.raises(InputError, match=r":5: the ledger .* belongs to data set 'village', not 'city'"):
        plan_of(city)
    with pytest.raises(
        InputError, match=r":16: the ledger .* belongs to data set 'village', not 'trips\.parquet'"
    ):
        plan_of(city, ('id = "city"\n', ""))
    (city / "cbdp.toml").write_text(CONFIG)
    assert set(state_of(city)) == set(before)


def test_what_is_left_decides(city: Path) -> None:
    """ε over what is left is refused before anything is spent; what fits is shown with what stays."""
    with Ledger.open(city / "ledger.sqlite", dataset="city", cap=2, create=True) as ledger:
        ledger.reserve("another request", "1.25")
    with pytest.raises(BudgetError, match=r":16: a charge of 1 does not fit: 0\.75 of the cap 2 is left"):
        plan_of(city)
    plan = plan_of(city, ("epsilon = 1.0", "epsilon = 0.5"))
    assert (plan.account.spent.epsilon, plan.account.after.epsilon) == (Fraction(5, 4), Fraction(1, 4))
    assert "cap 2, spent 1.25, this release 0.5, left after it 0.25" in explain.explain(plan).text
    with pytest.raises(
        InputError, match=r":18: the ledger's cap is 2, not 3: it was fixed when the ledger was created"
    ):
        plan_of(city, ("cap = 2.0", "cap = 3.0"), ("epsilon = 1.0", "epsilon = 0.5"))
    with Ledger.view(city / "ledger.sqlite") as ledger:
        assert ledger.spent.epsilon == Fraction(5, 4)


def test_an_identical_request_that_was_released_costs_nothing(city: Path) -> None:
    """Neither the cap nor its own folder stand in its way, and the text says that it is returned."""
    request = plan_of(city).request
    with Ledger.open(city / "ledger.sqlite", dataset="city", cap=2, create=True) as ledger:
        ledger.released(ledger.reserve(request, 1), "0" * 64, city / "release")
        ledger.reserve("another request", 1)
    (city / "release").mkdir()
    plan = plan_of(city)
    assert plan.account.finished is not None
    assert plan.account.after.epsilon == 0
    assert "it is returned, nothing is spent" in " ".join(explain.explain(plan).text.split())
    with pytest.raises(BudgetError):
        plan_of(city, ("epsilon = 1.0", "epsilon = 0.9"))


def test_an_interrupted_request_is_told(city: Path) -> None:
    """A charge without a release is a warning, and its folder is left for the release to look at."""
    request = plan_of(city).request
    with Ledger.open(city / "ledger.sqlite", dataset="city", cap=2, create=True) as ledger:
        ledger.reserve(request, 1)
    (city / "release").mkdir()
    assert any("charged and never released" in w for w in explain.explain(plan_of(city)).warnings)


def test_a_broken_ledger_is_told_with_its_line(city: Path) -> None:
    """A chain that does not verify stops the check."""
    import sqlite3
    from contextlib import closing

    Ledger.open(city / "ledger.sqlite", dataset="city", cap=2, create=True).close()
    with closing(sqlite3.connect(city / "ledger.sqlite")) as raw:
        raw.execute("DROP TRIGGER no_update")
        raw.execute("UPDATE entry SET hash = ?", ("f" * 64,))
        raw.commit()
    with pytest.raises(CbdpError, match=r"cbdp\.toml:17: .*broken"):
        plan_of(city)
