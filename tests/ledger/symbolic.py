"""Whole numbers that stand for any value: the real code runs on them, and z3 says which way its comparisons can go.

`paths` runs a function once for every way through its comparisons that some values take, and yields what it did there with the
conditions under which it does so. What holds under these conditions on every path holds for all values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import z3


class Explorer:
    """The comparisons so far on one way through a program, and what they mean."""

    def __init__(self, rules: list[Any], course: list[bool]) -> None:
        self.solver = z3.SimpleSolver()
        self.solver.add(*rules)
        self.course, self.place = course, 0  # decisions to repeat, and how many of them were

    def decide(self, condition: Any) -> bool:
        if self.place == len(self.course):
            self.course.append(self._can(condition))  # true first, if it can be
        taken = self.course[self.place]
        self.place += 1
        self.solver.add(condition if taken else z3.Not(condition))
        return taken

    def _can(self, condition: Any) -> bool:
        return bool(self.solver.check(condition) == z3.sat)


_at_work: list[Explorer] = []


class Whole:
    """A whole number that is a formula of z3."""

    def __init__(self, formula: Any) -> None:
        self.formula = formula

    def __add__(self, other: Any) -> Whole:
        return Whole(self.formula + formula_of(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Whole:
        return Whole(self.formula - formula_of(other))

    def __rsub__(self, other: Any) -> Whole:
        return Whole(formula_of(other) - self.formula)

    def __mul__(self, other: Any) -> Whole:
        return Whole(self.formula * formula_of(other))

    __rmul__ = __mul__

    def __abs__(self) -> Whole:
        return self  # messages write amounts without their sign

    def __lt__(self, other: Any) -> bool:
        return _at_work[-1].decide(self.formula < formula_of(other))

    def __le__(self, other: Any) -> bool:
        return _at_work[-1].decide(self.formula <= formula_of(other))

    def __gt__(self, other: Any) -> bool:
        return _at_work[-1].decide(self.formula > formula_of(other))

    def __ge__(self, other: Any) -> bool:
        return _at_work[-1].decide(self.formula >= formula_of(other))

    def __eq__(self, other: object) -> bool:
        return _at_work[-1].decide(self.formula == formula_of(other))

    def __hash__(self) -> int:
        return id(self)

    def __str__(self) -> str:
        return "1"  # in messages


def formula_of(value: Any) -> Any:
    return value.formula if isinstance(value, Whole) else value


def paths(run: Callable[[], Any], rules: list[Any]) -> Iterator[tuple[Any, z3.Solver]]:
    """What `run` returns on each way through its comparisons, with a solver that knows under which conditions."""
    course: list[bool] = []
    while True:
        explorer = Explorer(rules, course)
        _at_work.append(explorer)
        try:
            result = run()
        finally:
            _at_work.pop()
        if explorer.solver.check() == z3.sat:
            yield result, explorer.solver
        while course and not course[-1]:  # both ways of this comparison were taken
            course.pop()
        if not course:
            return
        course[-1] = False
