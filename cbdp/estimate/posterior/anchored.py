"""Features of few elements hold what leaves add up to.

How far sums of leaves are off is judged by how far they miss what was measured (shared.py). Of a feature of many elements that is
seen; of the total, or of a few periods, next to nothing is: one miss may be chance. And counts cannot be negative, so that noise of
fine tables moves their sums up. So a feature weighs more, the fewer its elements are; and the total is held to what all answers together say
of it. Leaves still decide where a feature's trips are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cbdp.estimate.posterior.settings import TUNING
from cbdp.features import TOTAL
from cbdp.solvers.problem import Problem, Term


def anchored(problem: Problem, total: float) -> Problem:
    """The program with more weight on features of few elements; `total` is the number of trips to be expected."""
    return replace(problem, terms=tuple(_anchored(term, total) for term in problem.terms))


def _anchored(term: Term, total: float) -> Term:
    weight = term.weight * (1 + TUNING.anchored / len(term.target))
    noisy = term.name == TOTAL and np.isfinite(weight).all()
    return replace(term, weight=weight, target=np.array([total]) if noisy else term.target)
