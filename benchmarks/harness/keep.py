"""Results of earlier versions of the code that may stand for today's, because a run was repeated and gave the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from benchmarks.harness.registry import MECHANISMS, Setup, code_version, version
from benchmarks.harness.runner import run
from benchmarks.harness.specs import ERRORS, Limits, Spec
from benchmarks.harness.store import OK, Row, Store

UNSEEDED = ("OpenDP tree",)
PATIENCE = 20.0  # seconds: a run that took longer is not repeated
SELF = ("cpu", "wall", "memory")  # what differs between two runs of the same


def keepable(
    specs: Iterable[Spec], store: Store, setup: Setup, limits: Limits, jobs: int | None
) -> dict[str, str]:
    """The mechanisms whose earlier results may stand, and why; ours never, and none whose repeated run differs.

    What has no seed, takes long, or is not installed any more is taken at its word, and the page says so.
    """
    earlier = _quickest(specs, store)
    kept = {n: why for n in earlier if (why := _unrepeatable(n, earlier[n]))}
    again, _ = run([r.spec for n, r in earlier.items() if n not in kept], store, setup, limits, jobs)
    for row in again:
        if same(row, earlier[row.spec.mechanism]):
            kept[row.spec.mechanism] = "one run repeated, same result"
    return kept


def _quickest(specs: Iterable[Spec], store: Store) -> dict[str, Row]:
    """Of each mechanism that has earlier results the run that took least time."""
    wanted = {s: version(s.data, s.mechanism) for s in specs if s.task == ERRORS}
    found: dict[str, Row] = {}
    for row in store.rows():
        name, asked = row.spec.mechanism, row.spec in wanted and row.status == OK
        if asked and row.version != wanted[row.spec] and MECHANISMS[name].group != "ours":
            found[name] = min(found.get(name, row), row, key=lambda r: r.metrics["wall"])
    return found


def _unrepeatable(name: str, row: Row) -> str:
    if name in UNSEEDED:
        return "not repeated: its noise has no seed"
    if MECHANISMS[name].absent:
        return "not repeated: not installed"
    return "not repeated: slow" if row.metrics["wall"] > PATIENCE else ""


def same(one: Row, other: Row) -> bool:
    """Whether two runs gave the same numbers, to rounding."""
    if one.status != OK or one.metrics.keys() != other.metrics.keys():
        return False
    names = [n for n in one.metrics if n not in SELF]
    now, then = ([row.metrics[n] for n in names] for row in (one, other))
    return bool(np.allclose(now, then, rtol=1e-9, atol=1e-9, equal_nan=True))


def told(rows: Iterable[Row], kept: Mapping[str, str]) -> str:
    """A sentence on the results that are not of this version of the code; nothing if all are."""
    now = code_version()
    old = dict.fromkeys(r.spec.mechanism for r in rows if not r.version.startswith(now))
    if not old:
        return ""
    by_reason: dict[str, list[str]] = {}
    for name in old:
        by_reason.setdefault(kept[name], []).append(name)
    parts = "; ".join(f"{', '.join(names)} ({why})" for why, names in by_reason.items())
    return f"Results of earlier versions of the code are used for {parts}."
