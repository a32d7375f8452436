"""Racing and dying: the cap holds for eight processes, and whoever dies leaves every draw paid for."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from ledgers import WORK, kill, start

from cbdp.ledger import Amount, Ledger

# CBDP_KILLS=200 pytest tests/ledger/test_crashes.py -k killed
KILLS = int(os.environ.get("CBDP_KILLS", "25"))


RACE = """
import sys
from cbdp.ledger import BudgetError, Ledger
sys.stdin.readline()
granted = 0
with Ledger.open(sys.argv[1], dataset="trips", cap="0.0000001", create=True) as book:
    for i in range(60):
        try:
            book.reserve(f"{sys.argv[2]}-{i}", "1e-9")
            granted += 1
        except BudgetError:
            pass
print(granted)
"""


def test_eight_processes_share_one_cap(tmp_path: Path) -> None:
    """480 requests of one unit each race for a cap of 100, from creation on: exactly 100 are granted."""
    file = tmp_path / "l.sqlite"
    processes = [start(RACE, file, i) for i in range(8)]
    for process in processes:
        process.stdin.write("go\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
    granted = [int(process.communicate()[0]) for process in processes]
    assert sum(granted) == 100
    with Ledger.view(file) as view:
        view.verify()
        assert view.left == Amount()
        assert len(view.entries()) == 101
        per_process = Counter(c.request.split("-")[0] for c in view.unfinished())
    assert [per_process[str(i)] for i in range(8)] == granted


@pytest.mark.slow
def test_killed_at_any_time_no_draw_lacks_its_charge(tmp_path: Path) -> None:
    """Workers killed at random instants, from before creation on: the chain holds, every draw was paid for, once."""
    file, draws = tmp_path / "l.sqlite", tmp_path / "draws"
    chance, late = random.Random(7), time.monotonic() + 100
    interrupted = done = 0
    # more than KILLS where the machine is so busy that most fall before the first charge
    while done < KILLS or (interrupted < KILLS / 20 and time.monotonic() < late):
        done += 1
        process = start(WORK, file, draws)
        process.stdout.readline()  # type: ignore[union-attr]
        time.sleep(chance.uniform(0, 0.06))
        kill(process)
        with Ledger.view(file) as view:
            view.verify()
            reserved = {e.fields["charge"] for e in view.entries() if e.event == "reserved"}
            open_charges = {c.id for c in view.unfinished()}
            assert view.spent.epsilon == Fraction(len(reserved), 1000)
        drawn = draws.read_text().splitlines() if draws.exists() else []
        assert len(drawn) == len(set(drawn))
        assert reserved - open_charges <= set(drawn) <= reserved
        interrupted = len(open_charges)
    assert interrupted >= KILLS / 20  # else the kills did not fall inside a charge and show little


LINES = """
import os, sys
from datetime import date
from pathlib import Path
from cbdp import ledger
folder, stride = Path(sys.argv[1]), int(sys.argv[2])
home = str(Path(ledger.__file__).parent) + os.sep
seen = set()

def work(path):
    day = ledger.ChargeScope("trip", first=date(2026, 1, 1), last=date(2026, 1, 1))
    with ledger.Ledger.open(path, dataset="trips", cap={"total": 1, "per_day": 1}, create=True) as book, book.lock("r"):
        charge = book.reserve("r", "0.1", covers=day)
        (path.with_suffix(".draw")).write_text(charge.id)
        book.released(charge, "0" * 64, "out")

def die_after(lines):
    def trace(frame, event, argument):
        nonlocal lines
        file = frame.f_code.co_filename
        if not file.startswith(home):
            return None
        seen.add(file.removeprefix(home))
        lines -= event == "line"
        if lines < 0:
            os.kill(os.getpid(), 9)
        return trace
    return trace

lines, status = 0, 9
while status == 9:
    child = os.fork()
    if child == 0:
        sys.settrace(die_after(lines))
        work(folder / f"{lines}.sqlite")
        sys.settrace(None)
        (folder / "seen").write_text(" ".join(seen))
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    lines += stride
print(lines, status)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_every_line_the_ledger_recovers(tmp_path: Path) -> None:
    """A process that dies before the n-th line of the ledger's code, n = 0, 5, 10, …: what is left can be used at once."""
    with start(LINES, tmp_path, 5) as process:
        lines, status = map(int, process.stdout.read().split())  # type: ignore[union-attr]
    assert status == 0
    assert set((tmp_path / "seen").read_text().split()) == {
        f"{name}.py" for name in ("__init__", "chain", "charges", "store", "windows")
    }
    spent: Counter[tuple[Fraction, bool, bool]] = Counter()
    caps = {"total": 1, "per_day": 1}
    for n in range(0, lines, 5):
        draw = tmp_path / f"{n}.draw"
        with (
            Ledger.open(tmp_path / f"{n}.sqlite", dataset="trips", cap=caps, create=True) as book,
            book.lock("r"),
        ):
            charges = [e.fields["charge"] for e in book.entries() if e.event == "reserved"]
            assert not draw.exists() or charges == [draw.read_text()]
            assert book.spent.epsilon == Fraction(len(charges), 10)
            assert draw.exists() or not book.finished("r")
            spent[book.spent.epsilon, draw.exists(), bool(book.finished("r"))] += 1
    tenth = Fraction(1, 10)
    assert set(spent) == {
        (Fraction(0), False, False),
        (tenth, False, False),
        (tenth, True, False),
        (tenth, True, True),
    }
