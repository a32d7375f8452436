"""One attempt to make the next release: a process that is killed at a chosen instant, and what it leaves."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.series_kills.city import FIRST, write_city
from cbdp.app.series import run_series
from cbdp.config import read
from cbdp.ledger import Charge, Ledger
from cbdp.measuring.answers import measure_sums
from cbdp.mechanisms import continual
from cbdp.mechanisms.constraint_based import ConstraintBased
from cbdp.release.series import FINAL

NOISE, SUMS = "draws", "sums"  # files with a line for each time that noise was about to be drawn


@dataclass(frozen=True)
class Blow:
    """When a process is killed: so many seconds after its start, or after its charge."""

    seconds: float
    charged: bool = False


def attempt(folder: Path, until: dt.date, blow: Blow | None) -> bool:
    """Run the series in a process, which is killed unless it ends before. Whether it was killed."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        _work(folder, until, write_end)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as charged:
        if blow is not None:
            if blow.charged:
                charged.read(1)  # comes with the charge, or with the end of the process
            time.sleep(blow.seconds)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    if blow is None and status:
        raise RuntimeError(f"a run that nobody killed ended with status {status}")
    return os.WIFSIGNALED(status)


def _work(folder: Path, until: dt.date, charged: int) -> None:
    """In the child: it never returns."""
    measure, reserve = ConstraintBased.measure, Ledger.reserve
    sums: Any = measure_sums

    def noise(self: ConstraintBased, counts: Any, entropy: Any) -> Any:
        if entropy.secure:  # not a rehearsal, nor a simulation of intervals
            note(folder / NOISE, "noise")
        return measure(self, counts, entropy)

    def drawn(strategy: Any, tables: Any, *rest: Any) -> Any:
        note(folder / SUMS, str(len(tables)))
        return sums(strategy, tables, *rest)

    def told(self: Ledger, *args: Any, **options: Any) -> Any:
        charge = reserve(self, *args, **options)
        os.write(charged, b"c")
        return charge

    ConstraintBased.measure = noise  # type: ignore[method-assign]
    setattr(continual, "measure_sums", drawn)  # noqa: B010 - it is imported there by name
    Ledger.reserve = told  # type: ignore[method-assign]
    _end_with(lambda: run_series(read(folder / "cbdp.toml"), until, create_ledger=not _holds_charges(folder)))


def note(file: Path, what: str) -> None:
    """A line that is on disk before noise is drawn."""
    with file.open("a") as out:
        out.write(f"{what}\n")
        out.flush()
        os.fsync(out.fileno())


def _end_with(run: Callable[[], object]) -> None:
    code = 1
    try:
        run()
        code = 0
    except BaseException as error:  # noqa: BLE001 - the parent must hear of it
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    finally:
        os._exit(code)


def _holds_charges(folder: Path) -> bool:
    path = folder / "ledger.sqlite"
    if not Ledger.started(path):
        return False
    with Ledger.view(path) as ledger:
        return bool(ledger.charges())


def progress(folder: Path) -> tuple[int, int, int]:
    """Charges, releases that are noted, and folders."""
    path = folder / "ledger.sqlite"
    folders = sum(not p.name.startswith(".") for p in (folder / "releases").iterdir())
    if not Ledger.started(path):
        return 0, 0, folders
    with Ledger.view(path) as ledger:
        ledger.verify()
        charges, lost = ledger.charges(), {c.id for c in ledger.unfinished()}
    done = [c for c in charges if c.id not in lost and is_release(c)]
    return len(charges), len(done), folders


def is_release(charge: Charge) -> bool:
    """Whether a charge pays a release, and not sums of a span."""
    return bool(charge.part and charge.part.stage == FINAL)


def phase(before: tuple[int, int, int], after: tuple[int, int, int]) -> str:
    """Where a kill struck, as what it left tells."""
    if after[0] == before[0]:
        return "before the charge"
    if after[2] == before[2]:
        return "after the charge"
    return "after the files, before the note" if after[1] == before[1] else "after a release"


def times_of_one(folder: Path, *, running: int = 0) -> tuple[float, float]:
    """How long a process takes that makes one release, and how much of that after the charge."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        write_city(place, 1, running=running)
        begin = time.time()
        attempt(place, FIRST, None)
        end = time.time()
        drawn = (place / NOISE).stat().st_mtime
        return end - begin, max(0.05, end - drawn)
