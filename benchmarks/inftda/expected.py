"""What is to be expected of both at each level, by least squares and without chance: standard errors from sizes and noise alone.

Counts are cut off at zero and shrunk in neither, so this is about levels whose counts are well above the noise. Those are the coarse ones,
where a release has a handful of errors and runs differ much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from benchmarks.inftda import ours
from benchmarks.inftda.demand import Demand, Level, levels
from benchmarks.inftda.rival import concentrated
from cbdp.features import TOTAL
from cbdp.privacy.expected_error import DemandFacts, expected_errors


def ratios(places: Demand, epsilons: Sequence[str]) -> dict[str, dict[Level, float]]:
    """Our standard error with the budget "levels" over the rival's, by ε and level; only the hierarchy is looked at.

    >>> from benchmarks.inftda.sets import small
    >>> found = ratios(small("small"), ["1"])["1"]
    >>> len(found), max(found.values()) < 0.7
    (8, True)
    """
    dag, depth = ours.features(places), places.depth
    facts = DemandFacts(ours.UNIT.sensitivity, public=(TOTAL,))
    theirs = ours.relative_errors([dag.size(name) for name in dag.features])
    named = {level: ours.name_of(level, depth) for level in levels(depth)[1:]}
    made = {}
    for epsilon in epsilons:
        own = expected_errors(dag, ours.level_shares(dag, Fraction(epsilon)), facts)
        noise = math.sqrt(2 * depth / concentrated(float(epsilon)))
        made[epsilon] = {at: own[name] / (noise * theirs[dag.size(name)]) for at, name in named.items()}
    return made
