"""Whole parts of ε, dealt out so that the worst of some ratios is least, then the second worst, and so on.

A part is moved from one feature to another as long as that helps, first in large steps and in the end one by one. There are several valleys
(a table may be bought by itself, or with the finer ones that add up to it), so the search begins in each. It is all whole numbers and
comparisons to nine digits: the same facts give the same parts on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import combinations, permutations

import numpy as np

from cbdp.arrays import Floats, Ints

Judged = Callable[
    [Ints], Floats
]  # splits (rows of whole parts) → the logarithms of what is to be small, one column each

FEW = 5  # features of which every selection is tried
DIGITS = 9  # of a logarithm: less is no difference


def least_worst(judged: Judged, units: int, least: Ints) -> Ints:
    """The split of so many parts, none below its least, whose worst value is smallest."""
    found = [_descended(judged, start, least) for start in _starts(units, least)]
    best = found[_best(judged, np.array(found))]
    while True:
        further = [_descended(judged, start, least) for start in _without_one(best, least)]
        place = _best(judged, np.array([best, *further]))
        if not place:
            return best
        best = further[place - 1]


def _starts(units: int, least: Ints) -> Iterator[Ints]:
    """What can be dealt out, evenly on any of the features; where these are many, on one of them, all, or all but one."""
    many, spare = len(least), units - int(least.sum())
    sizes = range(1, many + 1) if many <= FEW else (1, many - 1, many)
    for chosen in (of for size in sizes for of in combinations(range(many), size)):
        start = least.copy()
        start[list(chosen)] += _even(spare, len(chosen))
        yield start


def _without_one(at: Ints, least: Ints) -> Iterator[Ints]:
    """What each feature has beyond its least in turn dealt to the others, by what they have."""
    for own in np.flatnonzero(at > least):
        others = np.where(np.arange(len(at)) == own, 0, at - least)
        spare = int(at[own] - least[own])
        dealt = spare * np.cumsum(others) // max(1, int(others.sum()))
        if others.any():
            yield least + others + np.diff(dealt, prepend=0)


def _even(parts: int, many: int) -> Ints:
    made: Ints = parts // many + (np.arange(many) < parts % many)
    return made


def _descended(judged: Judged, start: Ints, least: Ints) -> Ints:
    at, step = start, 1 << max(0, int(start.sum()) // 4).bit_length()
    while step:
        tried = np.vstack([at, _moves(at, step, least)])
        best = _best(judged, tried)
        at, step = tried[best], step if best else step // 2
    return at


def _moves(at: Ints, step: int, least: Ints) -> Ints:
    """Every split where one feature gives a step to another, two to one, or one to two."""
    tried: Ints = at + step * _exchanges(len(at))
    allowed: Ints = tried[(tried >= least).all(axis=1)]
    return allowed


@lru_cache(maxsize=32)
def _exchanges(many: int) -> Ints:
    own = np.eye(many, dtype=np.int64)
    simple = [own[b] - own[a] for a, b in permutations(range(many), 2)]
    double = [
        2 * own[c] - own[a] - own[b]
        for a, b in combinations(range(many), 2)
        for c in range(many)
        if c not in (a, b)
    ]
    return np.array([*simple, *double, *(-d for d in double)], dtype=np.int64).reshape(-1, many)


def _best(judged: Judged, splits: Ints) -> int:
    """The row whose values, largest first, come first in order; of equals the first row."""
    values = -np.sort(-np.round(judged(splits), DIGITS), axis=1)
    return int(np.lexsort(values.T[::-1])[0])
