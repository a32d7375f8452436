"""Linear algebra in fractions, for oracles that owe nothing to rounding."""

from __future__ import annotations

from fractions import Fraction

Rational = list[Fraction]


def eliminated(matrix: list[Rational], right: Rational) -> Rational:
    """A solution of a consistent linear system in fractions; what it leaves open is 0."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    n, pivots = len(right), []
    for column in range(n):
        at = next((i for i in range(len(pivots), n) if rows[i][column]), None)
        if at is None:
            continue
        rows[len(pivots)], rows[at] = rows[at], rows[len(pivots)]
        pivot = rows[len(pivots)]
        inverse = 1 / pivot[column]
        pivot[:] = [v * inverse for v in pivot]
        for row in rows:
            if row is not pivot and row[column]:
                factor = row[column]
                row[:] = [v - factor * p for v, p in zip(row, pivot, strict=True)]
        pivots.append(column)
    assert not any(row[-1] for row in rows[len(pivots) :]), "no answer has just these leaves above zero"
    found = [Fraction(0)] * n
    for row, column in zip(rows, pivots, strict=False):
        found[column] = row[-1]
    return found
