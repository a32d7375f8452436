"""A release in a series that keeps running totals: its own noisy answers, the sums that end in its period, and the tables that follow both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.estimate.running import Steered, Weighed, weighed
from cbdp.measuring.running import measure_sums
from cbdp.mechanisms.constraint_based import ConstraintBased
from cbdp.privacy.entropy import Entropy, SystemEntropy
from cbdp.privacy.measurement import Measurement, NoisyAnswer
from cbdp.privacy.running_price import PaidTable, Span
from cbdp.release import Release
from cbdp.release.running import RunningPart, RunningTable
from cbdp.trips import Counts


@dataclass
class History:
    """One table in the releases of a span so far. `counts` are private: the true ones of every period."""

    counts: list[Ints] = field(default_factory=list, repr=False)
    sums: list[Ints] = field(default_factory=list, repr=False)  # noisy, published
    own: list[Ints] = field(default_factory=list, repr=False)  # each release's own noisy answer, published
    own_variance: list[float] = field(default_factory=list, repr=False)
    published: list[Ints] = field(default_factory=list, repr=False)  # whole counts

    def add(self, counts: Ints, sums: Ints, own: Measurement, published: Ints) -> None:
        """One more release. What is published of it, and its true counts."""
        assert own.variance is not None
        self.counts.append(counts)
        self.sums.append(sums)
        self.own.append(own.values)
        self.own_variance.append(float(own.variance[0]))
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
        tables[name] = _running(span, paid, before, sums, _own(answers, name))
    part = RunningPart(span.first, len(before) + 1, span.periods, span.strategy, span.request, tables)
    steering = replace(mechanism, running=part.steered)
    made = steering.finish(answers)
    return replace(made, secure=source.secure, running=part)


def _own(answers: list[NoisyAnswer], name: str) -> Measurement:
    for answer in answers:
        if isinstance(answer, Measurement) and answer.feature == name:
            return answer
    raise InputError(f"running totals of {name!r}, which is not measured: leave it out of series.running")


def _running(span: Span, paid: PaidTable, before: History, sums: Ints, own: Measurement) -> RunningTable:
    """The total that all answers tell, less what was published: as a weight of the own answer, and the rest."""
    assert own.variance is not None
    variances = [*before.own_variance, float(own.variance[0])]
    now = weighed(span.sums, paid.law.variance(), variances)
    earlier: Weighed | None = weighed(span.sums, paid.law.variance(), variances[:-1]) if len(before) else None
    told = np.concatenate([*before.sums, sums])
    weight = float(now.own[-1])
    published = sum(before.published, np.zeros(len(own.values), dtype=np.int64))
    rest = now.sums @ told - published
    if len(before):
        rest = rest + now.own[:-1] @ np.array(before.own)
    steered = Steered(weight, rest, now.less(earlier).variance, paid.amount)
    return RunningTable(sums, published, steered, paid.law, now.variance**0.5)
