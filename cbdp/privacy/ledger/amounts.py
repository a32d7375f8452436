"""What is charged: ε or ρ in whole units of 10⁻⁹ and δ in units of 10⁻¹⁸, so that sums are exact."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from cbdp.errors import InputError
from cbdp.privacy.ledger.covers import Covers, Part
from cbdp.privacy.numbers import Number, positive, probability

Currency = Literal["epsilon", "rho"]
SYMBOLS: dict[Currency, str] = {"epsilon": "ε", "rho": "ρ"}
NANO, ATTO = 10**9, 10**18
UNLIMITED = 10**30  # a total that no sum of charges comes near


@dataclass(frozen=True)
class Amount:
    """An amount of privacy in whole units: ε or ρ in 10⁻⁹, δ in 10⁻¹⁸. Printed in decimals.

    Proof: docs/proofs/ledger.md.

    >>> str(Amount(nano=500_000_000))
    '0.5'
    """

    nano: int = 0
    atto: int = 0
    currency: Currency = "epsilon"

    @classmethod
    def charge(cls, epsilon: Number, delta: Number = 0, *, currency: Currency = "epsilon") -> Amount:
        """The least amount that covers ε and δ; where ρ is counted, ε-DP is ε²/2 of it (Bun and Steinke 2016, Prop. 1.4).

        >>> print(Amount.charge("1/3"), Amount.charge(0.1), Amount.charge(2, "1e-6"), Amount.charge("0.3", currency="rho"))
        0.333333334 0.1 (2, δ 0.000001) ρ 0.045
        """
        given = positive(epsilon)
        return cls._up(given if currency == "epsilon" else given * given / 2, delta, currency)

    @classmethod
    def charge_rho(cls, rho: Number, delta: Number = 0) -> Amount:
        """The least amount that covers ρ.

        >>> print(Amount.charge_rho("1/3"))
        ρ 0.333333334
        """
        return cls._up(positive(rho, "rho"), delta, "rho")

    @classmethod
    def _up(cls, value: Fraction, delta: Number, currency: Currency) -> Amount:
        return cls(-(-value * NANO // 1), -(-probability(delta) * ATTO // 1), currency)

    @classmethod
    def limit(cls, cap: Number, delta: Number = 0, *, currency: Currency = "epsilon") -> Amount:
        """The greatest amount within a cap in this currency and δ.

        >>> print(Amount.limit("2/3"))
        0.666666666
        """
        nano = positive(cap, "cap") * NANO // 1
        if nano == 0:
            raise InputError(f"invalid cap {cap}: give an {SYMBOLS[currency]} of at least {decimal(1, 9)}")
        return cls(nano, probability(delta, "cap_delta") * ATTO // 1, currency)

    @classmethod
    def unlimited(cls, delta: Number = 0, *, currency: Currency = "epsilon") -> Amount:
        """No limit on the sum of all charges: windows of days limit them instead."""
        return cls(UNLIMITED, probability(delta, "cap_delta") * ATTO // 1, currency)

    @property
    def is_unlimited(self) -> bool:
        return self.nano > UNLIMITED // 2

    @property
    def value(self) -> Fraction:
        """ε or ρ, as the currency says."""
        return Fraction(self.nano, NANO)

    @property
    def epsilon(self) -> Fraction:
        return self._in("epsilon")

    @property
    def rho(self) -> Fraction:
        return self._in("rho")

    @property
    def delta(self) -> Fraction:
        return Fraction(self.atto, ATTO)

    def within(self, other: Amount) -> bool:
        self._common(other)
        return self.nano <= other.nano and self.atto <= other.atto

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.nano + other.nano, self.atto + other.atto, self._common(other))

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.nano - other.nano, self.atto - other.atto, self._common(other))

    def __str__(self) -> str:
        value = "unlimited" if self.is_unlimited else decimal(self.nano, 9)
        shown = value if self.currency == "epsilon" or self.is_unlimited else f"ρ {value}"
        return shown if self.atto == 0 else f"({shown}, δ {decimal(self.atto, 18)})"

    def _in(self, currency: Currency) -> Fraction:
        if self.currency != currency:
            raise InputError(f"{self} is an amount of {SYMBOLS[self.currency]}, not of {SYMBOLS[currency]}")
        return self.value

    def _common(self, other: Amount) -> Currency:
        """The currency of both; nothing at all is nothing in either."""
        if self.currency == other.currency or other == Amount():
            return self.currency
        if self == Amount():
            return other.currency
        raise InputError(f"{self} and {other} are of different currencies: they do not add up")


@dataclass(frozen=True)
class Charge:
    """Privacy reserved for one request; `head` is the hash of its entry, for the manifest.

    >>> charge = Charge("1", "a release", Amount(nano=10**9), "trips of March", head="ab12")
    >>> charge.request, str(charge.amount)
    ('a release', '1')
    """

    id: str
    request: str
    amount: Amount
    what: str
    head: str
    dataset: str = ""
    covers: Covers | None = None  # the days and the unit, where they are stated
    part: Part | None = None  # of a series

    @property
    def epsilon(self) -> Fraction:
        return self.amount.epsilon

    @property
    def delta(self) -> Fraction:
        return self.amount.delta


@dataclass(frozen=True)
class Finished:
    """A charge whose release was written: the SHA-256 of its manifest, and where it lies.

    >>> charge = Charge("1", "a release", Amount(nano=10**9), "trips of March", head="ab12")
    >>> Finished(charge, sha256="cd34", path="release").path
    'release'
    """

    charge: Charge
    sha256: str
    path: str


@dataclass(frozen=True)
class Spending:
    """What charges add up to, and how much of it went to runs that were never published.

    >>> made = Spending(spent=Amount(nano=2 * 10**9), unpublished=Amount(nano=5 * 10**8), releases=3)
    >>> str(made.spent), str(made.unpublished)
    ('2', '0.5')
    """

    spent: Amount = field(default_factory=Amount)
    unpublished: Amount = field(default_factory=Amount)
    releases: int = 0

    def with_charge(self, amount: Amount, *, published: bool) -> Spending:
        lost = self.unpublished if published else self.unpublished + amount
        return Spending(self.spent + amount, lost, self.releases + published)

    def __add__(self, other: Spending) -> Spending:
        lost = self.unpublished + other.unpublished
        return Spending(self.spent + other.spent, lost, self.releases + other.releases)


def decimal(units: int, digits: int) -> str:
    sign, whole = ("-" if units < 0 else ""), str(abs(units)).zfill(digits + 1)
    return f"{sign}{whole[:-digits]}.{whole[-digits:]}".rstrip("0").rstrip(".")
