"""How often the intervals of `release.ask` hold the true count, and how wide they are.

Claim: intervals of any question hold about nine of ten true counts; how much wider than an oracle's they are (docs/reference/ask.md).

python -m benchmarks asked [--runs 200] [--data weekday metro corridor night] [--epsilon 1] [--budget balanced leaves] [--quick] [--unlisted]

Questions that no table answers: pairs of zones over all times, the boardings of each stop, eight corridors of eight stops, single trip types with more than five
trips, and which share of a zone's trips goes to each other zone. Beside the coverage of 90 % intervals stands their mean half width, divided by
that of an oracle: 1.645 times the root mean square error of the published estimates over the runs, for each count. With --quick
intervals are those that the noisy answers alone tell. With --unlisted the
engine is made to treat the universe as one too large to list.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.data import RUSH, city, dense_city
from benchmarks.harness.elsewhere import NOWHERE, elsewhere
from benchmarks.harness.markdown import markdown
from cbdp.features import FeatureDag
from cbdp.mechanisms import ConstraintBased
from cbdp.release.ask import conditions
from cbdp.release.release import Release
from cbdp_features.queries import Grouping

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Case = tuple[FeatureDag, Ints]

CONFIDENCE, NORMAL = 0.9, 1.645
BAND = (0.88, 0.93)
ONE = "corridors"
CORRIDORS, STOPS = 8, 8  # so many, of so many stops each
PAIR = ("origin.zone", "destination.zone")


def case_of(name: str) -> Case:
    """The case study's city, a dense metro, or a network of another shape."""
    if name in NOWHERE:
        return elsewhere(name)
    found = city("weekday", RUSH) if name == "weekday" else dense_city(60)
    return found.features, found.truth


@dataclass(frozen=True)
class Question:
    """What is asked for."""

    words: str
    by: tuple[str, ...] = ()
    where: Mapping[object, object] | None = None
    share: bool = False
    least: int = 0  # true counts below are left aside

    def truth(self, case: Case) -> Ints:
        features, trips = case
        grouping = Grouping(features.universe, self.by, conditions(features.universe, self.where))
        here = np.flatnonzero(trips)
        return grouping.added(here, trips[here])


def questions(case: Case) -> list[Question]:
    stops = case[0].universe.dimensions["origin"].values
    rng = np.random.default_rng(0)
    corridors = [rng.choice(len(stops), min(STOPS, len(stops) // 2), replace=False) for _ in range(CORRIDORS)]
    pairs = [[(stops[a], stops[b]) for a in some for b in some if a != b] for some in corridors]
    return [
        Question("pairs of zones, all times", PAIR),
        Question("boardings of each stop", ("origin",)),
        *(Question(ONE, (), {("origin", "destination"): some}) for some in pairs),
        Question("single types above 5 trips", ("origin", "destination", "time"), least=6),
        Question("shares of a zone's trips", PAIR, share=True),
    ]


@dataclass(frozen=True, eq=False)
class Answers:
    """Of many releases (rows): the ends of the intervals, and the estimate."""

    low: Floats
    high: Floats
    estimate: Floats

    def row(self, truth: Floats) -> tuple[float, float]:
        """Coverage, and width divided by the oracle's."""
        held = (self.low - 1e-9 <= truth) & (truth <= self.high + 1e-9)
        error = np.sqrt(np.mean((self.estimate - truth) ** 2, axis=0))
        clear = error > 0
        wide = ((self.high - self.low) / 2).mean(axis=0)
        return float(held.mean()), float(
            wide[clear].mean() / (NORMAL * error[clear].mean())
        ) if clear.any() else 1.0


def answered(release: Release, asked: Question, kept: NDArray[np.bool_], sharp: bool) -> list[Floats]:
    whole = PAIR[0] if asked.share else None
    told = release.ask(by=asked.by, where=asked.where, confidence=CONFIDENCE, share_of=whole, sharp=sharp)
    names = ("share_low", "share_high", "share") if asked.share else ("low", "high", "estimate")
    return [np.asarray(told[name], dtype=float)[kept] for name in names]


def true_values(case: Case, asked: Question) -> tuple[Floats, NDArray[np.bool_]]:
    """The true counts or shares that are looked at, and which they are."""
    truth = asked.truth(case).astype(float)
    if not asked.share:
        kept = truth >= asked.least
        return truth[kept], kept
    zones = round(len(truth) ** 0.5)
    whole = np.repeat(truth.reshape(zones, zones).sum(axis=1), zones)
    kept = whole > 0
    return truth[kept] / whole[kept], kept


def rows(
    case: Case, mechanism: ConstraintBased, runs: int, sharp: bool
) -> Iterator[tuple[str, int, float, float]]:
    """For each question: its words, how many counts it has, coverage, relative width."""
    asked = questions(case)
    wanted = [true_values(case, q) for q in asked]
    found = []
    for seed in range(runs):
        release = mechanism.simulate(case[1], seed)
        found.append([answered(release, q, kept, sharp) for q, (_, kept) in zip(asked, wanted, strict=True)])
    for words in dict.fromkeys(q.words for q in asked):
        these = [n for n, q in enumerate(asked) if q.words == words]
        truth = np.concatenate([wanted[n][0] for n in these])
        if len(truth):
            ends = [
                np.array([np.concatenate([made[n][i] for n in these]) for made in found]) for i in range(3)
            ]
            yield words, len(truth), *Answers(*ends).row(truth)


def main(argv: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks asked")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument(
        "--data",
        nargs="+",
        choices=("weekday", "metro", *NOWHERE),
        default=["weekday", "metro", "corridor", "night"],
    )
    parser.add_argument("--epsilon", nargs="+", default=["1"])
    parser.add_argument("--budget", nargs="+", default=["balanced", "leaves"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--unlisted", action="store_true")
    given = parser.parse_args(list(argv))
    table, inside = list[list[str]](), 0
    for name in given.data:
        case = case_of(name)
        for epsilon in given.epsilon:
            for budget in given.budget:
                mechanism = ConstraintBased(case[0], epsilon, budget=budget, sparse=given.unlisted)
                for words, many, covered, wide in rows(case, mechanism, given.runs, not given.quick):
                    inside += BAND[0] <= covered <= BAND[1]
                    table.append([name, epsilon, budget, words, f"{many:,}", f"{covered:.1%}", f"{wide:.2f}"])
    print(f"{given.runs} releases each.\n")
    print(markdown(["data", "ε", "budget", "question", "counts", "coverage", "width ÷ oracle's"], table))
    print(f"\nCoverage of {BAND[0]:.0%} to {BAND[1]:.0%}: {inside} of {len(table)}.")
    return 0
