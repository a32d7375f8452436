"""Running totals under continual observation: a release in a series together with the sums that end in its period.

The sums are answered by a factorisation of the prefix-sum matrix: a binary tree (Dwork, Naor, Pitassi and
Rothblum 2010; Chan, Shi and Song 2011), or the square root of the matrix (Fichtenberger, Henzinger and Upadhyay 2023).
`cbdp.estimation.continual` combines them with the releases' own answers by generalised least squares.

Use `release_in_series` (what `cbdp series run` does) where every period is released and totals since the start are wanted besides: published
periods then add up to them. Use `RunningTotals` where the totals of one table are all that is wanted. Without either, totals are sums of the
releases, whose noise grows with the number of periods, not with its logarithm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from cbdp.arrays import Ints
from cbdp.counting import Counts
from cbdp.errors import InputError
from cbdp.estimation.continual import (
    GlsUpdate,
    gls_total,
    monotone_totals,
    running_total,
    total_deviation,
)
from cbdp.features import FeatureDag
from cbdp.measuring.answers import measure_sums
from cbdp.mechanisms.constraint_based import ConstraintBased
from cbdp.numbers import Number, positive
from cbdp.parts import did_you_mean
from cbdp.privacy.continual import STRATEGIES, Span, Strategy, TableNoiseCost
from cbdp.privacy.entropy import Entropy, SystemEntropy
from cbdp.privacy.measurement import Measurement, NoisyAnswer
from cbdp.privacy.noise import NOISE_DISTRIBUTIONS, NoiseDistribution
from cbdp.privacy.unit import Sensitivity, UnitLike, feature_sensitivity, unit_of
from cbdp.release import Release
from cbdp.release.series import RunningPart, RunningTable


@dataclass
class History:
    """One table in the releases of a span so far. `counts` are private: the true ones of every period."""

    counts: list[Ints] = field(default_factory=list, repr=False)
    sums: list[Ints] = field(default_factory=list, repr=False)  # noisy, published
    # each release's own noisy answer, published
    measured: list[Ints] = field(default_factory=list, repr=False)
    measured_variance: list[float] = field(default_factory=list, repr=False)
    published: list[Ints] = field(default_factory=list, repr=False)  # whole counts

    def add(self, counts: Ints, sums: Ints, measurement: Measurement, published: Ints) -> None:
        """One more release. What is published of it, and its true counts."""
        assert measurement.variance is not None
        self.counts.append(counts)
        self.sums.append(sums)
        self.measured.append(measurement.values)
        self.measured_variance.append(float(measurement.variance[0]))
        self.published.append(published)

    def __len__(self) -> int:
        return len(self.counts)


def release_in_series(
    mechanism: ConstraintBased,
    counts: Counts,
    span: Span,
    history: Mapping[str, History],
    entropy: Entropy | None = None,
) -> Release:
    """Measure the release and the sums that end with it, and finish it so that published periods add up to the running totals.

    Both charges, of the release and of the span, must have been made before.
    """
    source = entropy or SystemEntropy()
    if source.secure and not counts.secure:
        raise InputError("these counts were bounded by a seeded source: count the trips again for a release")
    answers = mechanism.measure(counts, source)
    tables = {}
    for name, paid in span.tables.items():
        before, true = history[name], counts.of(mechanism.features, name)
        sums = measure_sums(span.sums, [*before.counts, true], paid.law, source)
        tables[name] = _running_table(span, paid, before, sums, _measurement_of(answers, name))
    part = RunningPart(span.first, len(before) + 1, span.periods, span.strategy, span.request, tables)
    steering = replace(mechanism, running=part.steered)
    release = steering.finish(answers)
    return replace(release, secure=source.secure, running=part)


def _measurement_of(answers: list[NoisyAnswer], name: str) -> Measurement:
    for answer in answers:
        if isinstance(answer, Measurement) and answer.feature == name:
            return answer
    raise InputError(f"running totals of {name!r}, which is not measured: leave it out of series.running")


def _running_table(
    span: Span, paid: TableNoiseCost, before: History, sums: Ints, measurement: Measurement
) -> RunningTable:
    """The total that all answers tell, less what was published: as a weight of the own answer, and the rest."""
    assert measurement.variance is not None
    variances = [*before.measured_variance, float(measurement.variance[0])]
    now = gls_total(span.sums, paid.law.variance(), variances)
    earlier = gls_total(span.sums, paid.law.variance(), variances[:-1]) if len(before) else None
    answers = np.concatenate([*before.sums, sums])
    weight = float(now.own[-1])
    published = sum(before.published, np.zeros(len(measurement.values), dtype=np.int64))
    rest = now.sums @ answers - published
    if len(before):
        rest = rest + now.own[:-1] @ np.array(before.measured)
    steered = GlsUpdate(weight, rest, now.less(earlier).variance, paid.amount)
    return RunningTable(sums, published, steered, paid.law, now.variance**0.5)


# Running totals of one table alone, at one price for the whole series


@dataclass(frozen=True)
class RunningTotals:
    """Totals since the start, published after every period and never rewritten; spans are differences of them.

    `amount` is what all of it costs for what one unit does in one period: ρ with the law "gaussian", ε with "geometric". What
    a person does in several periods costs `price(window)`. Answers are measured when a period is over, from the counts of all periods
    so far; whoever has the answers can work the totals out again.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> year = cbdp.RunningTotals(features, "time", amount="1/2", periods=365)
    >>> year.periods, round(float(year.price(1)), 6), round(float(year.price(7)), 1)
    (365, 0.5, 18.1)
    """

    features: FeatureDag
    table: str
    amount: Number
    periods: int
    unit: UnitLike = "trip"
    law: str = "gaussian"
    strategy: str | None = None  # by default the square root with Gaussian noise, the binary tree with others

    def __post_init__(self) -> None:
        if self.table not in self.features:
            cure = did_you_mean(self.table, list(self.features.features))
            raise InputError(f"unknown table {self.table!r}: {cure}")
        object.__setattr__(self, "unit", unit_of(self.unit))
        object.__setattr__(self, "amount", positive(self.amount, self._kind.currency))
        if self.strategy is None:
            best = "square root" if self._kind.currency == "rho" else "binary tree"
            object.__setattr__(self, "strategy", best)
        if self.strategy not in STRATEGIES:
            cure = did_you_mean(str(self.strategy), list(STRATEGIES))
            raise InputError(f"unknown strategy {self.strategy!r}: {cure}")
        _ = self.sums  # refuses a wrong number of periods

    @property
    def _kind(self) -> type[NoiseDistribution]:
        return NOISE_DISTRIBUTIONS.get(self.law)

    @cached_property
    def sums(self) -> Strategy:
        """What is measured."""
        return STRATEGIES[str(self.strategy)](self.periods)

    @cached_property
    def noise(self) -> NoiseDistribution:
        """The noise of every answer."""
        return self._kind.calibrate(positive(self.amount), self.sums.change(self._change))

    @property
    def _change(self) -> Sensitivity:
        return feature_sensitivity(self.features, self.table, unit_of(self.unit))

    def price(self, window: int = 1) -> Fraction:
        """What a unit pays that takes part in so many periods in a row: ρ or ε."""
        return self.noise.cost(self.sums.change(self._change, window=window))

    def deviation(self, periods: int) -> float:
        """That of the noise of the total after so many periods, in trips."""
        return float(total_deviation(self.sums, periods) * self.noise.variance() ** 0.5)

    def measure(self, counts: Sequence[Counts], entropy: Entropy | None = None) -> Ints:
        """The noisy sums that end in the last of these periods. The only part that sees counts; its price is in `amount`."""
        for period in counts:
            if not period.universe.same_types(self.features.universe) or period.unit != self.unit:
                raise InputError(
                    f"counts of {period.universe!r} for {period.unit}: running totals are of "
                    f"{self.features.universe!r} for {self.unit}"
                )
        tables = [period.of(self.features, self.table) for period in counts]
        return measure_sums(self.sums, tables, self.noise, entropy or SystemEntropy())

    def totals(self, answers: Sequence[Ints]) -> list[Ints]:
        """The published totals after each period: whole numbers that never fall. Pure; more answers change no earlier total."""
        published: list[Ints] = []
        for period in range(1, len(answers) + 1):
            before = published[-1] if published else None
            published.append(monotone_totals(before, running_total(self.sums, answers[:period])))
        return published
