"""`cbdp ledger`, as a user meets it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ledgers import SHA, opened

from cbdp.app import cli

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A released charge of 0.25 with δ, and one of 0.5 that was never published."""
    with opened(tmp_path, cap_delta="1e-6") as book:
        book.released(book.reserve("r", "0.25", "1e-7", what="laplace"), SHA, "out")
        book.reserve("s", "0.5")
    return Path(book.path)


def test_a_ledger_is_shown_with_and_without_the_word(ledger: Path, capsys: Captured) -> None:
    """What was spent, on what, and what of it was lost; amounts as people write them."""
    shown = []
    for arguments in (["ledger", str(ledger)], ["ledger", "show", str(ledger)]):
        assert cli.main(arguments) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    lines = shown[0].splitlines()
    assert (
        lines[0] == "data set 'trips': (0.75, δ 0.0000001) of (1, δ 0.000001) spent, (0.25, δ 0.0000009) left"
    )
    assert ["trips", "1", "(0.75,", "δ", "0.0000001)", "0.5"] in [line.split() for line in lines]
    assert any("ε (0.25, δ 0.0000001)" in line and "what laplace" in line for line in lines)
    assert lines[-1].startswith("the chain is whole; id ")
    assert not any(word in shown[0] for word in ("nano", "atto", "request"))


def test_a_head_is_looked_for(ledger: Path, capsys: Captured) -> None:
    """Exit 1 if the history that a manifest names is not part of it; options may stand first, as they could before."""
    head = capsys.readouterr().out or cli.main(["ledger", str(ledger)]) or capsys.readouterr().out.split()[-1]
    assert cli.main(["ledger", "--contains", head, str(ledger)]) == 0
    assert cli.main(["ledger", "show", str(ledger), "--contains", "0" * 64]) == 1
    assert "does not contain 000" in capsys.readouterr().err


def test_a_broken_ledger_is_exit_code_1(ledger: Path, capsys: Captured) -> None:
    """The first broken entry is named."""
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(ledger)) as raw:
        raw.execute("DROP TRIGGER no_update")
        raw.execute("UPDATE entry SET entry = replace(entry, '500000000', '100000000')")
        raw.commit()
    assert cli.main(["ledger", str(ledger)]) == 1
    said = capsys.readouterr()
    assert not said.out
    assert "'no_update' of its schema is missing" in said.err


def test_a_file_that_is_called_like_an_action(
    ledger: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is shown by a path, or by the action in front."""
    monkeypatch.chdir(ledger.parent)
    os.rename(ledger, "create")  # noqa: PTH104
    for arguments in (["ledger", "./create"], ["ledger", "show", "create"]):
        assert cli.main(arguments) == 0
        assert "data set 'trips'" in capsys.readouterr().out
    assert cli.main(["ledger", "create"]) == 2
