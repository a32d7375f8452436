"""Runs what is not yet stored: several processes at once, each run within its limits, progress on standard error.

Processes come from a fork server that has loaded and compiled everything: they start in a moment, and one that is killed
takes nothing with it. A run that exceeds its limits is stored as such; the other seeds of its group are not tried.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from benchmarks.harness.registry import DATA, MECHANISMS, Setup, files_of, version
from benchmarks.harness.specs import Limits, Spec
from benchmarks.harness.store import DIED, MEMORY, NOT_POSSIBLE, OK, TIME, Row, Store
from benchmarks.harness.worker import Job, work

LOADING = 600.0  # seconds that a process may take to load a data set
EVERY = 10.0  # seconds between lines of progress where they cannot overwrite each other
SHORTEST, LONGEST = 8, 400  # runs of one process


def possible(specs: Iterable[Spec]) -> tuple[list[Spec], dict[str, str]]:
    """The runs whose data and packages are here, each once; and why others are not."""
    kept: list[Spec] = []
    absent: dict[str, str] = {}
    why = {name: entry.absent for table in (DATA, MECHANISMS) for name, entry in table.items()}
    for spec in dict.fromkeys(specs):
        lost = {n: why[n] for n in (spec.data, spec.mechanism) if why[n]}
        absent |= lost
        if not lost:
            kept.append(spec)
    return kept, absent


def finished(
    specs: Sequence[Spec], store: Store, limits: Limits, keep: Collection[str] = ()
) -> tuple[list[Row], list[Spec]]:
    """What is stored for this version of the code, and what is left to do.

    A run that once exceeded its limits is done for limits that are no larger. Of mechanisms in `keep` the last result of
    an earlier version does as well, if the files of the data are the same.
    """
    every = store.rows()
    stored = {row.key: row for row in every}
    earlier = {(r.spec, files_of(r.version)): r for r in every if r.spec.mechanism in keep}
    versions = {s: version(s.data, s.mechanism) for s in specs}
    found = [stored.get((s, v)) or earlier.get((s, files_of(v))) for s, v in versions.items()]
    over = (TIME, MEMORY)
    rows = [r for r in found if r is not None and (r.status not in over or r.limits.covers(limits))]
    done, failed = {r.spec for r in rows}, {r.spec.group for r in rows if r.status != OK}
    return rows, [s for s in specs if s not in done and s.group not in failed]


def batches(specs: Sequence[Spec], jobs: int) -> list[list[Spec]]:
    """Runs on one data set that one process does in a row."""
    by_data: dict[tuple[str, str], list[Spec]] = {}
    for spec in specs:
        by_data.setdefault((spec.task, spec.data), []).append(spec)
    made = []
    for own in by_data.values():
        size = min(LONGEST, max(SHORTEST, -(-len(own) // (2 * jobs))))
        made += [own[i : i + size] for i in range(0, len(own), size)]
    return made


@dataclass
class _Worker:
    process: Any
    report: Connection
    left: list[Spec]
    deadline: float
    now: Spec | None = None


@dataclass
class _Progress:
    """One line that says how far it is."""

    total: int
    done: int = 0
    failed: int = 0
    start: float = field(default_factory=time.monotonic)
    said: float = 0.0

    def add(self, row: Row | None, skipped: int = 0) -> None:
        self.done += (row is not None) + skipped
        self.failed += row is not None and row.status not in (OK, NOT_POSSIBLE)

    def say(self, now: Sequence[str], *, last: bool = False) -> None:
        tty, clock = sys.stderr.isatty(), time.monotonic()
        if not last and clock - self.said < (0.2 if tty else EVERY):
            return
        self.said = clock
        left = (clock - self.start) / max(self.done, 1) * (self.total - self.done)
        text = f"{self.done:,} of {self.total:,} runs, {self.failed} failed, about {left:.0f} s left"
        line = f"benchmarks: {text}" + (f" · {now[0]}" if now else "")
        print(f"\r{line[:110]:<110}" if tty else line, end="" if tty and not last else "\n", file=sys.stderr)


def run(
    specs: Iterable[Spec],
    store: Store,
    setup: Setup,
    limits: Limits | None = None,
    jobs: int | None = None,
    keep: Collection[str] = (),
) -> tuple[list[Row], dict[str, str]]:
    """The result of every run that can be made, and why others cannot: stored ones are not run again."""
    limits = limits or Limits()
    jobs = jobs or os.cpu_count() or 1
    specs = list(specs)
    wanted, absent = possible(specs)
    rows, todo = finished(wanted, store, limits, keep)
    store.merge()
    if todo:
        _Pool(store, setup, limits, jobs).run(todo)
        rows, _ = finished(wanted, store, limits, keep)
    lost = [s for s in specs if s.mechanism in keep and s.mechanism in absent]
    if lost:  # its package is gone, its results are not
        rows += finished(lost, store, limits, keep)[0]
        absent = {name: why for name, why in absent.items() if name not in keep}
    return rows, absent


class _Pool:
    """The processes at work, and the runs that wait for one."""

    def __init__(self, store: Store, setup: Setup, limits: Limits, jobs: int) -> None:
        for library in ("OPENBLAS", "OMP", "MKL"):  # one core for each run: their seconds shall compare
            os.environ.setdefault(f"{library}_NUM_THREADS", "1")
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["benchmarks.harness.warm"])
        self.store, self.setup, self.limits, self.jobs = store, setup, limits, jobs
        self.workers: list[_Worker] = []
        self.waiting: list[list[Spec]] = []
        self.failed: set[tuple[str, str, str, str]] = set()
        self.progress = _Progress(0)

    def run(self, specs: Sequence[Spec]) -> None:
        self.waiting, self.progress = batches(specs, self.jobs), _Progress(len(specs))
        try:
            while self.waiting or self.workers:
                while self.waiting and len(self.workers) < self.jobs:
                    self._start(self.waiting.pop(0))
                self._listen()
                self.progress.say([str(w.now) for w in self.workers if w.now])
        finally:
            for worker in self.workers:
                worker.process.kill()
                worker.process.join()
        self.progress.say([], last=True)

    def _start(self, specs: list[Spec]) -> None:
        specs = self._worth(specs)
        if not specs:
            return
        ours, theirs = self.context.Pipe(duplex=False)
        versions = {(s.data, s.mechanism): version(s.data, s.mechanism) for s in specs}
        job = Job(self.setup, tuple(specs), versions, self.limits, self.store)
        process = self.context.Process(target=work, args=(theirs, job), daemon=True)
        process.start()
        theirs.close()
        self.workers.append(_Worker(process, ours, specs, time.monotonic() + LOADING))

    def _worth(self, specs: list[Spec]) -> list[Spec]:
        """Those whose group has not failed."""
        kept = [s for s in specs if s.group not in self.failed]
        self.progress.add(None, len(specs) - len(kept))
        return kept

    def _listen(self) -> None:
        soonest = min((w.deadline for w in self.workers), default=0.0) - time.monotonic()
        ready = wait([w.report for w in self.workers], timeout=max(0.0, min(soonest, EVERY)))
        for worker in list(self.workers):
            if worker.report in ready:
                self._hear(worker)
            elif time.monotonic() > worker.deadline:
                self._end(worker, TIME, f"not done in {self.limits.seconds:g} s")

    def _hear(self, worker: _Worker) -> None:
        try:
            spec, row = worker.report.recv()
        except (EOFError, OSError):
            worker.process.join(10)
            self._end(worker, DIED, _ending(worker.process.exitcode))
            return
        if row is None:
            worker.now, worker.deadline = spec, time.monotonic() + self.limits.seconds
            return
        worker.left.remove(spec)
        worker.now, worker.deadline = None, time.monotonic() + LOADING
        self.progress.add(row)
        if row.status != OK:
            self.failed.add(spec.group)
            self._end(worker)  # a fresh process for the others: who knows what state this one is in

    def _end(self, worker: _Worker, status: str = "", detail: str = "") -> None:
        """Stop a process; store why, if a run was in it; queue the runs that it has not done."""
        worker.process.kill()
        worker.process.join()
        worker.report.close()
        self.workers.remove(worker)
        if status and worker.left:
            # in no run: it could not load the data, which its first run shall say
            spec = worker.now or worker.left[0]
            row = Row(spec, version(spec.data, spec.mechanism), status, detail, self.limits)
            self.store.write([row])
            self.failed.add(spec.group)
            self.progress.add(row)
            worker.left.remove(spec)
        if worker.left:
            self.waiting.insert(0, worker.left)


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"
