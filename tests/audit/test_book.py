"""The release's entry in the ledger: an edited, cut or foreign ledger is found, and what it ought to hold is named."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from audited import CONFIG, contradictions, correct_hashes, edited, run
from ledgers import append

import cbdp
from cbdp.errors import InputError
from cbdp.ledger import Ledger
from cbdp.ledger.store import LEDGER_SCHEMA


def test_a_careful_change_of_the_report_is_noticed_twice(folder: Path) -> None:
    """Its hash may be corrected: the report is written again from the data, and the ledger has the manifest's hash."""
    (folder / "release" / "report.html").write_text("<p>all is well</p>")
    correct_hashes(folder)
    alone = [f.title for f in contradictions(folder)]
    assert alone == ["report.html is not what follows from the data"]
    titles = [f.title for f in contradictions(folder, ledger=folder / "ledger.sqlite")]
    assert titles == [*alone, "manifest.json is not the one that was released"]


def rewrite(folder: Path, *statements: str, restore: bool = True) -> None:
    """Change a ledger behind its triggers' back."""
    with closing(sqlite3.connect(folder / "ledger.sqlite", isolation_level=None)) as book:
        for name in ("no_update", "no_delete", "append"):
            book.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            book.execute(statement)
        if restore:
            for name in ("append", "no_update", "no_delete"):
                book.execute(LEDGER_SCHEMA[name])


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "UPDATE entry SET entry = replace(entry, '\"nano\":3000000000', '\"nano\":1000000000') WHERE sequence = 2",
            "entry 2 of the ledger",
        ),
        ("UPDATE entry SET hash = previous WHERE sequence = 3", "entry 3 of the ledger"),
        ("DELETE FROM entry WHERE sequence = 2", "entry 2 of the ledger"),
        ("DELETE FROM entry WHERE sequence = 3", "does not note that the charge of entry 2 was released"),
        ("DELETE FROM entry WHERE sequence > 1", "The ledger does not hold the charge"),
        ("DELETE FROM entry", "entry 1 is missing"),
    ],
)
def test_an_edited_or_cut_ledger(
    folder: Path, capsys: pytest.CaptureFixture[str], statement: str, words: str
) -> None:
    """The broken entry, or what the ledger ought to hold, is named; also when it is found by the configuration."""
    rewrite(folder, statement)
    by_file = ["--ledger", str(folder / "ledger.sqlite")]
    assert run(folder, *(["--config", str(folder / "cbdp.toml")] if "nano" in statement else by_file)) == 1
    assert words in capsys.readouterr().out


def test_a_ledger_whose_triggers_are_gone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both the missing trigger and the edited entry are named."""
    rewrite(folder, "UPDATE entry SET hash = previous WHERE sequence = 3", restore=False)
    assert run(folder, "--ledger", str(folder / "ledger.sqlite")) == 1
    said = capsys.readouterr().out
    assert "'append' of its schema is missing" in said
    assert "entry 3 of the ledger" in said


def test_a_ledger_that_charged_less(folder: Path) -> None:
    """A sound ledger made for the purpose holds another charge than the release's."""
    other = folder / "other.sqlite"
    with Ledger.open(other, dataset="a small city", cap=10, create=True) as ledger:
        charge = ledger.reserve("request", 1)
    edited(folder, lambda m: m["ledger"].update(head=charge.head))
    digest = hashlib.sha256((folder / "release" / "manifest.json").read_bytes()).hexdigest()
    with Ledger.open(other, dataset="a small city") as ledger:
        ledger.released(charge, digest, folder / "release")
    found = contradictions(folder, ledger=other)
    assert [f.title for f in found] == ["Entry 2 of the ledger charges 1, the release claims 3"]


def test_an_abandoned_charge(folder: Path) -> None:
    """Older ledgers may say that a charge was given up: a release on it was never noted."""
    other = folder / "other.sqlite"
    with Ledger.open(other, dataset="a small city", cap=10, create=True) as ledger:
        charge = ledger.reserve("request", 3)
    append(other, {"event": "abandoned", "charge": charge.id, "note": "lost"})
    edited(folder, lambda m: m["ledger"].update(head=charge.head))
    titles = [f.title for f in contradictions(folder, ledger=other)]
    assert titles == ["The ledger does not note that the charge of entry 2 was released"]


def test_a_release_outside_any_ledger(folder: Path) -> None:
    """A manifest that names no charge contradicts whoever shows a ledger for it."""
    edited(folder, lambda m: m["ledger"].update(head=None))
    titles = [f.title for f in contradictions(folder, ledger=folder / "ledger.sqlite")]
    assert titles == ["manifest.json: ledger/head names no charge"]


def test_another_configuration(folder: Path) -> None:
    """Another ε is another request than the one that was charged, another cap another ledger; another universe is bad input."""
    config = folder / "cbdp.toml"
    config.write_text(CONFIG.replace("epsilon = 3", "epsilon = 2"))
    assert any("another request" in f.title for f in contradictions(folder, config=config))
    config.write_text(CONFIG.replace("cap = 10", "cap = 9"))
    assert [f.title for f in contradictions(folder, config=config)] == [
        "The ledger's cap is 10, the configuration's 9"
    ]
    config.write_text(CONFIG.replace("a small city", "a large city"))
    assert any("of data set 'a small city'" in f.title for f in contradictions(folder, config=config))
    config.write_text(CONFIG.replace('every = "2h"', 'every = "1h"'))
    with pytest.raises(InputError, match="another universe"):
        cbdp.audit_release(folder / "release", config=config)
