"""How privacy is spent: exact fractions, and compositions that state their own proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from cbdp.errors import BudgetError, InputError

Number = int | float | str | Fraction | Decimal
Budget = str | Mapping[str, Any]

GEOMETRIC_RATIO = Fraction(1259921, 1000000)  # 2^(1/3) per level, after Cormode and others


def exact(value: Number, what: str = "epsilon") -> Fraction:
    """The number a person wrote: 0.1 is one tenth, not the float nearest to it.

    >>> exact(0.1), exact("1/3"), exact(2)
    (Fraction(1, 10), Fraction(1, 3), Fraction(2, 1))
    """
    if isinstance(value, bool):
        raise InputError(f"{what} is {value!r}, give a number")
    try:
        return Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)
    except (ValueError, TypeError, ZeroDivisionError, OverflowError):
        raise InputError(f"{what} is {value!r}, give a finite number") from None


def positive(value: Number, what: str = "epsilon") -> Fraction:
    number = exact(value, what)
    if number <= 0:
        raise InputError(f"{what} is {value}, it must be above 0")
    return number


def probability(value: Number, what: str = "delta") -> Fraction:
    number = exact(value, what)
    if not 0 <= number < 1:
        raise InputError(f"{what} is {value}, it must be at least 0 and below 1")
    return number


def split(levels: Sequence[str], epsilon: Fraction, budget: Budget = "uniform") -> dict[str, Fraction]:
    """Shares of ε for features listed from coarse to fine; they add up to ε exactly.

    >>> {name: str(e) for name, e in split(["total", "time", "singleton"], Fraction(1)).items()}
    {'total': '1/3', 'time': '1/3', 'singleton': '1/3'}
    """
    if not levels:
        raise InputError("there is nothing to spend a budget on: measure at least one feature")
    if isinstance(budget, Mapping):
        return _given(levels, epsilon, budget)
    if budget == "uniform":
        return dict.fromkeys(levels, epsilon / len(levels))
    if budget == "geometric":
        parts = [GEOMETRIC_RATIO**depth for depth in range(len(levels))]
        return {name: epsilon * part / sum(parts) for name, part in zip(levels, parts, strict=True)}
    raise InputError(
        f"unknown budget {budget!r}: use 'leaves', 'balanced', 'tables', 'uniform', 'geometric', "
        "or a mapping that sums to epsilon"
    )


def _given(levels: Sequence[str], epsilon: Fraction, budget: Mapping[str, Any]) -> dict[str, Fraction]:
    for name in budget:
        if name not in levels:
            raise InputError(f"a budget for {name!r}, which is not measured: there are {', '.join(levels)}")
    missing = [name for name in levels if name not in budget]
    if missing:
        raise InputError(f"no budget for {missing[0]!r}: name every measured feature")
    shares = {name: positive(budget[name], f"the budget of {name!r}") for name in levels}
    if sum(shares.values()) > epsilon:
        raise BudgetError(f"the budgets add up to {sum(shares.values())}, more than epsilon {epsilon}")
    if sum(shares.values()) < epsilon:
        raise InputError(
            f"the budgets add up to {sum(shares.values())}, less than epsilon {epsilon}: spend all of it"
        )
    return shares


@dataclass(frozen=True)
class Spend:
    """One answer and what it cost."""

    what: str
    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def __str__(self) -> str:
        return f"{self.what}: {_price(self.epsilon, self.delta)}"


@dataclass(frozen=True)
class Sequential:
    """Answers about the same data: what they cost adds up.

    >>> day = Sequential(tuple(Spend(f, Fraction(1, 5)) for f in "abcde"), "features")
    >>> print(day)
    5 features × 1/5, same data: 1
    >>> print(Parallel((day,) * 14, "days"))
    5 features × 1/5, same data: 1; 14 days disjoint: 1
    """

    parts: tuple[Spend | Sequential | Parallel, ...]
    of: str = "answers"

    @property
    def epsilon(self) -> Fraction:
        return sum((p.epsilon for p in self.parts), Fraction(0))

    @property
    def delta(self) -> Fraction:
        return sum((p.delta for p in self.parts), Fraction(0))

    def __str__(self) -> str:
        prices = [_price(p.epsilon, p.delta) for p in self.parts]
        if len(set(prices)) == 1:
            listed = f"{len(prices)} {self.of} × {prices[0]}"
        else:
            listed = f"{len(prices)} {self.of}: " + " + ".join(prices)
        return f"{_inner(self.parts)}{listed}, same data: {_price(self.epsilon, self.delta)}"


@dataclass(frozen=True)
class Parallel:
    """Answers about disjoint parts of the data: one trip is in one part, so the dearest part is the cost."""

    parts: tuple[Spend | Sequential | Parallel, ...]
    of: str = "parts"

    @property
    def epsilon(self) -> Fraction:
        return max(p.epsilon for p in self.parts)

    @property
    def delta(self) -> Fraction:
        return max(p.delta for p in self.parts)

    def __str__(self) -> str:
        return f"{_inner(self.parts)}{len(self.parts)} {self.of} disjoint: {_price(self.epsilon, self.delta)}"


def _inner(parts: Sequence[Any]) -> str:
    """The proof of the parts, when they are compositions of one kind."""
    proofs = list(dict.fromkeys(str(p) for p in parts if not isinstance(p, Spend)))
    return "".join(f"{proof}; " for proof in proofs)


def _price(epsilon: Fraction, delta: Fraction) -> str:
    return str(epsilon) if delta == 0 else f"({epsilon}, δ {delta})"
