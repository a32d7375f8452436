"""The Opal release and ours at the same ε: error, suppression and disagreement of the tables of tap-ons and tap-offs.

Claim: at the same ε our tables are off by about a third of what the stability histogram is off by (docs/results/opal.md).

python -m benchmarks opal [--quick] [--seed 0]
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.markdown import figure, markdown
from benchmarks.harness.opal_taps import OpalTaps, opal_taps
from cbdp import Feature, FeatureDag, Trip, Universe
from cbdp.features import SINGLETON, TOTAL
from cbdp.mechanisms import ConstraintBased, Mechanism, StabilityHistogram, ThresholdLaplace
from cbdp.privacy.accounting import Parallel, Sequential, composable
from cbdp.release.release import Release

Ints = NDArray[np.int64]

UNIT = Trip("replace")
TAPS = ("on", "off")
EACH = 4  # ε for the tables of one kind of tap; the two taps of a trip are the same data, so both cost 8
TABLES = {"time": "time", "location": "location", SINGLETON: "both"}
# Opal's, for one kind of tap
OPAL_BUDGET = {"time": Fraction(1), "location": Fraction(1), SINGLETON: Fraction(2)}
SCALE = Fraction(7, 5)  # p of the assessed release
A_TENTH_FOR_THE_TOTAL = {
    TOTAL: Fraction(2, 5), "time": Fraction(9, 10), "location": Fraction(9, 10), SINGLETON: Fraction(9, 5)
}  # fmt: skip

MECHANISMS: Mapping[str, Callable[[FeatureDag], Mechanism]] = {
    "stability histogram 1, 1, 2": lambda dag: StabilityHistogram(dag, EACH, budget=OPAL_BUDGET),
    "constraint-based 1 : 1 : 2": lambda dag: ConstraintBased(
        dag, EACH, UNIT, budget=A_TENTH_FOR_THE_TOTAL, preset="paper"
    ),
    "constraint-based, uniform": lambda dag: ConstraintBased(dag, EACH, UNIT, preset="paper"),
    "threshold Laplace": lambda dag: ThresholdLaplace(dag, 3 * UNIT.sensitivity / SCALE, UNIT),
}


def tables_of(taps: OpalTaps, mode: str) -> FeatureDag:
    """The tables of one kind of tap: by time, by location, and by both."""
    held = taps.universes[mode]
    universe = Universe(time=held.dimension("time"), location=held.dimension("location"))
    return FeatureDag(universe, [Feature("time", by="time"), Feature("location", by="location")])


def parts(taps: OpalTaps) -> Iterator[tuple[str, str, FeatureDag, Ints]]:
    """Mode, kind of tap, features and true counts of each day × mode × kind of tap."""
    features = {mode: tables_of(taps, mode) for mode in taps.modes}
    for (_, mode), part in taps.parts.items():
        for kind in TAPS:
            universe = features[mode].universe
            index = universe.rank_codes([part[f"{kind}_time"], part[f"{kind}_location"]])
            yield mode, kind, features[mode], np.bincount(index, minlength=universe.size).astype(np.int64)


def compare(release: Release, truth: Ints) -> Counter[str]:
    """What is added up over parts: errors, suppression and disagreement of one release."""
    dag, shape = release.features, tuple(len(d) for d in release.features.universe.dimensions.values())
    grid = truth.reshape(shape)
    true = {"time": grid.sum(axis=1), "location": grid.sum(axis=0), SINGLETON: truth}
    whole = release.counts(SINGLETON).reshape(shape)
    summed = {"time": whole.sum(axis=1), "location": whole.sum(axis=0), SINGLETON: whole.reshape(-1)}
    seen: Counter[str] = Counter(taps=int(truth.sum()), published=int(whole.sum()))
    seen["invented"] = int(summed[SINGLETON][truth == 0].sum())
    for name, counts in true.items():
        given = release.counts(name)
        off, hidden = given - counts, (given == 0) & (counts > 0)
        seen[f"{name} squares"] = int((off**2).sum())
        seen[f"{name} absolute"] = int(np.abs(off).sum())
        seen[f"{name} cells"] = dag.size(name)
        seen[f"{name} nonzero"] = int((counts > 0).sum())
        seen[f"{name} hidden"] = int(hidden.sum())
        seen[f"{name} hidden taps"] = int(counts[hidden].sum())
        seen[f"{name} disagreement"] = int(np.abs(given - summed[name]).sum())
    return seen


def share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %"


def measures(seen: Counter[str]) -> dict[str, str]:
    """The rows of the table for one mechanism."""
    taps = seen["taps"]
    made: dict[str, str] = {}
    for name, shown in TABLES.items():
        rms = math.sqrt(seen[f"{name} squares"] / seen[f"{name} cells"])
        made[f"{shown}: root mean square error"] = figure(rms)
        made[f"{shown}: total absolute error / taps"] = share(seen[f"{name} absolute"], taps)
        made[f"{shown}: non-zero counts published as 0"] = share(
            seen[f"{name} hidden"], seen[f"{name} nonzero"]
        )
        made[f"{shown}: taps in those"] = share(seen[f"{name} hidden taps"], taps)
    for name in ("time", "location"):
        made[f"disagreement of {name} with both / taps"] = share(seen[f"{name} disagreement"], taps)
    made["taps published in both"] = share(seen["published"], taps)
    made["of them where nobody tapped"] = share(seen["invented"], taps)
    return made


def by_mode(seen: Mapping[tuple[str, str], Counter[str]], modes: tuple[str, ...]) -> str:
    rows = []
    for mode in modes:
        cells = []
        for name in MECHANISMS:
            found = seen[name, mode]
            cells.append(" / ".join(share(found[f"{t} absolute"], found["taps"]) for t in TABLES))
        rows.append([mode, *cells])
    return markdown(["mode", *MECHANISMS], rows)


def composition(mechanism: Mechanism, disjoint: int) -> str:
    """What the whole release costs: tables of one kind of tap, both kinds about the same trips, disjoint parts."""
    kinds = Sequential((composable(mechanism.claim().cost),) * len(TAPS), "kinds of tap")
    return str(Parallel((kinds,) * disjoint, "day × mode parts"))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks opal", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the first day only")
    parser.add_argument("--seed", type=int, default=0, help="of the synthetic taps")
    options = parser.parse_args(argv)
    taps = opal_taps(seed=options.seed)
    used = len(taps.modes) if options.quick else len(taps.parts)
    seen = {(name, mode): Counter[str]() for name in MECHANISMS for mode in taps.modes}
    for seed, (mode, kind, dag, truth) in enumerate(islice(parts(taps), used * len(TAPS))):
        if kind == TAPS[0]:
            print(f"opal: part {seed // len(TAPS) + 1} of {used}, {mode}", file=sys.stderr)
        for name, make in MECHANISMS.items():
            seen[name, mode].update(compare(make(dag).simulate(truth, seed), truth))
    totals = {
        name: sum((seen[name, mode] for mode in taps.modes), start=Counter[str]()) for name in MECHANISMS
    }
    report(taps, used, totals, seen)
    agree = all(totals[n][f"{t} disagreement"] == 0 for n in MECHANISMS if "constraint" in n for t in TABLES)
    print(f"\nThe constraint-based tables agree with each other everywhere: {'yes' if agree else 'NO'}")
    return 0 if agree else 1


def report(
    taps: OpalTaps,
    used: int,
    totals: Mapping[str, Counter[str]],
    seen: Mapping[tuple[str, str], Counter[str]],
) -> None:
    trips = next(iter(totals.values()))["taps"] // len(TAPS)
    print("# The Opal release and ours\n")
    print(f"{taps.name} (synthetic): {trips:,} trips in {used} day × mode parts, each tapped on and off;")
    print(f"a table by time, by location and by both for each kind of tap. Unit: {UNIT}.\n")
    columns = {name: measures(totals[name]) for name in MECHANISMS}
    names = list(next(iter(columns.values())))
    print(markdown(["over all parts", *MECHANISMS], [[n, *(c[n] for c in columns.values())] for n in names]))
    print("\nTotal absolute error / taps by mode, for time / location / both:\n")
    print(by_mode(seen, taps.modes))
    print("\nWhat each costs:\n")
    dag = tables_of(taps, "ferry")
    for name, make in MECHANISMS.items():
        mechanism = make(dag)
        claim = mechanism.claim()
        cost = composition(mechanism, used)
        print(f"- **{name}**: {cost}" if claim.holds else f"- **{name}**: {claim}. Its noise alone: {cost}")
