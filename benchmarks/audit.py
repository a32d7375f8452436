"""What attacks prove about every mechanism's ε, beside its claim; and how surely they catch the broken ones.

python -m benchmarks audit [--repeats 100] [--jobs 1] [--seed 0] [--only NAME …]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from scipy import stats

from benchmarks.tables import markdown
from cbdp.app.audit.epsilon import EpsilonBound
from tests.zoo import HONEST, NARROW, ZOO, Case

CONFIDENCE = 0.95
ALL: Mapping[str, Case] = {**HONEST, **ZOO, **NARROW}


def attacks(
    names: Sequence[str], seeds: Sequence[int], jobs: int
) -> Iterator[tuple[str, list[EpsilonBound]]]:
    """The bounds of each case, one for each seed; progress goes to the error stream."""
    if jobs == 1:
        for name in names:
            yield name, [_attack(name, seed) for seed in seeds]
        return
    with ProcessPoolExecutor(jobs) as pool:
        for name in names:
            yield name, list(pool.map(partial(_attack, name), seeds, chunksize=5))


def _attack(name: str, seed: int) -> EpsilonBound:
    print(f"\raudit: {name}, seed {seed}" + " " * 20, end="", file=sys.stderr)
    return ALL[name].attack(seed)


def honest_row(name: str, bound: EpsilonBound) -> list[str]:
    case = ALL[name]
    return [name, f"{case.claim:g}", f"{bound.epsilon:.3f}", f"{case.reach:g}", f"{case.trials:,}"]


def caught_row(name: str, bounds: Sequence[EpsilonBound]) -> list[str]:
    """Catches with the limit that they give for the chance of one, and how far the bounds stay away from the claim."""
    found = np.array([b.epsilon for b in bounds])
    caught = int(sum(b.exceeds for b in bounds))
    least = float(stats.beta.ppf(1 - CONFIDENCE, caught, len(bounds) - caught + 1)) if caught else 0.0
    away = float((found.mean() - ALL[name].claim) / max(found.std(), 1e-9))
    margin = f"{away:.1f}" if away < 100 else "over 100"
    row = [name, f"{ALL[name].claim:g}", f"{found.mean():.2f}", f"{found.min():.2f}", margin]
    return [*row, f"{caught} of {len(bounds)}", f"{least:.3f}", f"{ALL[name].trials:,}"]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks audit", description=__doc__)
    parser.add_argument("--repeats", type=int, default=100, help="attacks on each broken mechanism")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seed", type=int, default=0, help="of the first attack")
    parser.add_argument("--only", nargs="+", choices=list(ALL), metavar="NAME", help="some of the mechanisms")
    options = parser.parse_args(argv)
    wanted = options.only or list(ALL)
    good = True
    print(
        "# The claims, attacked\n\nThe largest ε that an attack proves, with a false alarm of one in a million.\n"
    )
    rows = []
    for name, bounds in attacks([n for n in HONEST if n in wanted], [options.seed], options.jobs):
        good &= not bounds[0].exceeds and bounds[0].epsilon >= ALL[name].reach
        rows.append(honest_row(name, bounds[0]))
    if rows:
        print(markdown(["mechanism", "claim", "proven", "wanted", "trials"], rows), flush=True)
    rows = []
    seeds = range(options.seed, options.seed + options.repeats)
    for name, bounds in attacks([n for n in (*ZOO, *NARROW) if n in wanted], seeds, options.jobs):
        good &= all(b.exceeds for b in bounds)
        rows.append(caught_row(name, bounds))
    print(file=sys.stderr)
    if rows:
        print(
            f"\nBroken mechanisms, {options.repeats} attacks on each. Margin: how many standard deviations the mean bound"
        )
        print(
            f"is above the claim. Chance: at least this, with {CONFIDENCE:.0%} confidence from the catches alone.\n"
        )
        header = ["broken", "claim", "mean ε", "least ε", "margin", "caught", "chance", "trials"]
        print(markdown(header, rows), flush=True)
    print(
        f"\nNo honest mechanism is refuted and every attack has power, every broken one is always caught: {'yes' if good else 'NO'}"
    )
    return 0 if good else 1
