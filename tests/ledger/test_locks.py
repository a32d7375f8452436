"""Locks: identical requests wait for each other and pay once; a killed holder holds nobody up."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from ledgers import kill, opened, start

from cbdp.errors import InputError
from cbdp.ledger import Ledger

LOCK = """
import sys, time
if sys.argv[2] == "sqlite":
    sys.modules["fcntl"] = None  # as on a system that has none
from cbdp.ledger import Ledger
with Ledger.open(sys.argv[1], dataset="trips", cap=1, create=True) as book:
    for request in ("a", "b", "c"):
        with book.lock(request):
            if book.finished(request) is None:
                charge = book.reserve(request, "0.1")
                time.sleep(0.02)
                book.released(charge, "0" * 64, "out")
"""


HOLD = """
import sys, time
if sys.argv[2] == "sqlite":
    sys.modules["fcntl"] = None  # as on a system that has none
from cbdp.ledger import Ledger
with Ledger.open(sys.argv[1], dataset="trips", cap=1, create=True) as book, book.lock("a"):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["flock", "sqlite"])
def test_identical_requests_pay_once(tmp_path: Path, kind: str) -> None:
    """Of five processes with the same three requests, one pays for each; a killed holder holds nobody up."""
    file = tmp_path / "l.sqlite"
    holder = start(HOLD, file, kind)
    assert holder.stdout.readline() == "held\n"  # type: ignore[union-attr]
    processes = [start(LOCK, file, kind) for _ in range(5)]
    with pytest.raises(subprocess.TimeoutExpired):
        processes[0].wait(timeout=0.5)
    with Ledger.view(file) as view:
        assert len(view.entries()) == 1
    kill(holder)
    assert [process.communicate()[0] for process in processes] == [""] * 5
    with Ledger.view(file) as view:
        view.verify()
        assert Counter(e.fields.get("request") for e in view.entries() if e.event == "reserved") == Counter(
            "abc"
        )
    if kind == "flock":
        assert [p.name for p in tmp_path.iterdir()] == ["l.sqlite"]


@pytest.mark.parametrize("kind", ["flock", "sqlite"])
def test_a_lock_that_cannot_be_had_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Where the lock file cannot be created, the error names it and the cure."""
    if kind == "sqlite":
        monkeypatch.setitem(sys.modules, "fcntl", None)
    with opened(tmp_path) as book:
        shutil.move(tmp_path, tmp_path.with_name("moved"))
        with (
            pytest.raises(InputError, match=r"lock file .*l\.sqlite-lock-.* check the permissions"),
            book.lock("r"),
        ):
            pass
