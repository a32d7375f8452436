"""Confidence intervals for published counts, which account for everything done to them. They cost no privacy.

The published trips stand in for the true ones, and the mechanism is run on them again and again: measuring, solving and
rounding. Each run shows by how much its answers miss the counts it was run on. Intervals are made of that as follows.

1. *Inversion.* A count that cannot be negative has errors that depend on the true count: near zero they go one way only.
   So the errors at the published count say little about true counts elsewhere. Instead, for each possible true count t
   the runs give the range in which the published count falls with the confidence asked for, and the interval holds
   every t whose range holds what was published (Neyman's construction). It covers each true count about as often as
   asked, however they are spread, if errors at a count t are alike in the published data and in the true.
   Where published zeros alone exceed half the risk, no count can be too low, and the upper end gets all the risk.
2. *The better answer.* Noisy measurements are published too: of the feature itself, or of finer ones, whose answers can
   be added up. Their errors have the same law whatever the truth, so the stand-in cannot mislead. Where the runs find a
   measurement nearer to the truth than the published counts (clipping and rounding may spoil sums), the interval is
   made from it, and widened to the published count. This also tells by itself which measurements are of use.
3. *Pooling.* A few runs are enough, because errors are shared by elements of similar counts and of similarly many trip
   types: clipped noise of the types adds up with their number.

4. *Expected values.* An estimate by `estimator="posterior"` is drawn towards what is to be expected. So the published trips
   are smoother than the true ones, runs on them look better than they are, and no statistic of them tells by how much. Its
   intervals are made from measurements alone, of which only the noise is drawn again: they hold whatever the truth is, and
   take no runs of the estimator. Only where no measurement adds up to a feature the runs have to do.

Ranks are those of exchangeable draws, with no assumption about their law: of n errors, the k-th smallest has k/(n + 1)
below it. Ends are whole numbers that include at least the confidence, so intervals cover a little more than asked where
the noise is about as small as one trip, and up to half the risk more at true counts of zero.

What the stand-in cannot show, the intervals do not account for: trips that bounding or suppression took away before.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InputError
from cbdp.features import SINGLETON, FeatureDag
from cbdp.privacy.measurement import Measurement
from cbdp.progress import tell
from cbdp.solvers.problem import bincount

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_RUNS = 2000  # simulations that a confidence may ask for
RUNS = 39  # two runs in each tail of 5 %, for a feature of one element
POOL = 400  # errors that a range is read off: its ends are then off by about 1 % of probability
STRATUM = 3  # so many pools are wanted of elements with similarly many trip types
NODES = 400  # true counts at which the range is worked out; between them it is interpolated
NEARLY = 1e-6  # of a trip: what interpolation and sums of measurements may be off
MOST = 40_000  # errors looked at for one range: more say nothing new


@dataclass(frozen=True, eq=False)
class Interval:
    """The ends of a feature's intervals, both included: a whole number of trips for each element, in their order."""

    low: Ints = field(repr=False)
    high: Ints = field(repr=False)


@dataclass(frozen=True, eq=False)
class _Source:
    """A measurement that can be added up to a feature's counts, and the deviation of the noise in the sums."""

    place: int  # among the release's measurements
    inside: NDArray[Any] | None  # the element that holds each answer (`singleton`: each cell); None: its own
    deviation: Floats


class ReleaseLike(Protocol):
    """What intervals need to know of a release: published values only."""

    @property
    def features(self) -> FeatureDag: ...
    @property
    def index(self) -> Ints: ...
    @property
    def value(self) -> Ints: ...
    @property
    def measurements(self) -> Sequence[Measurement]: ...
    @property
    def tables(self) -> Mapping[str, Ints]: ...
    def counts(self, feature: str) -> Ints: ...


class Simulator(Protocol):
    """Runs on the published trips in the place of private ones, from seeds: handed in by a mechanism."""

    def released(self, seed: int) -> ReleaseLike:
        """All of it again: measured, estimated, rounded."""
        ...

    def measured(self, seed: int, places: Sequence[int]) -> Mapping[int, Measurement]:
        """Only the measurements at these places of the release, drawn again."""
        ...


def intervals(
    release: ReleaseLike,
    again: Simulator,
    confidence: float = 0.9,
    *,
    features: Sequence[str] | None = None,
    runs: int | None = None,
    expects: bool = False,
) -> Mapping[str, Interval]:
    """An interval for every count of the features (all but `singleton`), from the release alone.

    The same release gives the same intervals: the simulation's seed is a hash of what is published. `expects` says that the
    estimate is made of expected values (4 above). Progress is told as the stage "runs".
    """
    risk = _risk(confidence)
    names = [n for n in release.features.features if n != SINGLETON] if features is None else list(features)
    for name in names:
        if name not in release.features:
            raise InputError(f"unknown feature {name!r}: there are {', '.join(release.features.features)}")
    many = _runs(runs, risk)
    truth = {name: _from_trips(release, name) for name in names}
    _check_tables(release, truth)
    sources = {name: _sources(release, name) for name in names}
    errors = {n: np.empty((1 + len(sources[n]), many, len(truth[n])), np.float32) for n in names}
    alone = expects and all(sources.values())
    places = sorted({s.place for several in sources.values() for s in several})
    for run, seed in enumerate(_seeds(release, many)):
        if alone:
            drawn = _answers(release.features, truth, again.measured(seed, places), sources)
        else:
            made = again.released(seed)
            counts = {name: made.counts(name) for name in names}
            drawn = _answers(release.features, counts, dict(enumerate(made.measurements)), sources)
        for name in names:
            errors[name][:, run] = drawn[name] - truth[name]
        tell("runs", (run + 1) / many)
    published = {name: release.counts(name) for name in names}
    answers, dag = (
        _answers(release.features, published, dict(enumerate(release.measurements)), sources),
        release.features,
    )
    return {
        n: _interval(answers[n], sources[n], truth[n], _types(dag, n), errors[n], risk, alone) for n in names
    }


def _from_trips(release: ReleaseLike, feature: str) -> Ints:
    """The counts that the published trips add up to."""
    dag = release.features
    if feature == SINGLETON:
        dense = np.zeros(dag.universe.size, dtype=np.int64)
        dense[release.index] = release.value
        return dense
    element = dag.partition(feature).element_of(dag.universe.unrank_codes(release.index))
    counts = np.zeros(dag.size(feature), dtype=np.int64)
    np.add.at(counts, element, release.value)
    return counts


def _interval(
    answers: Floats,
    sources: Sequence[_Source],
    truth: Ints,
    types: Ints,
    errors: NDArray[Any],
    risk: float,
    alone: bool,
) -> Interval:
    """The intervals of one feature, from the answer that is nearest to the truth in the simulated runs.

    `answers` has a row for the published counts and one for each source, `errors` the same for every run. `truth` are
    the counts that the runs were made on, and `types` how many trip types each element has. With `alone` the published counts say nothing of their errors.
    """
    first = int(alone)  # the published counts were not made again
    best = first + int(np.argmin([np.mean(np.square(e, dtype=float)) for e in errors[first:]]))
    if best == 0:
        low, high = _inverted(answers[0], truth, types, errors[0], risk)
    else:
        low, high = _measured(answers[best], sources[best - 1].deviation, errors[best], errors[0], risk)
    low = np.clip(np.ceil(low - NEARLY), 0, answers[0])
    high = np.maximum(np.floor(high + NEARLY), answers[0])
    return Interval(low.astype(np.int64), high.astype(np.int64))


def _measured(
    values: Floats, deviation: Floats, errors: NDArray[Any], published: NDArray[Any], risk: float
) -> tuple[Floats, Floats]:
    """The measurement's noise has one law, up to its size: the same range for all elements.

    When the published count is off the other way, the widening to it covers the truth anyway: such an error is none.
    """
    missed = np.where(errors * np.sign(published) < 0, 0.0, errors / deviation)
    low, high = _range(_thinned(missed), risk)
    return values - high * deviation, values - low * deviation


def _inverted(
    published: Floats, truth: Ints, types: Ints, errors: NDArray[Any], risk: float
) -> tuple[Floats, Floats]:
    """The true counts for which the published one lies in the range it would be expected in."""
    low, high = np.empty(len(truth)), np.empty(len(truth))
    need = math.ceil(POOL / len(errors))
    for stratum in _strata(types, STRATUM * need):
        alike = stratum[np.argsort(truth[stratum], kind="stable")]
        nodes, ranges = _ranges(truth[alike], errors[:, alike], need, risk)
        lower, upper = ranges.T
        low[alike] = _crossing(published[alike], nodes, _rising(upper), -1)
        high[alike] = _crossing(published[alike], nodes, _rising(lower), 1)
    return low, high


def _strata(types: Ints, least: int) -> list[Ints]:
    """Elements with similarly many trip types, at least so many together; equal ones are not parted."""
    order = np.argsort(types, kind="stable")
    ends = np.flatnonzero(np.diff(types[order])) + 1
    cuts = [0]
    for end in ends:
        if end - cuts[-1] >= least and len(types) - end >= least:
            cuts.append(int(end))
    return [order[a:b] for a, b in itertools.pairwise([*cuts, len(types)])]


def _ranges(ordered: Ints, errors: NDArray[Any], need: int, risk: float) -> tuple[Ints, Floats]:
    """True counts, and for each the range that the published count falls in."""
    nodes = np.unique(ordered)
    if len(nodes) > NODES:
        nodes = nodes[np.linspace(0, len(nodes) - 1, NODES).round().astype(int)]
    spread = float(np.sqrt(np.mean(np.square(errors, dtype=float))))
    reach = (
        nodes / 2 + spread / 4
    )  # errors change with the count near zero, on the scale of the errors themselves
    near = (_thinned(errors[:, _near(ordered, t, need, r)]) + t for t, r in zip(nodes, reach, strict=True))
    return nodes, np.array([_range(np.maximum(drawn, 0), risk) for drawn in near])


def _near(ordered: Ints, t: int, need: int, reach: float) -> slice:
    """The elements of count t, and as many as needed of those nearest in rank, if within reach of it."""
    first, last = np.searchsorted(ordered, [t, t + 1])
    start = max(0, min(first - max(0, need - (last - first)) // 2, len(ordered) - need))
    least, most = np.searchsorted(ordered, [t - reach, t + reach + 1])
    return slice(max(min(start, first), least), min(max(start + need, last), most))


def _thinned(errors: NDArray[Any]) -> Floats:
    flat = errors.reshape(-1)
    return flat[:: max(1, flat.size // MOST)].astype(float)


def _range(draws: Floats, risk: float) -> tuple[float, float]:
    """Where one more draw falls but for the risk: half of it below and half above, and what is left of one half to both.

    Whole numbers repeat: of the draws equal to the lower end none is left out, so less than half the risk may be below.
    """
    ordered = np.sort(draws)
    n = len(ordered)
    half = math.floor(risk / 2 * (n + 1) + 1e-9)
    low = ordered[half - 1]
    under = int(np.searchsorted(ordered, low))
    below = half if under == half - 1 else under
    above = math.floor(risk * (n + 1) + 1e-9) - below
    return float(low), float(ordered[n - above])


def _rising(bound: Floats) -> Floats:
    """The bound without its dips, which are chance: midway between the closest rising curves above and below it."""
    return (np.maximum.accumulate(bound) + np.minimum.accumulate(bound[::-1])[::-1]) / 2


def _crossing(values: Floats, nodes: Ints, bound: Floats, side: int) -> Floats:
    """The true count at which a rising bound meets each value; where it does so along a line, that line's end on `side`.

    Beyond the nodes the bound rises as fast as the count itself.
    """
    tilt = NEARLY / 10 * (nodes - nodes[0]) / (1.0 + nodes[-1] - nodes[0])  # so that no two are equal
    at = values + side * NEARLY / 5
    found = np.interp(at, bound + tilt, nodes.astype(float))
    found = np.where(at < bound[0], nodes[0] + (at - bound[0]), found)
    beyond: Floats = np.where(at > bound[-1] + tilt[-1], nodes[-1] + (at - bound[-1]), found)
    return beyond


def _sources(release: ReleaseLike, feature: str) -> list[_Source]:
    """The whole measurements of the feature itself and of finer ones."""
    dag, found = release.features, []
    for place, m in enumerate(release.measurements):
        if not _whole(dag, m) or m.variance is None:
            continue
        if m.feature == feature:
            found.append(_Source(place, None, np.sqrt(m.variance)))
        elif dag.graph.has_edge(m.feature, feature):
            leaves = m.feature == SINGLETON
            inside = dag.cells.element_of_cell[feature] if leaves else dag.map_elements(m.feature, feature)
            variance = _by_cell(dag, m.variance) if leaves else m.variance
            found.append(_Source(place, inside, np.sqrt(bincount(inside, variance, dag.size(feature)))))
    return found


def _answers(
    dag: FeatureDag,
    counts: Mapping[str, Ints],
    measured: Mapping[int, Measurement],
    sources: Mapping[str, Sequence[_Source]],
) -> dict[str, Floats]:
    """For each feature the published counts, and below them what each source says."""
    used = {s.place for several in sources.values() for s in several if s.inside is not None}
    by_cell = {p: _by_cell(dag, measured[p].values) for p in used if measured[p].feature == SINGLETON}
    made = {}
    for name, several in sources.items():
        sums = [
            measured[s.place].values
            if s.inside is None
            else bincount(s.inside, by_cell.get(s.place, measured[s.place].values), dag.size(name))
            for s in several
        ]
        made[name] = np.array([counts[name], *sums], dtype=float)
    return made


def _whole(dag: FeatureDag, m: Measurement) -> bool:
    return m.feature in dag and m.elements is None and len(m.values) == dag.size(m.feature)


def _by_cell(dag: FeatureDag, leaves: NDArray[Any]) -> Floats:
    """Leaves are added up once for all features: what tells elements apart tells cells apart."""
    return bincount(dag.cell_of_leaf, leaves, dag.cells.size)


def _types(dag: FeatureDag, feature: str) -> Ints:
    """The number of trip types in each element."""
    if feature == SINGLETON:
        return np.ones(dag.size(feature), dtype=np.int64)
    return dag.partition(feature).sizes


def _seeds(release: ReleaseLike, runs: int) -> list[int]:
    """Seeds that depend on what is published and on nothing else."""
    published = hashlib.sha256()
    for part in (release.index, release.value):
        published.update(np.ascontiguousarray(part, dtype="<i8").tobytes())
    key = published.digest()
    return [
        int.from_bytes(hashlib.sha256(key + run.to_bytes(8, "little")).digest()[:8], "little")
        for run in range(runs)
    ]


def _risk(confidence: float) -> float:
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence!r}, it must be a number between 0 and 1, such as 0.9")
    return 1.0 - confidence


def _runs(runs: int | None, risk: float) -> int:
    """So many that each tail of a single element's errors holds at least one of them."""
    least = math.ceil(round(2 / risk, 6)) - 1
    if least > MOST_RUNS:
        raise InputError(
            f"a confidence of {1 - risk:g} would take {least:,} simulations: ask for 0.999 at most"
        )
    if runs is None:
        return max(RUNS, least)
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < least:
        raise InputError(
            f"runs is {runs!r}: a confidence of {1 - risk:g} needs a whole number of at least {least}"
        )
    return runs


def _check_tables(release: ReleaseLike, truth: Mapping[str, Ints]) -> None:
    """Tables published on their own, and suppressed on their own, say more than the trips: those cannot stand in."""
    for name, counts in truth.items():
        if name in release.tables and not np.array_equal(release.tables[name], counts):
            raise InputError(
                f"the published trips do not add up to the published table {name!r}, so they cannot be simulated from: "
                "leave it out of features"
            )
