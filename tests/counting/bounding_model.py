"""What bounding and linking do to rows, written once for numbers and for symbols: run on rows, or given to z3 to look for neighbours that break a claim.

Rows are in the order of their flat numbers. That is without loss of generality: rows of one group with the same flat number can change places
without changing any pair (number, flat number). `Numbers` and `Symbols` say how "and", "or" and counting are written in either world; tickets are arbitrary
in the second and SHA-256 in the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import z3


class Numbers:
    """Plain Python."""

    @staticmethod
    def both(*inputs: Any) -> Any:
        return all(inputs)

    @staticmethod
    def either(*inputs: Any) -> Any:
        return any(inputs)

    @staticmethod
    def many(inputs: Sequence[Any]) -> Any:
        return sum(map(bool, inputs))

    @staticmethod
    def fewer(inputs: Sequence[Any], than: int) -> Any:
        return sum(map(bool, inputs)) < than


class Symbols:
    """Formulas of z3."""

    both, either = staticmethod(z3.And), staticmethod(z3.Or)

    @staticmethod
    def many(inputs: Sequence[Any]) -> Any:
        return z3.Sum([z3.If(one, 1, 0) for one in inputs]) if inputs else z3.IntVal(0)

    @staticmethod
    def fewer(inputs: Sequence[Any], than: int) -> Any:
        return z3.AtMost(*inputs, than - 1) if than <= len(inputs) else z3.BoolVal(True)


def least(
    groups: Sequence[Any], alive: Sequence[Any], most: int, ticket: Callable[[Any, Any], Any], logic: Any
) -> list[Any]:
    """Of each group the rows with the least tickets: one stage of `cbdp.counting.bounding.bounding_steps`.

    A row's number counts the rows of its group up to it; its ticket is a function of the group and the number.
    """

    def together(i: int, k: int) -> Any:
        return logic.both(alive[k], groups[i] == groups[k])

    places = range(len(groups))
    numbers = [logic.many([together(i, k) for k in range(i)]) + 1 for i in places]
    drawn = [ticket(groups[i], numbers[i]) for i in places]
    result = []
    for i in places:
        sooner = [
            logic.both(
                together(i, k), logic.either(drawn[k] < drawn[i], logic.both(drawn[k] == drawn[i], k < i))
            )
            for k in places
            if k != i
        ]
        result.append(logic.both(alive[i], logic.fewer(sooner, most)))
    return result


@dataclass(frozen=True)
class Tap:
    """A tap of somebody; taps are in the order in which linking sees them: by time, tap-offs first, then by place."""

    there: Any
    person: Any
    period: Any
    enters: Any
    time: Any


def linked(taps: Sequence[Tap], within: int, logic: Any, *, periods: bool) -> dict[tuple[int, int], Any]:
    """Whether tap i and the later tap k make a trip: k is the person's next tap, i enters, k leaves, soon enough, in one period of the unit."""
    result = {}
    for i, one in enumerate(taps):
        for k in range(i + 1, len(taps)):
            other = taps[k]
            between = [logic.both(taps[j].there, taps[j].person == one.person) for j in range(i + 1, k)]
            result[i, k] = logic.both(
                one.there,
                other.there,
                one.person == other.person,
                one.enters,
                other.enters == False,  # noqa: E712 - a formula
                other.time - one.time <= within,
                logic.fewer(between, 1),
                *([one.period == other.period] if periods else []),
            )
    return result
