"""The process that runs mechanisms, one run after the other, each within its own limits. Imported before it is forked."""

from __future__ import annotations

import csv
import ctypes
import gc
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

import cbdp
from benchmarks.harness.measure import STATUS, kilobytes, peak, reset_peak
from benchmarks.harness.registry import (
    DATA,
    MECHANISMS,
    METRICS,
    Answer,
    Case,
    NotPossibleError,
    Run,
    Setup,
    answer,
    prepare,
)
from benchmarks.harness.specs import TIMES, Limits, Spec
from benchmarks.harness.store import FAILED, MEMORY, NOT_POSSIBLE, OK, Row, Store
from cbdp.mechanisms import ConstraintBased, of
from cbdp.release.release import Release
from cbdp.rounding.controlled import round_trips

DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


@dataclass(frozen=True)
class Job:
    """Runs on one data set, for one process."""

    setup: Setup
    specs: tuple[Spec, ...]
    versions: Mapping[tuple[str, str], str]
    limits: Limits
    store: Store


def work(report: Connection, job: Job) -> None:
    """Do the runs in order; say which one begins, and store each before the next."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    prepare(job.setup)
    with suppress(Exception):  # a data set that cannot be loaded fails in the runs, which say why
        _case(job.specs[0].data)
    gc.freeze()  # what is loaded stays: collecting before each run need not look at it again
    timed: set[str] = set()
    for spec in job.specs:
        report.send((spec, None))
        if spec.task == TIMES and spec.mechanism not in timed:
            execute(spec, "", job.limits)  # not kept: it loads what only this mechanism uses
            timed.add(spec.mechanism)
        row = execute(spec, job.versions[spec.data, spec.mechanism], job.limits)
        job.store.write([row])
        report.send((spec, row))


@lru_cache(maxsize=1)
def _case(name: str) -> Case:
    return DATA[name].load()


@lru_cache(maxsize=4)
def _made(data: str, mechanism: str, epsilon: str) -> Run:
    return MECHANISMS[mechanism].make(_case(data), epsilon)


def execute(spec: Spec, version: str, limits: Limits) -> Row:
    """One run. Whatever goes wrong in it is its result."""
    try:
        found = _measured(spec, limits)
    except NotPossibleError as why:
        return Row(spec, version, NOT_POSSIBLE, str(why), limits)
    except MemoryError:
        detail = f"needs more than {limits.bytes / 2**20:,.0f} MiB"
        return Row(spec, version, MEMORY, detail, limits)
    except Exception as failure:  # noqa: BLE001 - whatever it is, it is what the table shall say
        return Row(spec, version, FAILED, f"{type(failure).__name__}: {failure}", limits)
    return Row(spec, version, OK, "", limits, found)


def _measured(spec: Spec, limits: Limits) -> dict[str, float]:
    case = _case(spec.data)
    with _Memory(limits.bytes) as memory:
        run = _made(spec.data, spec.mechanism, spec.epsilon)
        before, start = time.process_time(), time.perf_counter()
        result = run(spec.seed)
        found = {"cpu": time.process_time() - before, "wall": time.perf_counter() - start}
    found["memory"] = memory.peak / 2**20
    if spec.task == TIMES:
        return found | _written(case, result)
    return found | scores(case, answer(case, result))


class _Memory:
    """Limits what may be added to the process's memory, and measures its high-water mark."""

    def __init__(self, most: int) -> None:
        self.most, self.peak = most, 0

    def __enter__(self) -> _Memory:
        self._before = reset_peak()
        self._hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        held = kilobytes("VmData") * 1024 if STATUS.exists() else self._before
        resource.setrlimit(resource.RLIMIT_DATA, (held + self.most, self._hard))
        return self

    def __exit__(self, *_: object) -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (self._hard, self._hard))
        self.peak = max(0, peak() - self._before)


def scores(case: Case, found: Answer) -> dict[str, float]:
    """Every registered metric; one that has several values names them after itself."""
    made: dict[str, float] = {}
    for name, measured in METRICS.items():
        value = measured.of(case, found)
        if isinstance(value, Mapping):
            made |= {f"{name}/{part}": float(v) for part, v in value.items()}
        else:
            made[name] = float(value)
    return made


# Writing a release: its folder, and its trips one by one, as the case study's optimisers read them


def _written(case: Case, result: Any) -> dict[str, float]:
    release = result if isinstance(result, Release) else None
    trips = int(release.value.sum()) if release is not None else int(answer(case, result).leaves.sum())
    with tempfile.TemporaryDirectory() as folder:
        seconds = {"trips": float(trips)}
        if release is not None:
            seconds["save"] = _cpu(lambda: release.save(Path(folder) / "release", simulation=True))
            seconds |= _stages(release)
        found = answer(case, result)
        seconds["list"] = _cpu(lambda: write_list(case, found, Path(folder) / "trips.csv"))
        seconds["loop"] = _cpu(lambda: write_loop(case, found, Path(folder) / "loop.csv"))
    return seconds


def _stages(release: Release) -> dict[str, float]:
    """The parts of making a release that is a projection: the program and the rounding, done once more."""
    made, estimate = of(release), release.estimate
    known = all(m.elements is None for m in release.measurements)
    if estimate is None or not known or not isinstance(made, ConstraintBased):
        return {}
    if getattr(made, "estimator", "projection") != "projection":
        return {}
    how: Any = {"weights": made.weights, "solver": made.solver}
    return {
        "solve": _cpu(lambda: cbdp.post_process(release.features, release.measurements, **how)),
        "round": _cpu(lambda: round_trips(release.features, *estimate.trips())),
    }


def _cpu(do: Any) -> float:
    start = time.process_time()
    do()
    return time.process_time() - start


def write_list(case: Case, found: Answer, path: Path) -> None:
    """A row per trip: the data set as the case study means it, a multiset of trip types."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    universe, here = case.features.universe, np.flatnonzero(found.leaves)
    times = found.leaves[here]
    columns = {
        name: pa.array([str(v) for v in dimension.values]).take(pa.array(np.repeat(codes, times)))
        for (name, dimension), codes in zip(
            universe.dimensions.items(), universe.unrank_codes(here), strict=True
        )
    }
    arrow_csv.write_csv(pa.table(columns), path)


def write_loop(case: Case, found: Answer, path: Path) -> None:
    """The same list, written as a Python program without a library for columns would: trip by trip."""
    universe, here = case.features.universe, np.flatnonzero(found.leaves)
    dimensions = universe.dimensions.values()
    columns = [
        [str(dimension.values[c]) for c in codes]
        for dimension, codes in zip(dimensions, universe.unrank_codes(here), strict=True)
    ]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(universe.dimensions)
        for row, times in zip(zip(*columns, strict=True), found.leaves[here].tolist(), strict=True):
            for _ in range(times):
                writer.writerow(row)


def warm() -> None:
    """Load and compile what the mechanisms share, so that no run is charged for it.

    This happens in the process that is forked for every job, and threads do not survive a fork: nothing here may start
    any. So rounding and writing, whose libraries have threads, are imported and not run.
    """
    from benchmarks.harness.data import dense_city

    for library in ("pyarrow.csv", "pyarrow.parquet", "scipy.optimize", "cbdp.release.files"):
        import_module(library)
    prepare(Setup())
    case = dense_city(20, stations=6, half_hours=2)
    for name in ("Lap", "H5"):
        MECHANISMS[name].make(case, "1")(0)
    cbdp.post_process(case.features, cbdp.measure(case.counts, case.features, 1))
