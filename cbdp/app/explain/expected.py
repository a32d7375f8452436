"""What somebody who reads a table will see: how far its average count is off, as a range, and what that is good for.

The range of a count goes by the same model as expected errors (`cbdp.privacy.budget.errors`), on the safe side: the noise of a count once all tables
agree, with no credit for shrinking, or what shrinking takes away from a count of this size, whichever is more. `python -m benchmarks planned`
compares both with simulated releases. The page of `cbdp plan` works out the same numbers in the browser.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from cbdp.app.explain.numbers import facts_of
from cbdp.app.plan.facts import ModelledMechanism, PlannedRelease, is_modelled
from cbdp.arrays import Floats
from cbdp.privacy.budget import DemandFacts
from cbdp.privacy.budget.errors import Model, model
from cbdp.report.uses import GOOD, Use, average_count, use_of

UNKNOWN = 100.0  # the count of an example, where nobody says how many trips there are
TRIES = 100  # of a search that ends after a few


@dataclass(frozen=True)
class ExpectedTable:
    """What is to be expected of a published table."""

    feature: str
    error: float  # of a count in trips, root mean square over all counts
    count: float  # its average count
    half: int  # how far it may be off, at the plan's confidence
    use: Use | None  # None: nobody says how many trips there are, so that no average is known
    good: int = 1  # the least count that is within 20 %

    @property
    def low(self) -> int:
        return max(0, math.floor(self.count) - self.half)

    @property
    def high(self) -> int:
        return math.ceil(self.count) + self.half

    @property
    def relative(self) -> float:
        return self.half / self.count


def expected(plan: PlannedRelease) -> tuple[ExpectedTable, ...]:
    """Of each table, by the model of errors; nothing where the mechanism has none."""
    mechanism = plan.mechanism
    if not is_modelled(mechanism):
        return ()
    return expected_of(mechanism, facts_of(plan), plan.confidence)


def expected_of(
    mechanism: ModelledMechanism, facts: DemandFacts, confidence: float
) -> tuple[ExpectedTable, ...]:
    """The same of a mechanism, from what is public about the trips."""
    of, precision = modelled(mechanism, facts)
    noise, errors = of.reconciled(precision), np.sqrt(of.errors(precision))
    made = []
    for n, name in enumerate(of.names):
        count, known = typical(of, n, facts), name in of.public
        half = 0 if known else margin(of, n, float(noise[n]), count, confidence)
        error = 0.0 if known else float(errors[n])
        use = use_of(half / count) if known or of.signals[n] is not None else None
        good = 1 if known else least_good(of, n, float(noise[n]), confidence)
        made.append(ExpectedTable(name, error, count, half, use, good))
    return tuple(made)


def modelled(mechanism: ModelledMechanism, facts: DemandFacts) -> tuple[Model, Floats]:
    """The model of a mechanism's errors, and the precision of what it measures."""
    given = {a.feature: a.share for a in mechanism.answers()}
    known = tuple(mechanism.public or ())
    stated = replace(facts, public=known, law=mechanism.law, changes=mechanism.changes())
    of = model(mechanism.features, list(given), mechanism.amount, stated)
    part = np.array([float(share / mechanism.amount) for share in given.values()])
    return of, of.precision(part)


def margins(of: Model, feature: int, noise: float, counts: Floats, confidence: float) -> Floats:
    """How far counts of these sizes may be off: by the noise, or by what shrinking takes away from them, whichever is more."""
    signal, variance = of.signals[feature], np.full(counts.shape, noise)
    if signal is not None:
        variance = np.maximum(variance, signal.risk(counts**2, variance))
    made: Floats = np.ceil(reach(confidence) * np.sqrt(variance))
    return made


def margin(of: Model, feature: int, noise: float, count: float, confidence: float) -> int:
    """How far one count may be off."""
    return int(margins(of, feature, noise, np.array([count]), confidence)[0])


def least_good(of: Model, feature: int, noise: float, confidence: float) -> int:
    """The least count that is within 20 %: from there on noise hardly grows with the count."""
    count = 1
    for _ in range(TRIES):
        half = margin(of, feature, noise, float(count), confidence)
        if half <= GOOD * count:
            break
        count = math.ceil(half / GOOD)
    return count


def typical(of: Model, feature: int, facts: DemandFacts) -> float:
    """The average count, to two digits; of the total, all trips."""
    if of.signals[feature] is None or facts.trips is None:
        return UNKNOWN
    return average_count(float(facts.trips), int(of.strata.sizes[feature]))


def reach(confidence: float) -> float:
    """How many standard deviations hold so often: of normal errors, or of Laplace noise that stands alone, whichever is more.

    >>> round(reach(0.9), 3), round(reach(0.99), 3)
    (1.645, 3.256)
    """
    return max(NormalDist().inv_cdf((1 + confidence) / 2), -math.log(1 - confidence) / math.sqrt(2))


def amount_text(value: float) -> str:
    """An error in trips as `check` and the page of `plan` print it.

    >>> amount_text(0.40123), amount_text(8.3828), amount_text(1234.5), amount_text(1e-5)
    ('0.401', '8.38', '1,234', '< 0.001')
    """
    if 0 < value < 0.001:
        return "< 0.001"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
