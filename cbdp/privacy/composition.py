"""What answers cost together, as trees that state their own proof.

A tree is paid in one of two currencies. Pure ε adds up over answers about the same data, and so does the ρ of zero-concentrated privacy
(Bun and Steinke 2016). A tree in ρ becomes a promise when it is `Stated`: ρ, and the ε that it gives at a δ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NoReturn

from cbdp.errors import BudgetError
from cbdp.privacy.accounting import epsilon_of, in_words, to_rho
from cbdp.privacy.laws.base import Currency


@dataclass(frozen=True)
class Spend:
    """One answer and what it cost."""

    what: str
    epsilon: Fraction
    delta: Fraction = Fraction(0)

    currency: ClassVar[Currency] = "epsilon"

    @property
    def rho(self) -> Fraction:
        """What a pure ε costs in ρ."""
        return _as_rho(self.epsilon, self.delta)

    def __str__(self) -> str:
        return f"{self.what}: {_price(self)}"


@dataclass(frozen=True)
class RhoSpend:
    """One answer with noise that is paid for in ρ. Alone it has no ε: a δ is chosen for all answers together."""

    what: str
    rho: Fraction

    currency: ClassVar[Currency] = "rho"
    delta: ClassVar[Fraction] = Fraction(0)

    @property
    def epsilon(self) -> Fraction:
        _refuse(self.rho)

    def __str__(self) -> str:
        return f"{self.what}: {_price(self)}"


@dataclass(frozen=True)
class Sequential:
    """Answers about the same data: what they cost adds up.

    Proof: docs/proofs/composition.md.

    >>> day = Sequential(tuple(Spend(f, Fraction(1, 5)) for f in "abcde"), "features")
    >>> print(day)
    5 features × 1/5, same data: 1
    >>> print(Parallel((day,) * 14, "days"))
    5 features × 1/5, same data: 1; 14 days disjoint: 1
    >>> print(Sequential((RhoSpend("a", Fraction(1, 4)), Spend("b", Fraction(1))), "answers"))
    2 answers: ρ 1/4 + 1, same data: ρ 3/4
    """

    parts: tuple[Part, ...]
    of: str = "answers"

    @property
    def currency(self) -> Currency:
        return _currency(self.parts)

    @property
    def epsilon(self) -> Fraction:
        if self.currency == "rho":
            _refuse(self.rho)
        return sum((p.epsilon for p in self.parts), Fraction(0))

    @property
    def delta(self) -> Fraction:
        return sum((p.delta for p in self.parts), Fraction(0))

    @property
    def rho(self) -> Fraction:
        """Of all parts; where all are pure, of the ε that they cost together."""
        if self.currency == "epsilon":
            return _as_rho(self.epsilon, self.delta)
        return sum((p.rho for p in self.parts), Fraction(0))

    def __str__(self) -> str:
        prices = [_price(p) for p in self.parts]
        if len(set(prices)) == 1:
            listed = f"{len(prices)} {self.of} × {prices[0]}"
        else:
            listed = f"{len(prices)} {self.of}: " + " + ".join(prices)
        return f"{_inner(self.parts)}{listed}, same data: {_price(self)}"


@dataclass(frozen=True)
class Parallel:
    """Answers about disjoint parts of the data: one trip is in one part, so the dearest part is the cost. Proof: docs/proofs/composition.md."""

    parts: tuple[Part, ...]
    of: str = "parts"

    @property
    def currency(self) -> Currency:
        return _currency(self.parts)

    @property
    def epsilon(self) -> Fraction:
        if self.currency == "rho":
            _refuse(self.rho)
        return max(p.epsilon for p in self.parts)

    @property
    def delta(self) -> Fraction:
        return max(p.delta for p in self.parts)

    @property
    def rho(self) -> Fraction:
        return max(p.rho for p in self.parts)

    def __str__(self) -> str:
        return f"{_inner(self.parts)}{len(self.parts)} {self.of} disjoint: {_price(self)}"


@dataclass(frozen=True)
class Stated:
    """What answers cost in ρ, and the (ε, δ) that is stated for it. The promise holds at every other δ of the curve as well.

    >>> print(Stated(Sequential(tuple(RhoSpend(f, Fraction(1, 10)) for f in "abcde"), "features"), Fraction(1, 10**6)))
    5 features × ρ 1/10, same data: ρ 1/2; so ε = 5.222 at δ = 1e-06
    """

    part: Part
    delta: Fraction

    currency: ClassVar[Currency] = "rho"

    @property
    def rho(self) -> Fraction:
        return self.part.rho

    @cached_property
    def epsilon(self) -> Fraction:
        """The least that is known at this δ, rounded up."""
        return epsilon_of(self.rho, self.delta)

    def __str__(self) -> str:
        return f"{self.part}; so ε = {in_words(self.epsilon)} at δ = {float(self.delta):.3g}"


Part = Spend | RhoSpend | Sequential | Parallel
Cost = Part | Stated


def _refuse(rho: Fraction) -> NoReturn:
    raise BudgetError(f"ρ = {rho} has an ε only together with a δ: state it as Stated(cost, delta)")


def _as_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    if delta:
        raise BudgetError(f"(ε, δ) = ({epsilon}, {delta}) has no ρ: only a pure ε has")
    return to_rho(epsilon)


def _currency(parts: Sequence[Part]) -> Currency:
    """That of the parts; a pure ε among parts in ρ enters as ε²/2."""
    return "rho" if any(p.currency == "rho" for p in parts) else "epsilon"


def _inner(parts: Sequence[Any]) -> str:
    """The proof of the parts, when they are compositions of one kind."""
    proofs = list(dict.fromkeys(str(p) for p in parts if not isinstance(p, Spend | RhoSpend)))
    return "".join(f"{proof}; " for proof in proofs)


def _price(cost: Part) -> str:
    if cost.currency == "rho":
        return f"ρ {cost.rho}"
    return str(cost.epsilon) if cost.delta == 0 else f"({cost.epsilon}, δ {cost.delta})"


def amount_of(cost: Cost) -> Fraction:
    """What something cost, in its own currency."""
    return cost.rho if cost.currency == "rho" else cost.epsilon


def part_of(cost: Cost) -> Part:
    """What can be composed further: a ρ without the (ε, δ) that is stated for it, which does not add up."""
    return cost.part if isinstance(cost, Stated) else cost


def spends_of(cost: Cost) -> Iterator[Spend | RhoSpend]:
    """The single answers that a composition is made of."""
    if isinstance(cost, Spend | RhoSpend):
        yield cost
    else:
        for part in (cost.part,) if isinstance(cost, Stated) else cost.parts:
            yield from spends_of(part)
