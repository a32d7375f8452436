"""`cbdp plan`: writes one page, from public facts; nothing is spent, and no row of the trips is read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from small_city import plan_of, state_of, write_city

from cbdp.app import cli
from cbdp.errors import InputError
from cbdp.forecast.page import page_facts
from cbdp.ledger import Ledger

Captured = pytest.CaptureFixture[str]


def test_one_file_is_written_and_nothing_else_changes(
    city: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even a row group is opened; a page that exists is not overwritten."""
    import pyarrow.parquet as pq

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a row was read")

    monkeypatch.setattr(pq.ParquetFile, "read", never)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", never)
    before, page = state_of(city), city / "plan.html"
    assert cli.main(["plan", str(city / "cbdp.toml"), "--page", str(page)]) == 0
    after = state_of(city)
    assert after.keys() - before.keys() == {str(page)}
    assert {k: v for k, v in after.items() if k in before} == before
    assert capsys.readouterr().out.startswith(str(page))
    assert cli.main(["plan", str(city / "cbdp.toml"), "--page", str(page)]) == 2
    assert "exists already and is not overwritten" in capsys.readouterr().err


def test_rows_have_no_say(tmp_path: Path) -> None:
    """Two cities whose trips differ and whose public facts are the same have the same page."""
    import pyarrow.parquet as pq

    pages = []
    for name, rows in (("a", slice(0, 50)), ("b", slice(0, 5))):
        folder = tmp_path / name
        folder.mkdir()
        write_city(folder)
        table = pq.read_table(folder / "trips.parquet")
        pq.write_table(table.slice(rows.start, rows.stop), folder / "trips.parquet")
        assert cli.main(["plan", str(folder / "cbdp.toml"), "--page", str(folder / "plan.html")]) == 0
        pages.append((folder / "plan.html").read_bytes())
    assert pages[0] == pages[1]


def test_what_cannot_be_planned_is_told(city: Path) -> None:
    """A mechanism without a model of errors, and trips of one person that are still to be bought."""
    with pytest.raises(
        InputError, match=r"needs the mechanism 'constraint-based'.*'laplace' use `cbdp check`"
    ):
        page_facts(plan_of(city, ('"constraint-based"', '"laplace"')))
    bought = 'cap = 2.0\nunit = { person = "card", max_trips = { quantile = 0.9, epsilon = 0.25 } }'
    with pytest.raises(InputError, match="max_trips is bought: state it as a number"):
        page_facts(plan_of(city, ("cap = 2.0", bought)))


def test_the_ledger_is_on_the_page(city: Path) -> None:
    """What is spent and left, as `check` has it."""
    with Ledger.open(city / "ledger.sqlite", dataset="city", cap=2, create=True) as ledger:
        ledger.reserve("another", epsilon="0.25", what="another")
    account = page_facts(plan_of(city))["account"]
    assert (account["exists"], account["cap"], account["spent"]) == (True, 2.0, 0.25)
    assert account["currency"] == "epsilon"


def test_a_page_is_written_for_what_does_not_fit(city: Path, capsys: Captured) -> None:
    """`check` refuses an ε that the ledger has not left, and an output that exists; the page is where another is looked for."""
    with Ledger.open(city / "ledger.sqlite", dataset="city", cap=2, create=True) as ledger:
        ledger.reserve("another", epsilon="1.5", what="another")
    (city / "release").mkdir()
    assert cli.main(["check", str(city / "cbdp.toml")]) == 2
    assert "does not fit" in capsys.readouterr().err
    assert cli.main(["plan", str(city / "cbdp.toml"), "--page", str(city / "plan.html")]) == 0
    assert (city / "plan.html").is_file()


def test_the_configured_settings_are_among_the_choices(city: Path) -> None:
    """An odd ε, an odd number of trips: the page starts where the configuration stands."""
    unit = 'cap = 2.0\nunit = { person = "card", max_trips = 7 }'
    found = page_facts(plan_of(city, ("epsilon = 1.0", "epsilon = 0.777"), ("cap = 2.0", unit)))
    assert found["own"] == "0.777"
    assert found["own"] in found["amounts"]
    assert 7 in found["ks"]
    assert found["variants"][found["period"]][found["zone"]]["types"] == 144
    third = page_facts(plan_of(city, ("epsilon = 1.0", 'epsilon = "1/3"')))
    assert third["own"] == "1/3"
    assert json.loads(json.dumps(third)) == third


def test_the_person_column_is_guessed_by_its_name(city: Path) -> None:
    """Where the unit is a trip, the page can still propose persons."""
    assert page_facts(plan_of(city))["unit"] == {
        "kind": "trip", "neighbours": "add-remove", "column": "card", "k": 4, "per": "release", "apart": None, "known": True,
    }  # fmt: skip


def test_deployments_agree_with_what_is_published() -> None:
    """The Census states ε = 17.14 for ρ = 2.56 at δ = 1e-10, Wikimedia ε = 1 for ρ = 0.015 at 1e-7: our conversion is as tight."""
    from cbdp.forecast.page import DEPLOYMENTS, UNITS
    from cbdp.privacy.accounting import epsilon_of

    shown = {d.name.split()[0]: d for d in DEPLOYMENTS}
    assert float(epsilon_of("2.56", "1e-10")) == pytest.approx(float(shown["US"].shown), rel=0.002)
    assert float(shown["Wikimedia"].shown) < 1
    for d in DEPLOYMENTS:
        assert d.unit in UNITS
        assert "registry" in d.source
        assert re.search(r"arXiv:\d{4}\.\d{5}|Facebook Research", d.source)
