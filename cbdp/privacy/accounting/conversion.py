"""Zero-concentrated privacy (ρ-zCDP) stated as (ε, δ), and back, always rounded to the safe side.

ρ-zCDP implies (ε, δ)-differential privacy for every ε > 0 with

    δ = min over α > 1 of exp((α − 1)(αρ − ε)) / (α − 1) · (1 − 1/α)^α

(Canonne, Kamath and Steinke 2020, Corollary 13). Every α gives a valid δ; the logarithm of δ is convex in α, with slope
(2α − 1)ρ − ε + ln(1 − 1/α), so that bisection finds the best one. A slip in α could make a statement loose and never false; what the last
digits of floats may add is added on top.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from cbdp.errors import InputError
from cbdp.privacy.numbers import Number, positive, probability

DIGITS = 9  # of what is stated
LARGEST = 10**6  # ρ and ε beyond which nothing is promised to speak of
LEAST_EPSILON = 1e-9  # stated where that δ alone says as much
LEAST_DELTA = Fraction(1, 10**300)
CURVE = tuple(Fraction(1, 10**k) for k in (3, 4, 5, 6, 7, 8, 9, 10, 12))  # δ at which a curve is stated


def to_rho(epsilon: Number) -> Fraction:
    """What pure ε-differential privacy costs in ρ: ε²/2 (Bun and Steinke 2016, Proposition 1.4).

    Proof: docs/proofs/composition.md.

    >>> to_rho(1)
    Fraction(1, 2)
    """
    return positive(epsilon) ** 2 / 2


def delta_of(rho: Number, epsilon: Number) -> float:
    """The least δ that ρ-zCDP is known to give at this ε, rounded up.

    Proof: docs/proofs/accounting.md.

    >>> f"{delta_of(0.5, 5.25):.3g}"
    '8.69e-07'
    """
    r, e = _within(rho, "rho"), _within(epsilon, "epsilon")
    return min(1.0, math.nextafter(math.exp(min(0.0, _log_delta(r, e))), 1.0))


def epsilon_of(rho: Number, delta: Number) -> Fraction:
    """The least ε at which ρ-zCDP is known to give this δ, rounded up to nine digits.

    Proof: docs/proofs/accounting.md.

    >>> float(epsilon_of(0.5, 1e-6))
    5.22153445
    """
    r, log_delta = _within(rho, "rho"), _log_of(delta)
    low, high = 0.0, r + 2 * math.sqrt(r * -log_delta) + 1e-12  # Bun's and Steinke's looser bound is enough
    while _log_delta(r, high) > log_delta:  # rounding aside, it never happens
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if high - low < 1e-13 * high:
            break
        low, high = (low, middle) if _log_delta(r, middle) <= log_delta else (middle, high)
    stated = _rounded(max(high, LEAST_EPSILON), up=True)
    while _log_delta(r, float(stated)) > log_delta:
        stated = _next(stated, up=True)
    return stated


def rho_for(epsilon: Number, delta: Number) -> Fraction:
    """The largest ρ that is known to give (ε, δ), rounded down to nine digits.

    Proof: docs/proofs/accounting.md.

    >>> float(rho_for(1, 1e-6))
    0.0243559703
    """
    e, log_delta = _within(epsilon, "epsilon"), _log_of(delta)
    low, high = 0.0, e  # ρ = ε would need δ of about 1
    while _log_delta(high, e) <= log_delta:
        low, high = high, 2 * high
    for _ in range(2000):
        middle = (low + high) / 2
        if middle in (low, high) or high - low < 1e-13 * high:
            break
        low, high = (middle, high) if _log_delta(middle, e) <= log_delta else (low, middle)
    stated = _rounded(low, up=False)
    while stated > 0 and _log_delta(float(stated), e) > log_delta:
        stated = _next(stated, up=False)
    if stated <= 0:
        raise InputError(f"epsilon {epsilon} with delta {delta} leaves nothing to spend: give a larger one")
    return stated


def curve(rho: Number, deltas: Sequence[Fraction] = CURVE) -> tuple[tuple[Fraction, Fraction], ...]:
    """Pairs (ε, δ), all of which hold at once: ρ-zCDP promises the whole curve.

    Proof: docs/proofs/accounting.md.

    >>> [(round(float(epsilon), 2), float(delta)) for epsilon, delta in curve("1/2", [Fraction(1, 1000), Fraction(1, 10**6)])]
    [(3.54, 0.001), (5.22, 1e-06)]
    """
    return tuple((epsilon_of(rho, delta), delta) for delta in deltas)


def in_words(epsilon: Fraction, digits: int = 4) -> str:
    """An ε with few digits, rounded up: what people read is never below what is promised.

    >>> in_words(Fraction("5.22143")), in_words(Fraction(2)), in_words(Fraction("1234.51"))
    ('5.222', '2', '1235')
    """
    unit = Fraction(10) ** (math.floor(math.log10(float(epsilon))) - digits + 1)
    return f"{float(math.ceil(epsilon / unit) * unit):.{digits}g}"


def _within(value: Number, what: str) -> float:
    number = positive(value, what)
    if number > LARGEST:
        raise InputError(f"{what} is {value}, which promises nothing: give at most {LARGEST:,}")
    return float(number)


def _log_of(delta: Number) -> float:
    number = probability(delta)
    if number < LEAST_DELTA:
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
        low, high = (low, middle) if _slope(math.exp(middle), rho, epsilon) > 0 else (middle, high)
    return min(_log_delta_at(math.exp(u), rho, epsilon) for u in (low, high))


def _slope(u: float, rho: float, epsilon: float) -> float:
    return (2 * u + 1) * rho - epsilon - math.log1p(1 / u)


def _log_delta_at(u: float, rho: float, epsilon: float) -> float:
    """Of α = 1 + u."""
    terms = (u * (1 + u) * rho, -u * epsilon, -math.log(u), -(1 + u) * math.log1p(1 / u))
    return math.fsum(terms) + 1e-14 * (1 + sum(map(abs, terms)))


def _unit(value: Fraction | float) -> Fraction:
    """One of the last digit that is stated."""
    return Fraction(10) ** (math.floor(math.log10(float(value))) - DIGITS + 1)


def _rounded(value: float, *, up: bool) -> Fraction:
    unit = _unit(value)
    whole = Fraction(value) / unit
    return (math.ceil(whole) if up else math.floor(whole)) * unit


def _next(value: Fraction, *, up: bool) -> Fraction:
    return value + _unit(value) * (1 if up else -1)
