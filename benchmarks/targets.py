"""Does any mechanism serve a stated target better than ours with that target?

Claim: no mechanism serves a stated target better than ours with that target (docs/results/index.md).

python -m benchmarks targets [--data weekday dense corridor night] [--epsilon 1 0.1] [--runs 3]

A target says how much the error of each table matters. The loss is the worst of weight × error ÷ specialist's error over the target's tables,
where the error is the root mean square of the published counts, and the specialist is our release whose target is that one table
alone. The same loss is taken of every mechanism: plain Laplace, the hierarchical trees, the papers' programs, top-down fitting, histograms.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from benchmarks.harness import registry
from benchmarks.harness.data import RUSH, city, dense_city
from benchmarks.harness.elsewhere import NOWHERE, elsewhere
from benchmarks.harness.markdown import markdown
from benchmarks.harness.registry import Case, Run
from cbdp.features import SINGLETON
from cbdp.mechanisms import ConstraintBased

Target = Mapping[str, int]

TARGETS: tuple[Target, ...] = (
    {SINGLETON: 1},
    {"zone": 1},
    {"zone": 1, "time": 1},
    {SINGLETON: 1, "zone": 1},
    {SINGLETON: 2, "zone": 1, "time": 1},
)
RIVALS = (
    "Lap",
    "H3",
    "H4",
    "H5",
    "O3",
    "O4",
    "O5",
    "TopDown 4",
    "TopDown 5",
    "TopDown 80 % leaves",
    "Stability",
)


def case_of(name: str) -> Case:
    if name in NOWHERE:
        features, truth = elsewhere(name)
        return Case(name, features, truth)
    return city("weekday", RUSH) if name == "weekday" else dense_city(60)


def errors(case: Case, run: Run, runs: int) -> dict[str, float]:
    """By feature, the root mean square error of what is published."""
    squares: dict[str, list[float]] = {name: [] for name in case.features.features}
    for seed in range(runs):
        made = registry.answer(case, run(seed)).leaves
        for name, found in squares.items():
            found.append(float(np.mean((case.summed(name, made) - case.by_feature[name]) ** 2.0)))
    return {name: float(np.sqrt(np.mean(found))) for name, found in squares.items()}


def loss(found: Mapping[str, float], target: Target, alone: Mapping[str, float]) -> float:
    """The worst of weight × error ÷ specialist's error."""
    return max(weight * found[name] / alone[name] for name, weight in target.items())


def with_target(case: Case, epsilon: str, target: Target, runs: int) -> dict[str, float]:
    """The errors of our release that has this target."""
    mechanism = ConstraintBased(case.features, epsilon, budget="optimal", target=dict(target))
    return errors(case, lambda seed: mechanism.simulate(case.counts, seed), runs)


def rows(name: str, epsilon: str, runs: int) -> Iterator[tuple[list[str], bool]]:
    """For each target: our loss and the least of the others."""
    case, rivals = case_of(name), {}
    for rival in RIVALS:
        try:
            rivals[rival] = errors(case, registry.MECHANISMS[rival].make(case, epsilon), runs)
        except registry.NotPossibleError:
            continue
    named = {feature for target in TARGETS for feature in target}
    alone = {feature: with_target(case, epsilon, {feature: 1}, runs)[feature] for feature in named}
    for target in TARGETS:
        ours = loss(with_target(case, epsilon, target, runs), target, alone)
        theirs = {rival: loss(found, target, alone) for rival, found in rivals.items()}
        best = min(theirs, key=theirs.__getitem__)
        words = ", ".join(f"{n} {w}" for n, w in target.items())
        row = [
            name,
            epsilon,
            words,
            f"{ours:.2f}",
            f"{theirs[best]:.2f} ({best})",
            f"{ours / theirs[best]:.2f}",
        ]
        yield row, ours <= theirs[best]


def main(argv: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks targets")
    parser.add_argument(
        "--data", nargs="+", choices=("weekday", "dense", *NOWHERE), default=["weekday", "dense", *NOWHERE]
    )
    parser.add_argument("--epsilon", nargs="+", default=["1", "0.1"])
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args(list(argv))
    registry.prepare(registry.Setup())
    found = [
        row for name in given.data for epsilon in given.epsilon for row in rows(name, epsilon, given.runs)
    ]
    print(
        markdown(["data", "ε", "target", "ours", "least of the others", "ratio"], [row for row, _ in found])
    )
    kept = sum(fits for _, fits in found)
    print(f"\nNo mechanism has a lower loss: {kept} of {len(found)}.")
    return 0
