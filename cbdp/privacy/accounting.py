"""Privacy accounting: what answers cost in pure ε, (ε, δ) or ρ (zCDP), how costs compose and convert, and the guarantee that they add up to.

Costs are trees that state their own proof. A tree is paid in one of two currencies: pure ε adds up over answers about the same data, and so does the
ρ of zero-concentrated privacy (Bun and Steinke 2016, Lemma 2.3). A tree in ρ becomes a promise by an `EpsilonDeltaStatement`: ρ, and the ε that it
gives at a δ. ρ-zCDP implies (ε, δ)-differential privacy for every ε > 0 with

    δ = min over α > 1 of exp((α − 1)(αρ − ε)) / (α − 1) · (1 − 1/α)^α

(Canonne, Kamath and Steinke 2020, Corollary 13). Every α gives a valid δ; the logarithm of δ is convex in α, with slope
(2α − 1)ρ − ε + ln(1 − 1/α), so that bisection finds the best one. A slip in α could make a statement loose and never false; what the last
digits of floats may add is added on top.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar, NoReturn

from cbdp.errors import BudgetError, InputError
from cbdp.numbers import Number, positive, probability
from cbdp.privacy.noise import PrivacyMeasure
from cbdp.privacy.unit import Unit

STATED_DIGITS = 9  # significant digits of an ε or a ρ that is stated
MAX_STATED_LOSS = 10**6  # ρ and ε beyond which nothing is promised to speak of
MIN_STATED_EPSILON = 1e-9  # what is stated where any ε above 0 would do at that δ
MIN_STATED_DELTA = Fraction(1, 10**300)  # near the least float, whose logarithm is taken
CURVE_DELTAS = tuple(
    Fraction(1, 10**k) for k in (3, 4, 5, 6, 7, 8, 9, 10, 12)
)  # δ at which a curve is stated


@dataclass(frozen=True)
class DPCost:
    """One answer and what it cost."""

    what: str
    epsilon: Fraction
    delta: Fraction = Fraction(0)

    currency: ClassVar[PrivacyMeasure] = "epsilon"

    @property
    def rho(self) -> Fraction:
        """What a pure ε costs in ρ."""
        return _as_rho(self.epsilon, self.delta)

    def __str__(self) -> str:
        return f"{self.what}: {_plain_cost(self)}"


@dataclass(frozen=True)
class ZCDPCost:
    """One answer with noise that is paid for in ρ. Alone it has no ε: a δ is chosen for all answers together."""

    what: str
    rho: Fraction

    currency: ClassVar[PrivacyMeasure] = "rho"
    delta: ClassVar[Fraction] = Fraction(0)

    @property
    def epsilon(self) -> Fraction:
        _refuse_rho(self.rho)

    def __str__(self) -> str:
        return f"{self.what}: {_plain_cost(self)}"


@dataclass(frozen=True)
class Sequential:
    """Answers about the same data: what they cost adds up (Dwork and Roth 2014, Theorem 3.16; in ρ Bun and Steinke 2016, Lemma 2.3).

    Proof: docs/proofs/composition.md.

    >>> day = Sequential(tuple(DPCost(f, Fraction(1, 5)) for f in "abcde"), "features")
    >>> print(day)
    5 features × 1/5, same data: 1
    >>> print(Parallel((day,) * 14, "days"))
    5 features × 1/5, same data: 1; 14 days disjoint: 1
    >>> print(Sequential((ZCDPCost("a", Fraction(1, 4)), DPCost("b", Fraction(1))), "answers"))
    2 answers: ρ 1/4 + 1, same data: ρ 3/4
    """

    parts: tuple[Composable, ...]
    of: str = "answers"

    @property
    def currency(self) -> PrivacyMeasure:
        return _currency(self.parts)

    @property
    def epsilon(self) -> Fraction:
        if self.currency == "rho":
            _refuse_rho(self.rho)
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
        prices = [_plain_cost(p) for p in self.parts]
        if len(set(prices)) == 1:
            listed = f"{len(prices)} {self.of} × {prices[0]}"
        else:
            listed = f"{len(prices)} {self.of}: " + " + ".join(prices)
        return f"{_nested_proof(self.parts)}{listed}, same data: {_plain_cost(self)}"


@dataclass(frozen=True)
class Parallel:
    """Answers about disjoint parts of the data (parallel composition, McSherry 2009): the dearest part is the cost.

    It holds where each unit lies in one part and is added or removed. A unit that is replaced may leave one part for another, so that both cost: then
    noise must be for both changes, as l1 = 2 of `Trip("replace")` is.

    Proof: docs/proofs/composition.md.
    """

    parts: tuple[Composable, ...]
    of: str = "parts"

    @property
    def currency(self) -> PrivacyMeasure:
        return _currency(self.parts)

    @property
    def epsilon(self) -> Fraction:
        if self.currency == "rho":
            _refuse_rho(self.rho)
        return max(p.epsilon for p in self.parts)

    @property
    def delta(self) -> Fraction:
        return max(p.delta for p in self.parts)

    @property
    def rho(self) -> Fraction:
        return max(p.rho for p in self.parts)

    def __str__(self) -> str:
        return f"{_nested_proof(self.parts)}{len(self.parts)} {self.of} disjoint: {_plain_cost(self)}"


@dataclass(frozen=True)
class EpsilonDeltaStatement:
    """What answers cost in ρ, and the (ε, δ) that is stated for it. The promise holds at every other δ of the curve as well.

    >>> print(EpsilonDeltaStatement(Sequential(tuple(ZCDPCost(f, Fraction(1, 10)) for f in "abcde"), "features"), Fraction(1, 10**6)))
    5 features × ρ 1/10, same data: ρ 1/2; so ε = 5.222 at δ = 1e-06
    """

    part: Composable
    delta: Fraction

    currency: ClassVar[PrivacyMeasure] = "rho"

    @property
    def rho(self) -> Fraction:
        return self.part.rho

    @cached_property
    def epsilon(self) -> Fraction:
        """The least that Corollary 13 gives at this δ, rounded up."""
        return epsilon_of(self.rho, self.delta)

    def __str__(self) -> str:
        return f"{self.part}; so ε = {readable_epsilon(self.epsilon)} at δ = {float(self.delta):.3g}"


Composable = DPCost | ZCDPCost | Sequential | Parallel
Cost = Composable | EpsilonDeltaStatement


@dataclass(frozen=True)
class PrivacyGuarantee:
    """What a mechanism promises: ε and δ, or ρ, for a unit of privacy, with the argument; or that it promises nothing."""

    unit: Unit
    cost: Cost
    holds: bool = True
    caveat: str = ""

    def __str__(self) -> str:
        if not self.holds:
            return f"not differentially private for any ε: {self.caveat}"
        kind = "ε-DP" if self.cost.delta == 0 else "(ε, δ)-DP"
        kind = "ρ-zCDP" if self.cost.currency == "rho" else kind
        return f"{kind} for {self.unit}: {self.cost}"


def cost_amount(cost: Cost) -> Fraction:
    """What something cost, in its own currency."""
    return cost.rho if cost.currency == "rho" else cost.epsilon


def composable(cost: Cost) -> Composable:
    """What can be composed further: a ρ without the (ε, δ) that is stated for it, which does not add up."""
    return cost.part if isinstance(cost, EpsilonDeltaStatement) else cost


def single_costs(cost: Cost) -> Iterator[DPCost | ZCDPCost]:
    """The single answers that a composition is made of."""
    if isinstance(cost, DPCost | ZCDPCost):
        yield cost
    else:
        for part in (cost.part,) if isinstance(cost, EpsilonDeltaStatement) else cost.parts:
            yield from single_costs(part)


# Statements: ρ-zCDP as (ε, δ), and back, always rounded to the safe side


def pure_to_rho(epsilon: Number) -> Fraction:
    """What pure ε-differential privacy costs in ρ: ε²/2 (Bun and Steinke 2016, Proposition 1.4).

    Proof: docs/proofs/composition.md.

    >>> pure_to_rho(1)
    Fraction(1, 2)
    """
    return positive(epsilon) ** 2 / 2


def delta_of(rho: Number, epsilon: Number) -> float:
    """The δ that Corollary 13 gives for ρ-zCDP at this ε (Canonne, Kamath and Steinke 2020), rounded up.

    Proof: docs/proofs/accounting.md.

    >>> f"{delta_of(0.5, 5.25):.3g}"
    '8.69e-07'
    """
    r, e = _checked_loss(rho, "rho"), _checked_loss(epsilon, "epsilon")
    return min(1.0, math.nextafter(math.exp(min(0.0, _log_delta(r, e))), 1.0))


def epsilon_of(rho: Number, delta: Number) -> Fraction:
    """The least ε at which Corollary 13 gives this δ for ρ-zCDP (the inverse of `delta_of`), rounded up to nine digits.

    Proof: docs/proofs/accounting.md.

    >>> float(epsilon_of(0.5, 1e-6))
    5.22153445
    """
    return _least_epsilon(_checked_loss(rho, "rho"), _log_of(delta))


@lru_cache(
    maxsize=4096
)  # what a release costs is stated in its manifest, on its pages and in the ledger, and each of them is checked
def _least_epsilon(r: float, log_delta: float) -> Fraction:
    low, high = (
        0.0,
        r + 2 * math.sqrt(r * -log_delta) + 1e-12,
    )  # Bun and Steinke 2016, Proposition 1.3: looser, and so enough
    while _log_delta(r, high) > log_delta:  # rounding aside, it never happens
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if high - low < 1e-13 * high:
            break
        low, high = (low, middle) if _log_delta(r, middle) <= log_delta else (middle, high)
    stated = _rounded_to_digits(max(high, MIN_STATED_EPSILON), up=True)
    while _log_delta(r, float(stated)) > log_delta:
        stated = _next_stated(stated, up=True)
    return stated


def rho_for(epsilon: Number, delta: Number) -> Fraction:
    """The largest ρ for which Corollary 13 gives (ε, δ) (the inverse of `delta_of`), rounded down to nine digits.

    Proof: docs/proofs/accounting.md.

    >>> float(rho_for(1, 1e-6))
    0.0243559703
    """
    e, log_delta = _checked_loss(epsilon, "epsilon"), _log_of(delta)
    low, high = 0.0, e  # ρ = ε would need δ of about 1
    while _log_delta(high, e) <= log_delta:
        low, high = high, 2 * high
    for _ in range(2000):
        middle = (low + high) / 2
        if middle in (low, high) or high - low < 1e-13 * high:
            break
        low, high = (middle, high) if _log_delta(middle, e) <= log_delta else (low, middle)
    stated = _rounded_to_digits(low, up=False)
    while stated > 0 and _log_delta(float(stated), e) > log_delta:
        stated = _next_stated(stated, up=False)
    if stated <= 0:
        raise InputError(f"epsilon {epsilon} with delta {delta} leaves nothing to spend: give a larger one")
    return stated


def epsilon_delta_curve(
    rho: Number, deltas: Sequence[Fraction] = CURVE_DELTAS
) -> tuple[tuple[Fraction, Fraction], ...]:
    """Pairs (ε, δ), all of which hold at once: ρ-zCDP promises the whole curve.

    Proof: docs/proofs/accounting.md.

    >>> [(round(float(epsilon), 2), float(delta)) for epsilon, delta in epsilon_delta_curve("1/2", [Fraction(1, 1000), Fraction(1, 10**6)])]
    [(3.54, 0.001), (5.22, 1e-06)]
    """
    return tuple((epsilon_of(rho, delta), delta) for delta in deltas)


def readable_epsilon(epsilon: Fraction, digits: int = 4) -> str:
    """An ε with few digits, rounded up: what people read is never below what is promised.

    >>> readable_epsilon(Fraction("5.22143")), readable_epsilon(Fraction(2)), readable_epsilon(Fraction("1234.51"))
    ('5.222', '2', '1235')
    """
    unit = Fraction(10) ** (math.floor(math.log10(float(epsilon))) - digits + 1)
    return f"{float(math.ceil(epsilon / unit) * unit):.{digits}g}"


# Helpers


def _refuse_rho(rho: Fraction) -> NoReturn:
    raise BudgetError(
        f"ρ = {rho} has an ε only together with a δ: state it as EpsilonDeltaStatement(cost, delta)"
    )


def _as_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    if delta:
        raise BudgetError(f"(ε, δ) = ({epsilon}, {delta}) has no ρ: only a pure ε has")
    return pure_to_rho(epsilon)


def _currency(parts: Sequence[Composable]) -> PrivacyMeasure:
    """That of the parts; a pure ε among parts in ρ enters as ε²/2."""
    return "rho" if any(p.currency == "rho" for p in parts) else "epsilon"


def _nested_proof(parts: Sequence[Composable]) -> str:
    """The proof of the parts, when they are compositions of one kind."""
    proofs = list(dict.fromkeys(str(p) for p in parts if not isinstance(p, DPCost | ZCDPCost)))
    return "".join(f"{proof}; " for proof in proofs)


def _plain_cost(cost: Composable) -> str:
    if cost.currency == "rho":
        return f"ρ {cost.rho}"
    return str(cost.epsilon) if cost.delta == 0 else f"({cost.epsilon}, δ {cost.delta})"


def _checked_loss(value: Number, what: str) -> float:
    number = positive(value, what)
    if number > MAX_STATED_LOSS:
        raise InputError(f"{what} is {value}, which promises nothing: give at most {MAX_STATED_LOSS:,}")
    return float(number)


def _log_of(delta: Number) -> float:
    number = probability(delta)
    if number < MIN_STATED_DELTA:
        raise InputError(f"delta is {delta}: ρ is stated with a delta above 0, like 1e-6")
    # rounded down, by more than the last digit of the float
    return math.log(float(number)) - 1e-13 * (1 - math.log(float(number)))


def _log_delta(rho: float, epsilon: float) -> float:
    """The logarithm of δ at the best α, with what rounding may hide on top."""
    if not rho:
        return -math.inf
    # of α − 1; at the upper end, u, the slope is positive: 2uρ is above ε + √2ρ, and ln(1 + 1/u) below √2ρ
    low, high = math.log(1e-15), math.log(epsilon / (2 * rho) + 1 / math.sqrt(2 * rho) + 1)
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if _log_delta_slope(math.exp(middle), rho, epsilon) > 0 else (middle, high)
    return min(_log_delta_at(math.exp(u), rho, epsilon) for u in (low, high))


def _log_delta_slope(u: float, rho: float, epsilon: float) -> float:
    return (2 * u + 1) * rho - epsilon - math.log1p(1 / u)


def _log_delta_at(u: float, rho: float, epsilon: float) -> float:
    """Of α = 1 + u."""
    terms = (u * (1 + u) * rho, -u * epsilon, -math.log(u), -(1 + u) * math.log1p(1 / u))
    return math.fsum(terms) + 1e-14 * (1 + sum(map(abs, terms)))


def _last_digit(value: Fraction | float) -> Fraction:
    """One of the last digit that is stated."""
    return Fraction(10) ** (math.floor(math.log10(float(value))) - STATED_DIGITS + 1)


def _rounded_to_digits(value: float, *, up: bool) -> Fraction:
    unit = _last_digit(value)
    whole = Fraction(value) / unit
    return (math.ceil(whole) if up else math.floor(whole)) * unit


def _next_stated(value: Fraction, *, up: bool) -> Fraction:
    return value + _last_digit(value) * (1 if up else -1)


__all__ = ["delta_of", "epsilon_delta_curve", "epsilon_of", "pure_to_rho", "readable_epsilon", "rho_for"]
