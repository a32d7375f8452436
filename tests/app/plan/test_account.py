"""The account of a plan: what the ledger says, only read."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from small_city import CONFIG, plan_of, state_of

from cbdp import forecast
from cbdp.errors import CbdpError, InputError
from cbdp.ledger import BudgetError, Ledger


def test_a_ledger_of_another_data_set_is_refused(city: Path) -> None:
    """The line is that of the data set's name, or of its riders' where they are stated; nothing is written."""
    Ledger.open(city / "ledger.sqlite", dataset="village", cap=2, create=True).close()
    before = state_of(city)
    with pytest.raises(
        InputError, match=r":5: the ledger .* belongs to data set 'village', not to data set 'city'"
    ):
        plan_of(city)
    with pytest.raises(
        InputError, match=r":6: the ledger .* belongs to data set 'village', not to the riders 'cards'"
    ):
        plan_of(city, ('id = "city"\n', 'id = "city"\nriders = "cards"\n'))
    (city / "cbdp.toml").write_text(CONFIG)
    assert set(state_of(city)) == set(before)


def test_what_is_left_decides(city: Path) -> None:
    """ε over what is left is refused before anything is spent; what fits is shown with what stays."""
    with Ledger.open(city / "ledger.sqlite", dataset="city", cap=2, create=True) as ledger:
        ledger.reserve("another request", "1.25")
    with pytest.raises(BudgetError, match=r":16: a charge of 1 does not fit: 0\.75 of the cap 2 is left"):
        plan_of(city)
    with pytest.raises(BudgetError, match=r"Release less, by a smaller epsilon; or decide"):
        plan_of(city)
    plan = plan_of(city, ("epsilon = 1.0", "epsilon = 0.5"))
    assert (plan.account.spent.epsilon, plan.account.after.epsilon) == (Fraction(5, 4), Fraction(1, 4))
    assert "cap 2, spent 1.25, this release 0.5, left after it 0.25" in forecast.explain(plan).text
    with pytest.raises(
        InputError, match=r":18: the ledger's cap is 2, not 3: it was fixed when the ledger was created"
    ):
        plan_of(city, ("cap = 2.0", "cap = 3.0"), ("epsilon = 1.0", "epsilon = 0.5"))
    with Ledger.view(city / "ledger.sqlite") as ledger:
        assert ledger.spent.epsilon == Fraction(5, 4)


def test_where_all_is_spent_no_smaller_release_is_proposed(city: Path) -> None:
    """There is no ε that would fit."""
    with Ledger.open(city / "ledger.sqlite", dataset="city", cap=2, create=True) as ledger:
        ledger.reserve("another request", "2")
    with pytest.raises(BudgetError, match=r"0 of the cap 2 is left .* takes a new ledger") as caught:
        plan_of(city)
    assert "smaller" not in str(caught.value)


def test_months_of_the_same_riders_add_up(city: Path) -> None:
    """With riders named in both, what January cost is missing from what February may spend."""
    february = ('id = "city"\n', 'id = "february"\nriders = "cards"\n')
    with Ledger.open(city / "ledger.sqlite", dataset="january", riders="cards", cap=2, create=True) as ledger:
        ledger.reserve("another request", "1.25")
    with pytest.raises(BudgetError, match=r"0\.75 of the cap 2 is left for the riders 'cards'"):
        plan_of(city, february)
    plan = plan_of(city, february, ("epsilon = 1.0", "epsilon = 0.5"))
    assert plan.account.after.epsilon == Fraction(1, 4)
    assert "ledger.sqlite of the riders 'cards'" in " ".join(forecast.explain(plan).text.split())


def test_what_runs_that_died_have_cost_is_told(city: Path) -> None:
    """Whoever has nothing left learns where it went and what the choices are; `check` tells before."""
    with Ledger.open(city / "ledger.sqlite", dataset="city", cap=2, create=True) as ledger:
        ledger.released(ledger.reserve("another request", "0.25"), "0" * 64, city / "other")
        ledger.reserve("another request", "0.5")
    text = " ".join(forecast.explain(plan_of(city)).text.split())
    assert "Of what was spent, 0.5 went to runs that were never published" in text
    with Ledger.open(city / "ledger.sqlite", dataset="city") as ledger:
        ledger.reserve("another request", "0.5")
    with pytest.raises(BudgetError) as caught:
        plan_of(city)
    for words in (
        "0.75 of the cap 2 is left",
        "(1 was spent on runs that were never published, and stays spent)",
        "Release less",
        "a new promise",
    ):
        assert words in str(caught.value)


def test_a_ledger_that_does_not_exist_is_not_an_error_of_a_check(city: Path) -> None:
    """The text says how to create it, and that a lost one is to be restored."""
    text = " ".join(forecast.explain(plan_of(city)).text.split())
    assert (
        "ledger.sqlite' does not exist. If data set 'city' was never released, create it: cbdp ledger create"
        in text
    )
    assert "Otherwise restore it: a new one would forget what was spent." in text
    (city / "ledger.sqlite").touch()
    assert "ledger.sqlite' is an empty file. If" in " ".join(forecast.explain(plan_of(city)).text.split())
    riders = ('id = "city"\n', 'id = "february"\nriders = "cards"\n')
    text = " ".join(forecast.explain(plan_of(city, riders)).text.split())
    assert "If no trips of the riders 'cards' were ever released, create it" in text


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
    assert "it is returned, nothing is spent" in " ".join(forecast.explain(plan).text.split())
    with pytest.raises(BudgetError):
        plan_of(city, ("epsilon = 1.0", "epsilon = 0.9"))


def test_an_interrupted_request_is_told(city: Path) -> None:
    """A charge without a release is a warning, and its folder is left for the release to look at."""
    request = plan_of(city).request
    with Ledger.open(city / "ledger.sqlite", dataset="city", cap=2, create=True) as ledger:
        ledger.reserve(request, 1)
    (city / "release").mkdir()
    assert any("charged and never released" in w for w in forecast.explain(plan_of(city)).warnings)


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
