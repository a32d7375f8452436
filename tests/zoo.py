"""Honest mechanisms and broken ones, each with the two neighbouring data sets that an attack on it starts from.

The broken ones live here, among the tests, so that nobody publishes with one by mistake. Each is named after a failure in
the wild. To have a new mechanism attacked by the tests and by `python -m benchmarks audit`, add a row to `HONEST`.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

import cbdp
from cbdp.app.audit.lower_bound import ThroughFiles, TrialParts, epsilon_lower_bound
from cbdp.audit.lower_bound import EpsilonBound, Reading, read
from cbdp.counting import Clock
from cbdp.counting.counts import Counts, count
from cbdp.estimation.posterior import Posterior
from cbdp.features import SINGLETON
from cbdp.ledger import BudgetError, Ledger
from cbdp.mechanisms import (
    ConstraintBased,
    Hierarchical,
    Laplace,
    Mechanism,
    StabilityHistogram,
    ThresholdLaplace,
)
from cbdp.privacy.entropy import Entropy, InsecureSeededEntropy
from cbdp.privacy.measurement import Measurement, NoisyAnswer
from cbdp.privacy.noise import NoiseDistribution, noise_distribution
from cbdp.privacy.unit import Person, Trip
from cbdp.release.release import Release, from_leaves

Table = dict[str, list[Any]]

CARD, CARD_DAY = Person("card", 2), Person("card", 2, per="day")


class Counted(TrialParts):
    """TrialParts whose trips are counted before the mechanism gets them: counting trips draws nothing, and takes its time."""

    def mix(self, one: Table, two: Table, first: np.ndarray) -> np.ndarray:  # type: ignore[override]
        return self.counted(one, two)(first)


MANY_PARTS = TrialParts(30_000, {"stop": ["A", "B"]}, person="card")
FEW_PARTS = TrialParts(10_000, {"stop": ["A", "B"]}, person="card")
MANY_COUNTED = Counted(MANY_PARTS.number, MANY_PARTS.dimensions)
FEW_COUNTED = Counted(FEW_PARTS.number, FEW_PARTS.dimensions)


def trips(*rows: tuple[str, str]) -> Table:
    """A tiny data set: person and stop of each trip."""
    return {"stop": [stop for _, stop in rows], "card": [who for who, _ in rows]}


ONE, NONE, MOVED = trips(("x", "A")), trips(), trips(("x", "B"))
WITH, WITHOUT = trips(("x", "A"), ("x", "A"), ("y", "B")), trips(("y", "B"))
MANY = trips(*[("x", "A")] * 5, ("y", "B"))
NO_NIGHT = WITHOUT | {
    "when": ["2026-03-02 12:00"]
}  # and one service day of x: two trips before midnight, two after
NIGHT = trips(*[("x", "A")] * 4, ("y", "B")) | {
    "when": [f"2026-03-0{at}" for at in ("2 22:00", "2 23:00", "3 00:30", "3 01:30", "2 12:00")]
}
OTHERS = [(f"z{i}", "B") for i in range(20)]


@dataclass(frozen=True)
class Case:
    """A mechanism under attack; `reach` is the ε that the attack must prove: it shows that the attack has power."""

    mechanism: Any
    one: Any
    two: Any
    parts: TrialParts | None = MANY_PARTS
    trials: int = 300_000
    reach: float = 0.9
    claim: float = 1.0
    delta: float | None = None

    def attack(self, seed: int) -> EpsilonBound:
        return epsilon_lower_bound(
            self.mechanism,
            self.one,
            self.two,
            trials=self.trials,
            parts=self.parts,
            claim=self.claim,
            delta=self.delta,
            seed=seed,
        )


# --- the zoo ----------------------------------------------------------------------------------------------------------


class OpalSecondAlgorithm(ThresholdLaplace):
    """Zeros are skipped: a count that shows proves a rider. Opal tap data, 2016 (assessed by Culnane and others, 2017)."""


class SensitivityOfARow(ConstraintBased):
    """Noise for one row where a person has several. Libraries too low by a factor: Casacuberta and others, 2022."""

    def measure(self, counts: Counts, entropy: Entropy) -> list[NoisyAnswer]:
        return super().measure(replace(counts, unit=Trip()), entropy)


class SensitivityOfARowOnEveryType(Laplace):
    """The same with noise on every trip type only."""

    @property
    def noise(self) -> NoiseDistribution:
        return noise_distribution(self.law, 1 / self.epsilon)


class ChargedOnce(ConstraintBased):
    """Two features, each measured with the whole ε, and one charge. Variants of sparse vector: Lyu, Su and Li, 2017."""

    def measure(self, counts: Counts, entropy: Entropy) -> list[NoisyAnswer]:
        assert self.measured is not None
        spent = self.epsilon * len(self.measured)
        return ConstraintBased(self.features, spent, measured=self.measured).measure(counts, entropy)


@dataclass(frozen=True)
class KnownSeed:
    """Every release draws the same noise. A fixed seed "for repeatability"; Debian's OpenSSL of 2006 had 32,768 of them."""

    mechanism: Mechanism

    def simulate(self, data: Any, _: int) -> Release:
        return self.mechanism.simulate(data, seed=0)


class MironovsFloats(Laplace):
    """Floating-point noise: the lowest bits tell what it was added to. Mironov, 2012, in every library of the time."""

    def measure(self, counts: Counts, entropy: Entropy) -> list[NoisyAnswer]:
        rng = np.random.default_rng(int(entropy.words(1, 64)[0]))
        truth, law = counts.dense(), noise_distribution("laplace", self.noise.scale)
        noisy = truth + rng.laplace(scale=float(law.scale), size=len(truth))
        return [Measurement(SINGLETON, noisy, scale=law.scale, law=law.name, epsilon=self.epsilon)]


@dataclass(frozen=True)
class InsertionOrder:
    """Rows stand in the order in which trips came. History in data structures: Naor and Teague, 2001."""

    mechanism: Mechanism

    def simulate(self, data: dict[str, Any], seed: int) -> Release:
        release = self.mechanism.simulate(data, seed)
        universe = self.mechanism.features.universe
        codes = [np.asarray(data["part"]), np.searchsorted(["A", "B"], data["stop"])]
        came, first = np.unique(universe.rank_codes(codes), return_index=True)
        late = len(data["part"]) + release.index
        place = np.minimum(np.searchsorted(came, release.index), len(came) - 1)
        order = np.argsort(np.where(came[place] == release.index, first[place], late), kind="stable")
        return replace(release, index=release.index[order], value=release.value[order])


@dataclass(frozen=True)
class MetadataPeeked:
    """What has no trips is cut off after the noise. Domains learnt from the data: Stadler and others, 2022."""

    mechanism: Mechanism

    def simulate(self, counts: np.ndarray, seed: int) -> Release:
        release = self.mechanism.simulate(counts, seed)
        keep = counts[release.index] > 0
        return replace(release, index=release.index[keep], value=release.value[keep])


@dataclass(frozen=True)
class RoundingPeeked:
    """Rounded towards the truth. Offices round tables in a controlled way, which looks at the true counts."""

    mechanism: Mechanism

    def simulate(self, counts: np.ndarray, seed: int) -> Release:
        release = self.mechanism.simulate(counts, seed)
        assert release.estimate is not None
        index, value = from_leaves(_towards(release.estimate.counts(SINGLETON), counts))
        return replace(release, index=index, value=value)


def _towards(real: np.ndarray, truth: np.ndarray) -> np.ndarray:
    return np.where(truth > real, np.ceil(real), np.floor(real))


@dataclass(frozen=True)
class StickyNoise:
    """Two releases, of last year and with this year added, with the same noise. Diffix: Gadotti and others, 2019."""

    mechanism: Mechanism  # of each release
    sticky: bool = True

    def simulate(self, data: dict[str, Any], seed: int) -> list[Release]:
        last = np.asarray(data["year"]) == 1
        before = {name: np.asarray(column)[last] for name, column in data.items()}
        return [
            self.mechanism.simulate(before, seed),
            self.mechanism.simulate(data, seed if self.sticky else seed + 1),
        ]


@dataclass(frozen=True)
class DailyReset:
    """A ledger that is thrown away at midnight: the cap holds for a day. Apple's budget: Tang and others, 2017."""

    mechanism: Mechanism
    resets: bool = True

    def simulate(self, data: Any, seed: int) -> list[Release]:
        made = []
        with tempfile.TemporaryDirectory() as folder:
            for day in (1, 2):
                path = Path(folder) / (f"ledger-{day}.sqlite" if self.resets else "ledger.sqlite")
                with Ledger.open(path, dataset="city", cap=1, create=True) as ledger:
                    try:
                        ledger.reserve(f"day {day}", self.mechanism.claim().cost.epsilon)
                    except BudgetError:
                        continue
                    made.append(self.mechanism.simulate(data, seed + day))
        return made


@dataclass(frozen=True)
class DroppedRowsReported:
    """The log says how many rows were outside. Side channels of private queries: Haeberlen and others, 2011."""

    mechanism: Mechanism
    parts: TrialParts
    reports: bool = True

    def simulate(self, data: dict[str, Any], seed: int) -> list[Any]:
        outside = ~np.isin(data["stop"], ["A", "B"])
        dropped = np.bincount(data["part"][outside], minlength=self.parts.number)
        return [self.mechanism.simulate(data, seed), {"dropped": dropped if self.reports else 0}]


@dataclass(frozen=True)
class UnboundedContributions:
    """All of a person's trips are counted under noise for two. Before Wilson and others, 2020, the rule in SQL systems."""

    mechanism: Mechanism

    def simulate(self, data: Any, seed: int) -> Release:
        counts = replace(count(data, self.mechanism.features.universe), unit=self.mechanism.unit)
        return self.mechanism.finish(self.mechanism.measure(counts, InsecureSeededEntropy(seed)))


@dataclass(frozen=True)
class TruncatedBeforeTheDayChanged:
    """Trips are bounded by the calendar's day, and the day is redefined afterwards: a service day from 04:00 on gets two bounds.

    Truncation before a column is redefined: the slip that pipelines make when "clean" comes after "bound".
    """

    mechanism: Mechanism
    bounded: str = (
        "00:00"  # when the days begin that trips are bounded by; the promise is of days from 04:00 on
    )

    def simulate(self, data: Any, seed: int) -> Release:
        clock = Clock(day_starts=self.bounded)
        return self.mechanism.simulate(data, seed, columns={"day": "when"}, clock=clock)


@dataclass(frozen=True)
class LogInTheFolder:
    """The folder ships a log that tells how many rows were read; its size alone gives it away. Haeberlen and others again."""

    mechanism: Mechanism

    def simulate(self, data: np.ndarray, seed: int) -> Reading:
        log = {"log.txt": f"{data.sum()} rows read"}
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "release"
            self.mechanism.simulate(data, seed).save(folder, extra=log, simulation=True)
            return read(folder)


class DeltaDropped(StabilityHistogram):
    """A threshold hides the rare, and the claim forgets δ. Search logs: Götz and others, 2012."""


def _zoo() -> dict[str, Case]:
    dag, measured = FEW_PARTS.features, FEW_PARTS.measured
    tiny = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"]), [])
    new = {"stop": ["A"], "year": [2]}
    cards: Any = {"unit": CARD}
    case: Any = {"parts": FEW_PARTS, "trials": 60_000}
    counted: Any = {"parts": FEW_COUNTED, "trials": 60_000}
    return {
        "OpalSecondAlgorithm": Case(
            OpalSecondAlgorithm(dag, 1, threshold=1, tables=["singleton"]), ONE, NONE, reach=5, **case
        ),
        "SensitivityOfARow": Case(
            SensitivityOfARow(dag, 1, measured=measured, **cards), WITH, WITHOUT, reach=1.5, **case
        ),
        "SensitivityOfARowOnEveryType": Case(
            SensitivityOfARowOnEveryType(dag, 1, **cards), WITH, WITHOUT, reach=1.5, **case
        ),
        "ChargedOnce": Case(ChargedOnce(dag, 1, measured=measured), ONE, NONE, reach=1.5, **case),
        "KnownSeed": Case(
            KnownSeed(Laplace(tiny, 1)),
            np.array([1, 0]),
            np.array([0, 0]),
            parts=None,
            trials=800,
            reach=2,
        ),
        "MironovsFloats": Case(MironovsFloats(dag, 1), ONE, NONE, reach=4, **case),
        "InsertionOrder": Case(
            ThroughFiles(InsertionOrder(Laplace(dag, 1))),
            trips(("x", "A"), ("y", "B")),
            trips(("y", "B")),
            reach=3,
            parts=FEW_PARTS,
            trials=40_000,
        ),
        "MetadataPeeked": Case(
            MetadataPeeked(ConstraintBased(dag, 1, measured=measured)), ONE, NONE, reach=4, **counted
        ),
        "RoundingPeeked": Case(
            RoundingPeeked(ConstraintBased(dag, 1, measured=measured)), ONE, NONE, reach=3, **counted
        ),
        "StickyNoise": Case(StickyNoise(Laplace(dag, "1/2")), new, {"stop": [], "year": []}, reach=4, **case),
        "DailyReset": Case(
            DailyReset(Laplace(dag, 1, law="geometric")), ONE, NONE, FEW_COUNTED, 60_000, reach=1.5
        ),
        "DroppedRowsReported": Case(
            DroppedRowsReported(Laplace(dag, 1), FEW_PARTS),
            trips(("x", "nowhere")),
            NONE,
            reach=5,
            parts=FEW_PARTS,
            trials=40_000,
        ),
        "LogInTheFolder": Case(
            LogInTheFolder(Laplace(tiny, 1)),
            np.array([9, 1]),
            np.array([9, 0]),
            parts=None,
            trials=240,
            reach=1.1,
        ),
        "UnboundedContributions": Case(
            UnboundedContributions(Laplace(dag, 1, **cards)), MANY, WITHOUT, reach=1.5, **case
        ),
        "TruncatedBeforeTheDayChanged": Case(
            TruncatedBeforeTheDayChanged(Laplace(dag, 1, unit=CARD_DAY)), NIGHT, NO_NIGHT, reach=1.5, **case
        ),
        "DeltaDropped": Case(
            DeltaDropped(MANY_PARTS.features, 1, delta=0.02, tables=["singleton"]),
            ONE,
            NONE,
            reach=2,
            delta=0,
        ),
    }


def _narrow() -> dict[str, Case]:
    """Noise for 1.1 ε under a claim of ε: what the attack can only just see."""
    dag, measured = MANY_PARTS.features, MANY_PARTS.measured
    made: dict[str, Mechanism] = {
        "laplace": Laplace(dag, "1.1"),
        "hierarchical": Hierarchical(dag, "1.1", prune=False),
        "constraint-based": ConstraintBased(dag, "1.1", measured=measured),
    }
    return {
        f"{name}, a tenth too generous": Case(mechanism, ONE, NONE, trials=450_000, reach=1.0)
        for name, mechanism in made.items()
    }


ZOO = MappingProxyType(_zoo())
NARROW = MappingProxyType(_narrow())


# --- the honest -------------------------------------------------------------------------------------------------------


HIDING = Posterior(revealed=59_000)  # as if the types were too many to reveal all


def _honest() -> dict[str, Case]:
    dag, measured = MANY_PARTS.features, MANY_PARTS.measured
    tiny = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"]), [])
    replaced, cards = Trip("replace"), CARD
    asked: Any = {"measured": measured}
    new = {"stop": ["A"], "year": [2]}
    return {
        "laplace": Case(Laplace(dag, 1), ONE, NONE),
        "laplace, geometric": Case(Laplace(dag, 1, law="geometric"), ONE, NONE),
        "laplace, sparse": Case(Laplace(dag, 1, sparse=True), ONE, NONE),
        "laplace, replaced": Case(Laplace(dag, 1, unit=replaced), ONE, MOVED, trials=480_000),
        "laplace, geometric, replaced": Case(Laplace(dag, 1, law="geometric", unit=replaced), ONE, MOVED),
        "laplace, person": Case(Laplace(dag, 1, unit=cards), WITH, WITHOUT, trials=180_000),
        # pruning acts on the root as well, and the root on every part: the bound holds whatever parts have in common
        "hierarchical": Case(Hierarchical(dag, 1), ONE, NONE),
        "hierarchical, not pruned": Case(Hierarchical(dag, 1, prune=False), ONE, NONE),
        "hierarchical, person": Case(
            Hierarchical(dag, 1, unit=cards, prune=False), WITH, WITHOUT, trials=180_000
        ),
        "hierarchical, among others": Case(
            Hierarchical(dag, 1), trips(("x", "A"), *OTHERS), trips(*OTHERS), trials=240_000
        ),
        "constraint-based": Case(ConstraintBased(dag, 1, **asked), ONE, NONE, trials=150_000),
        "constraint-based, sparse": Case(
            ConstraintBased(dag, 1, sparse=True, estimator=HIDING, **asked), ONE, NONE, trials=240_000
        ),
        "constraint-based, projection": Case(
            ConstraintBased(dag, 1, preset="paper", **asked), ONE, NONE, trials=180_000
        ),
        "constraint-based, expected counts": Case(
            ConstraintBased(dag, 1, estimator="posterior", budget="leaves", **asked),
            ONE,
            NONE,
            trials=150_000,
        ),
        # 20 trips in every part: the lattice of expected counts and the rounding are far from zero
        "constraint-based, expected counts among others": Case(
            ConstraintBased(dag, 1, estimator="posterior", **asked),
            trips(("x", "A"), *OTHERS),
            trips(*OTHERS),
            trials=150_000,
        ),
        # half of ε is spent on the parts' totals, which do not change when a trip is replaced
        "constraint-based, replaced": Case(
            ConstraintBased(dag, 1, unit=replaced, preset="paper", **asked),
            ONE,
            MOVED,
            trials=180_000,
            reach=0.4,
        ),
        "constraint-based, replaced, types only": Case(
            ConstraintBased(dag, 1, unit=replaced, measured=["singleton"]), ONE, MOVED, trials=180_000
        ),
        "constraint-based, person": Case(
            ConstraintBased(dag, 1, unit=cards, **asked), WITH, WITHOUT, trials=150_000
        ),
        "constraint-based, person beyond m": Case(
            ConstraintBased(dag, 1, unit=cards, **asked), MANY, WITHOUT, trials=180_000
        ),
        "constraint-based, sparse, person": Case(
            ConstraintBased(dag, 1, unit=cards, sparse=True, preset="paper", **asked),
            WITH,
            WITHOUT,
            trials=240_000,
        ),
        "threshold, zeros perturbed": Case(
            ThresholdLaplace(dag, 1, threshold=1, zeros="perturbed", tables=["singleton"]), ONE, NONE
        ),
        "constraint-based, files": Case(
            ThroughFiles(ConstraintBased(dag, 1, **asked)), ONE, NONE, MANY_COUNTED, trials=150_000
        ),
        "constraint-based, sparse, files": Case(
            ThroughFiles(ConstraintBased(dag, 1, sparse=True, preset="paper", **asked)),
            ONE,
            NONE,
            MANY_COUNTED,
            trials=180_000,
        ),
        # totals, sizes of files and the manifest: of a whole release, so a run is a single trial
        "constraint-based, whole folder": Case(
            ThroughFiles(ConstraintBased(tiny, 1)), np.array([1, 0]), np.array([0, 0]), None, 120, reach=0
        ),
        "a ledger that is kept": Case(
            DailyReset(Laplace(dag, 1), resets=False), ONE, NONE, MANY_COUNTED, 240_000
        ),
        "a service day, bounded as such": Case(
            TruncatedBeforeTheDayChanged(Laplace(dag, 1, unit=CARD_DAY), bounded="04:00"),
            NIGHT,
            NO_NIGHT,
            trials=180_000,
        ),
        "two releases, noise of their own": Case(
            StickyNoise(Laplace(dag, "1/2", law="geometric"), sticky=False),
            new,
            {"stop": [], "year": []},
            trials=120_000,
            reach=0.4,
        ),
    }


HONEST = MappingProxyType(_honest())
