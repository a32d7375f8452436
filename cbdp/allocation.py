"""Which part of ε goes to leaves and which to tables, decided before any data is seen."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from cbdp.features import SINGLETON

LEAVES = {
    "leaves": Fraction(4, 5),  # the tables get enough to tell what to expect of each leaf
    "balanced": Fraction(2, 5),
    "tables": Fraction(3, 20),  # of the paper's five features each table then gets more than its fifth
}
"""What the leaves get of ε; the tables share the rest evenly."""


def named(levels: Sequence[str], epsilon: Fraction, budget: str) -> dict[str, Fraction]:
    """Shares of ε for a budget that is named after what it serves.

    >>> {name: str(e) for name, e in named(["total", "time", "singleton"], Fraction(1), "balanced").items()}
    {'total': '3/10', 'time': '3/10', 'singleton': '2/5'}
    """
    tables = [name for name in levels if name != SINGLETON]
    if not tables or SINGLETON not in levels:
        return dict.fromkeys(levels, epsilon / len(levels))
    own = epsilon * LEAVES[budget]
    return {name: own if name == SINGLETON else (epsilon - own) / len(tables) for name in levels}
