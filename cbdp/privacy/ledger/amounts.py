"""What is charged: ε in whole units of 10⁻⁹ and δ in units of 10⁻¹⁸, so that sums are exact."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from cbdp.errors import InputError
from cbdp.privacy.numbers import Number, positive, probability

NANO, ATTO = 10**9, 10**18


@dataclass(frozen=True)
class Amount:
    """An amount of privacy in whole units: ε in 10⁻⁹, δ in 10⁻¹⁸. Printed in decimals."""

    nano: int = 0
    atto: int = 0

    @classmethod
    def charge(cls, epsilon: Number, delta: Number = 0) -> Amount:
        """The least amount that covers ε and δ.

        >>> print(Amount.charge("1/3"), Amount.charge(0.1), Amount.charge(2, "1e-6"))
        0.333333334 0.1 (2, δ 0.000001)
        """
        return cls(-(-positive(epsilon) * NANO // 1), -(-probability(delta) * ATTO // 1))

    @classmethod
    def limit(cls, epsilon: Number, delta: Number = 0) -> Amount:
        """The greatest amount within ε and δ.

        >>> print(Amount.limit("2/3"))
        0.666666666
        """
        nano = positive(epsilon, "cap") * NANO // 1
        if nano == 0:
            raise InputError(f"invalid cap {epsilon}: give an ε of at least {_decimal(1, 9)}")
        return cls(nano, probability(delta, "cap_delta") * ATTO // 1)

    @property
    def epsilon(self) -> Fraction:
        return Fraction(self.nano, NANO)

    @property
    def delta(self) -> Fraction:
        return Fraction(self.atto, ATTO)

    def within(self, other: Amount) -> bool:
        return self.nano <= other.nano and self.atto <= other.atto

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.nano + other.nano, self.atto + other.atto)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.nano - other.nano, self.atto - other.atto)

    def __str__(self) -> str:
        epsilon = _decimal(self.nano, 9)
        return epsilon if self.atto == 0 else f"({epsilon}, δ {_decimal(self.atto, 18)})"


@dataclass(frozen=True)
class Charge:
    """Privacy reserved for one request; `head` is the hash of its entry, for the manifest."""

    id: str
    request: str
    amount: Amount
    what: str
    head: str
    dataset: str = ""

    @property
    def epsilon(self) -> Fraction:
        return self.amount.epsilon

    @property
    def delta(self) -> Fraction:
        return self.amount.delta


@dataclass(frozen=True)
class Finished:
    """A charge whose release was written: the SHA-256 of its manifest, and where it lies."""

    charge: Charge
    sha256: str
    path: str


@dataclass(frozen=True)
class Spending:
    """What charges add up to, and how much of it went to runs that were never published."""

    spent: Amount = field(default_factory=Amount)
    unpublished: Amount = field(default_factory=Amount)
    releases: int = 0

    def with_charge(self, amount: Amount, *, published: bool) -> Spending:
        lost = self.unpublished if published else self.unpublished + amount
        return Spending(self.spent + amount, lost, self.releases + published)

    def __add__(self, other: Spending) -> Spending:
        lost = self.unpublished + other.unpublished
        return Spending(self.spent + other.spent, lost, self.releases + other.releases)


def _decimal(units: int, digits: int) -> str:
    sign, whole = ("-" if units < 0 else ""), str(abs(units)).zfill(digits + 1)
    return f"{sign}{whole[:-digits]}.{whole[-digits:]}".rstrip("0").rstrip(".")
