"""Reading a ledger: it writes nothing, needs no right to write, and is whole while others write."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ledgers import SHA, WORK, kill, opened, start

from cbdp.errors import InputError
from cbdp.ledger import Ledger


def test_a_view_writes_nothing(tmp_path: Path) -> None:
    """Beside a live ledger and one at rest it creates no file, sees all that is committed, and cannot charge."""
    with opened(tmp_path) as book:
        charge = book.reserve("r", "0.1")
        names = sorted(p.name for p in tmp_path.iterdir())
        with Ledger.view(book.path) as view:
            view.verify()
            assert view.unfinished() == [charge]
            for attempt in (lambda: view.reserve("r", "0.1"), lambda: view.released(charge, SHA, "out")):
                with pytest.raises(InputError, match="reading only"):
                    attempt()
            with pytest.raises(InputError, match="reading only"), view.lock("r"):
                pass
        assert names == sorted(p.name for p in tmp_path.iterdir())
        book.released(charge, SHA, "out")
    before = (tmp_path / "l.sqlite").read_bytes()
    with Ledger.view(tmp_path / "l.sqlite") as view:
        assert view.finished("r")
    assert [p.name for p in tmp_path.iterdir()] == ["l.sqlite"]
    assert before == (tmp_path / "l.sqlite").read_bytes()


DIE = """
import os, sys
from cbdp.ledger import Ledger
book = Ledger.open(sys.argv[1], dataset="trips", cap=1, create=True)
print(book.reserve("r", "0.1").head, flush=True)
os.kill(os.getpid(), 9)
"""


LOOK = """
import os, sys, tempfile
from cbdp.errors import InputError
from cbdp.ledger import Ledger
tempfile.gettempdir()
if os.geteuid() == 0:
    os.setuid(65534)
try:
    Ledger.open(sys.argv[1], dataset="trips", cap=1, create=True).close()
    print("opened")
except InputError as error:
    print(error)
with Ledger.view(sys.argv[1]) as view:
    view.verify()
    print(view.head)
"""


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that any user can enter, which pytest's are not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize("kept", [("-wal", "-shm"), ("-wal",), ()])
def test_a_view_needs_no_right_to_write(public_folder: Path, kept: tuple[str, ...]) -> None:
    """Read-only files in a read-only folder, left by a crash, copied with the log, or at rest, are read in full."""
    file = public_folder / "l.sqlite"
    with start(DIE, file) as process:
        head = process.stdout.read().strip()  # type: ignore[union-attr]
    if not kept:
        opened(public_folder, create=False).close()  # takes the log in
    for path in public_folder.iterdir():
        path.chmod(0o444)
        if path.name.removeprefix("l.sqlite") not in ("", *kept):
            path.unlink()
    public_folder.chmod(0o555)
    before = {p.name: p.read_bytes() for p in public_folder.iterdir()}
    assert set(before) == {"l.sqlite", *(f"l.sqlite{s}" for s in kept)}
    with start(LOOK, file) as process:
        refused, seen = process.stdout.read().splitlines()  # type: ignore[union-attr]
    assert "check the permissions" in refused
    assert seen == head
    assert before == {p.name: p.read_bytes() for p in public_folder.iterdir()}


def test_an_unreadable_file_is_refused(public_folder: Path) -> None:
    """Without the right to read, the error says so in one line."""
    opened(public_folder).close()
    (public_folder / "l.sqlite").chmod(0)
    script = LOOK.partition("with Ledger.view")[0].replace(
        "Ledger.open(sys.argv[1]", "Ledger.view(sys.argv[1]"
    )
    script = script.replace(', dataset="trips", cap=1, create=True', "")
    with start(script, public_folder / "l.sqlite") as process:
        assert "cannot be opened: check the permissions" in process.stdout.read()  # type: ignore[union-attr]


def test_a_charge_is_in_the_file_and_not_in_its_log_alone(tmp_path: Path) -> None:
    """A process that was killed after its charge leaves it in the file itself: without the log beside it nothing is missing."""
    file = tmp_path / "l.sqlite"
    with start(DIE, file) as process:
        head = process.stdout.read().strip()  # type: ignore[union-attr]
    for suffix in ("-wal", "-shm"):
        Path(f"{file}{suffix}").unlink()
    with Ledger.view(file) as view:
        view.verify()
        assert view.contains(head)


def test_an_older_copy_shows_by_the_head(tmp_path: Path) -> None:
    """A file that was put back from before a charge is a sound but shorter chain; the head of a manifest tells."""
    file = tmp_path / "l.sqlite"
    with opened(tmp_path) as book:
        book.reserve("a", "1/10")
    before = file.read_bytes()
    with opened(tmp_path) as book:
        head = book.reserve("b", "1/10").head
    file.write_bytes(before)
    with Ledger.view(file) as view:
        view.verify()
        assert not view.contains(head)


def test_views_are_whole_while_others_write(tmp_path: Path) -> None:
    """Looking again and again while workers open, charge and close: every look is a sound chain, longer than the last."""
    file = tmp_path / "l.sqlite"
    process = start(WORK, file, tmp_path / "draws")
    process.stdout.readline()  # type: ignore[union-attr]
    heads: list[str] = []
    until = time.monotonic() + 100
    while (len(heads) < 30 or len(set(heads)) < 3) and time.monotonic() < until:
        with Ledger.view(file) as view:
            view.verify()
            assert all(view.contains(head) for head in dict.fromkeys(heads))
            heads.append(view.head)
    kill(process)
    assert len(set(heads)) > 2
