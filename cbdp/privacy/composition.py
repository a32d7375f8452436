"""What answers cost together, as trees that state their own proof."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any


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


Cost = Spend | Sequential | Parallel


def spends_of(cost: Cost) -> Iterator[Spend]:
    """The single answers that a composition is made of."""
    if isinstance(cost, Spend):
        yield cost
    else:
        for part in cost.parts:
            yield from spends_of(part)
