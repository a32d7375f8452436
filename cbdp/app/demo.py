"""The whole job on a built-in synthetic city: from a table of trips to a release with its report, and how good it is."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cbdp.app.plan import Plan, plan
from cbdp.app.publish import publish
from cbdp.commands.stopping import Interrupts
from cbdp.config import read
from cbdp.counting import Counts, count
from cbdp.datasets import ann_arbor
from cbdp.datasets.practice import QUICK, WHOLE, write_city
from cbdp.forecast import explain
from cbdp.mechanisms import ConstraintBased, Hierarchical, Laplace, Mechanism
from cbdp.numbers import positive
from cbdp.progress import Say
from cbdp.release import Release
from cbdp.text import aligned


def demo(
    epsilon: str,
    folder: str | Path | None,
    say: Say,
    *,
    quick: bool = False,
    interrupts: Interrupts | None = None,
) -> int:
    """Write the city's files, check, release, and compare with the truth, which is public here."""
    budget = float(positive(epsilon))
    show = QUICK if quick else WHOLE
    city = ann_arbor(seed=0, hours=show.hours)
    config = write_city(city, Path(folder or show.folder), show, f"{budget:g}")
    planned = plan(read(config))
    print(explain(planned))
    with nullcontext() if interrupts is None else interrupts:
        done = publish(planned, say, create_ledger=not planned.account.exists, interrupts=interrupts)
    _compare(planned, count(city.trips, planned.universe))
    print(f"\nThe release is in {done.path}\nOpen its report: {done.path / 'report.html'}")
    return 0


def _compare(planned: Plan, truth: Counts) -> None:
    """Root mean square errors of mechanisms at the same ε, by simulation (nothing is spent)."""
    features, epsilon = planned.features, planned.mechanism.epsilon
    others: dict[str, Mechanism] = {
        "laplace": Laplace(features, epsilon),
        "hierarchical": Hierarchical(features, epsilon),
        "as in the paper": ConstraintBased(features, epsilon, preset="paper"),
        "constraint-based": planned.mechanism,
    }
    rows = [
        ("mechanism", "trips", "per type", "by zone", "by mode"),
        ("(the truth)", f"{truth.value.sum():,}", "", "", ""),
    ]
    for name, one in others.items():
        release = one.simulate(truth, seed=0)
        single, zone, mode = (_error(release, truth, table) for table in ("singleton", "zone", "mode"))
        rows.append((name, f"{release.total:,}", f"{single:.2f}", f"{zone:.1f}", f"{mode:.1f}"))
    print(
        "What else this ε could buy: trips published, and how far counts are off on average, in trips\n"
        "(the root of the mean square: large errors weigh more)\n"
    )
    print("\n".join(aligned(rows, right=range(1, 5))))


def _error(release: Release, truth: Counts, feature: str) -> float:
    off: NDArray[np.int64] = release.counts(feature) - truth.of(release.features, feature)
    return float(np.sqrt(np.mean(off**2)))
