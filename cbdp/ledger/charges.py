"""What is charged and to whom: exact amounts of ε, ρ and δ, the scope of a charge, the owner of the account, and the price of a cost."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from cbdp.errors import InputError
from cbdp.numbers import Number, positive, probability
from cbdp.privacy.accounting import Cost
from cbdp.privacy.continual import MAX_PERIODS, STRATEGIES
from cbdp.privacy.noise import PrivacyMeasure
from cbdp.privacy.unit import Person, Unit

# Scope: the service days of a charge's rows, the unit that its promise protects, the part of a series that it pays


UNIT_PERIODS = ("release", "day", "week", "month")
UNIT_TRIP, UNIT_REPLACED_TRIP, UNIT_PERSON = "trip", "trip replaced", "person"
# calendar → periods of a unit that lie within one release; where releases are of days, each is a day
CALENDARS_WITHIN: Mapping[str, tuple[str, ...]] = {
    "": ("day",),
    "weekly": ("release", "day", "week"),
    "monthly": ("release", "day", "month"),
}


@dataclass(frozen=True)
class ChargeScope:
    """The service days that a release looks at, and what is protected in them.

    `disjoint_periods` (`apart` in files) says that every measured table tells the unit's periods apart, so that what one period changes is in other
    counts than what another changes, and that their noise is independent: then several periods of a person cost their sum also where ρ is counted.

    `strategy` names the sums over releases that a charge for running totals pays, of at most `periods` releases: several days of a
    person cost what these sums make of them, which is at most what a group of so many units costs. `calendar` says how long these releases
    are; each of them is a release of its own also where the unit is one release.

    >>> import datetime as dt
    >>> march = ChargeScope("person", per="day", max_trips=4, first=dt.date(2026, 3, 1), last=dt.date(2026, 3, 31))
    >>> (march.last - march.first).days + 1
    31
    """

    unit: str  # UNIT_TRIP, UNIT_REPLACED_TRIP or UNIT_PERSON
    per: str = "release"
    max_trips: int = 0  # of a person; 0 for a trip
    first: dt.date | None = None  # None: any day
    last: dt.date | None = None
    disjoint_periods: bool = False
    strategy: str = ""
    periods: int = 0
    calendar: str = ""  # weekly or monthly; else releases are of days
    days: str = ""  # how rows were given their service day, in words; "" in charges of earlier versions

    def __post_init__(self) -> None:
        if self.unit not in (UNIT_TRIP, UNIT_REPLACED_TRIP, UNIT_PERSON) or self.per not in UNIT_PERIODS:
            raise InputError(f"a charge cannot be for the unit {self.unit!r} per {self.per!r}")
        if (self.unit == UNIT_PERSON) != (self.max_trips > 0) or (
            self.unit != UNIT_PERSON and self.per != "release"
        ):
            raise InputError(f"a charge for {self.unit!r} cannot have max_trips = {self.max_trips}")
        if (self.first is None) != (self.last is None):
            raise InputError("a charge covers days from a first to a last: give both or neither")
        if self.first and self.last and self.last < self.first:
            raise InputError(f"a charge covers days to {self.last}, which is before its first {self.first}")
        if self.strategy or self.periods or self.calendar:
            self._check_releases()

    def _check_releases(self) -> None:
        """The price of running totals is that of releases, none of which cuts a period of the unit."""
        if (self.strategy or self.periods) and (
            self.strategy not in STRATEGIES or not 1 <= self.periods <= MAX_PERIODS
        ):
            raise InputError(f"a charge cannot be for {self.periods} periods of {self.strategy!r}")
        if self.calendar not in CALENDARS_WITHIN:
            raise InputError(f"a charge cannot be for a calendar that is {self.calendar!r}")
        fits = self.unit != UNIT_PERSON or self.per in CALENDARS_WITHIN[self.calendar]
        monday = self.per != "week" or (self.first is not None and self.first.weekday() == 0)
        if self.disjoint_periods or self.first is None or not fits or not monday:
            raise InputError(
                "running totals are charged for the days of whole releases, from a first to a last"
            )

    @classmethod
    def of(
        cls,
        unit: Unit,
        first: dt.date | None = None,
        last: dt.date | None = None,
        *,
        disjoint_periods: bool = False,
    ) -> ChargeScope:
        if isinstance(unit, Person):
            return cls(
                UNIT_PERSON, getattr(unit, "per", "release"), unit.max_trips, first, last, disjoint_periods
            )
        kind = UNIT_TRIP if unit.neighbours == "add-remove" else UNIT_REPLACED_TRIP
        return cls(kind, first=first, last=last, disjoint_periods=disjoint_periods)

    @classmethod
    def of_releases(cls, unit: Unit, first: dt.date, last: dt.date, calendar: str = "daily") -> ChargeScope:
        """Of the releases of a calendar between two days; one of a day protects one day of a person, whatever the unit calls it."""
        scope = cls.of(unit, first, last)
        if calendar != "daily":
            return replace(scope, calendar=calendar)
        return replace(scope, per="day") if scope.unit == UNIT_PERSON else scope

    def fields(self) -> dict[str, str | int | bool]:
        """As an entry states it. What is as usual is left out, so that there is one way to write it."""
        stated: dict[str, str | int | bool] = {"unit": self.unit}
        if self.unit == UNIT_PERSON:
            stated |= {"max_trips": self.max_trips, "per": self.per}
        if self.first and self.last:
            stated |= {"first": self.first.isoformat(), "last": self.last.isoformat()}
        if self.strategy:
            stated |= {"strategy": self.strategy, "periods": self.periods}
        if self.calendar:
            stated["calendar"] = self.calendar
        if self.days:
            stated["days"] = self.days
        return stated | ({"apart": True} if self.disjoint_periods else {})

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> ChargeScope | None:
        """What an entry states; None if it states nothing, as those of earlier versions."""
        if "unit" not in fields:
            if fields.keys() & SCOPE_FIELDS.keys():
                raise InputError("days or periods of no unit")
            return None
        first, last = (dt.date.fromisoformat(fields[n]) if n in fields else None for n in ("first", "last"))
        per, most = fields.get("per", "release"), fields.get("max_trips", 0)
        sums = fields.get("strategy", ""), fields.get("periods", 0), fields.get("calendar", "")
        days = fields.get("days", "")
        scope = cls(fields["unit"], per, most, first, last, fields.get("apart", False), *sums, days)
        if scope.fields() != {n: v for n, v in fields.items() if n in SCOPE_FIELDS}:
            raise InputError("it is not written as a ledger writes it")
        return scope


@dataclass(frozen=True)
class SeriesPart:
    """Which release of which series a charge pays: the series' name and version, the period, and the stage.

    >>> SeriesPart("daily", 1, "2026-03-02", "final", "city").period
    '2026-03-02'
    """

    series: str
    version: int
    period: str
    stage: str
    shape: str  # hash of universe and features, which are the same for all releases of a version

    def fields(self) -> dict[str, str | int | bool]:
        return {
            "series": self.series,
            "version": self.version,
            "period": self.period,
            "stage": self.stage,
            "shape": self.shape,
        }

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> SeriesPart | None:
        stated = {name: fields[name] for name in PART_FIELDS if name in fields}
        if not stated:
            return None
        if len(stated) != len(PART_FIELDS):
            raise InputError("a part of a series is stated in full or not at all")
        return cls(**stated)


# the fields of an entry that state them, with their types
SCOPE_FIELDS: Mapping[str, type] = {
    "unit": str,
    "max_trips": int,
    "per": str,
    "first": str,
    "last": str,
    "apart": bool,
    "strategy": str,
    "periods": int,
    "calendar": str,
    "days": str,
}
PART_FIELDS: Mapping[str, type] = {"series": str, "version": int, "period": str, "stage": str, "shape": str}


# Amounts: ε or ρ in whole units of 10⁻⁹ and δ in units of 10⁻¹⁸, so that sums are exact


SYMBOLS: dict[PrivacyMeasure, str] = {"epsilon": "ε", "rho": "ρ"}
NANO_UNITS, ATTO_UNITS = 10**9, 10**18  # units in 1 of ε or ρ, and in 1 of δ
UNLIMITED_UNITS = 10**30  # a total that no sum of charges comes near


@dataclass(frozen=True)
class Amount:
    """An amount of privacy in whole units: ε or ρ in 10⁻⁹, δ in 10⁻¹⁸. Printed in decimals.

    Proof: docs/proofs/ledger.md.

    >>> str(Amount(nano=500_000_000))
    '0.5'
    """

    nano: int = 0
    atto: int = 0
    currency: PrivacyMeasure = "epsilon"

    @classmethod
    def charge(cls, epsilon: Number, delta: Number = 0, *, currency: PrivacyMeasure = "epsilon") -> Amount:
        """The least amount that covers ε and δ; where ρ is counted, ε-DP is ε²/2 of it (Bun and Steinke 2016,
        Proposition 1.4), and (ε, δ) approximately, with δ (Lemma 8.8).

        >>> print(Amount.charge("1/3"), Amount.charge(0.1), Amount.charge(2, "1e-6"), Amount.charge("0.3", currency="rho"))
        0.333333334 0.1 (2, δ 0.000001) ρ 0.045
        """
        loss = positive(epsilon)
        return cls._up(loss if currency == "epsilon" else loss * loss / 2, delta, currency)

    @classmethod
    def charge_rho(cls, rho: Number) -> Amount:
        """The least amount that covers ρ. It has no δ: what δ a group has follows from ε, and ρ has none.

        >>> print(Amount.charge_rho("1/3"))
        ρ 0.333333334
        """
        return cls._up(positive(rho, "rho"), 0, "rho")

    @classmethod
    def _up(cls, value: Fraction, delta: Number, currency: PrivacyMeasure) -> Amount:
        return cls(-(-value * NANO_UNITS // 1), -(-probability(delta) * ATTO_UNITS // 1), currency)

    @classmethod
    def limit(cls, cap: Number, delta: Number = 0, *, currency: PrivacyMeasure = "epsilon") -> Amount:
        """The greatest amount within a cap in this currency and δ.

        >>> print(Amount.limit("2/3"))
        0.666666666
        """
        nano = positive(cap, "cap") * NANO_UNITS // 1
        if nano == 0:
            raise InputError(
                f"invalid cap {cap}: give an {SYMBOLS[currency]} of at least {decimal_text(1, 9)}"
            )
        return cls(nano, probability(delta, "cap_delta") * ATTO_UNITS // 1, currency)

    @classmethod
    def unlimited(cls, delta: Number = 0, *, currency: PrivacyMeasure = "epsilon") -> Amount:
        """No limit on the sum of all charges: windows of days limit them instead."""
        return cls(UNLIMITED_UNITS, probability(delta, "cap_delta") * ATTO_UNITS // 1, currency)

    @property
    def is_unlimited(self) -> bool:
        return self.nano > UNLIMITED_UNITS // 2

    @property
    def value(self) -> Fraction:
        """ε or ρ, as the currency says."""
        return Fraction(self.nano, NANO_UNITS)

    @property
    def epsilon(self) -> Fraction:
        return self._in("epsilon")

    @property
    def rho(self) -> Fraction:
        return self._in("rho")

    @property
    def delta(self) -> Fraction:
        return Fraction(self.atto, ATTO_UNITS)

    def within(self, other: Amount) -> bool:
        self._common(other)
        return self.nano <= other.nano and self.atto <= other.atto

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.nano + other.nano, self.atto + other.atto, self._common(other))

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.nano - other.nano, self.atto - other.atto, self._common(other))

    def __str__(self) -> str:
        value = "unlimited" if self.is_unlimited else decimal_text(self.nano, 9)
        shown = value if self.currency == "epsilon" or self.is_unlimited else f"ρ {value}"
        return shown if self.atto == 0 else f"({shown}, δ {decimal_text(self.atto, 18)})"

    def _in(self, currency: PrivacyMeasure) -> Fraction:
        if self.currency != currency:
            raise InputError(f"{self} is an amount of {SYMBOLS[self.currency]}, not of {SYMBOLS[currency]}")
        return self.value

    def _common(self, other: Amount) -> PrivacyMeasure:
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
    covers: ChargeScope | None = None  # the days and the unit, where they are stated
    part: SeriesPart | None = None  # of a series

    @property
    def epsilon(self) -> Fraction:
        return self.amount.epsilon

    @property
    def delta(self) -> Fraction:
        return self.amount.delta


@dataclass(frozen=True)
class FinishedCharge:
    """A charge whose release was written: the SHA-256 of its manifest, and where it lies.

    >>> charge = Charge("1", "a release", Amount(nano=10**9), "trips of March", head="ab12")
    >>> FinishedCharge(charge, sha256="cd34", path="release").path
    'release'
    """

    charge: Charge
    sha256: str
    path: str


@dataclass(frozen=True)
class TotalSpent:
    """What charges add up to, and how much of it went to runs that were never published.

    >>> total = TotalSpent(spent=Amount(nano=2 * 10**9), unpublished=Amount(nano=5 * 10**8), releases=3)
    >>> str(total.spent), str(total.unpublished)
    ('2', '0.5')
    """

    spent: Amount = field(default_factory=Amount)
    unpublished: Amount = field(default_factory=Amount)
    releases: int = 0

    def with_charge(self, amount: Amount, *, published: bool) -> TotalSpent:
        lost = self.unpublished if published else self.unpublished + amount
        return TotalSpent(self.spent + amount, lost, self.releases + published)

    def __add__(self, other: TotalSpent) -> TotalSpent:
        lost = self.unpublished + other.unpublished
        return TotalSpent(self.spent + other.spent, lost, self.releases + other.releases)


def decimal_text(units: int, digits: int) -> str:
    sign, whole = ("-" if units < 0 else ""), str(abs(units)).zfill(digits + 1)
    return f"{sign}{whole[:-digits]}.{whole[-digits:]}".rstrip("0").rstrip(".")


# The owner: whose privacy a ledger accounts for


@dataclass(frozen=True)
class AccountOwner:
    """The riders of one data set, or riders whose trips several data sets hold: those share one cap.

    >>> print(AccountOwner("may"), AccountOwner.of("may", "oyster cards"), sep="; ")
    data set 'may'; the riders 'oyster cards'
    """

    name: str
    riders: bool = False  # False: the name is that of a data set

    @classmethod
    def of(cls, dataset: str, riders: str | None = None) -> AccountOwner:
        return cls(dataset) if riders is None else cls(riders, riders=True)

    @property
    def kind(self) -> str:
        """The field that names it, in an entry and in a manifest."""
        return "riders" if self.riders else "dataset"

    def json(self) -> dict[str, str]:
        return {self.kind: self.name}

    def __str__(self) -> str:
        return f"{'the riders' if self.riders else 'data set'} {self.name!r}"

    def refusal_of(self, requested: AccountOwner) -> str:
        """Why a ledger of this owner cannot be charged for another, and what to do."""
        if self.riders:
            cure = f'if these trips are theirs, write riders = "{self.name}"; if not, name another ledger'
        elif requested.riders:
            cure = "name another ledger: one for riders holds all their data sets from its first charge on"
        else:
            cure = "name another ledger, or, where the same people ride in both, create one for their riders"
        return f"belongs to {self}, not to {requested}: {cure}"


# The price of a cost in the currency of a ledger


def measure_of(cost: Cost) -> PrivacyMeasure:
    return cost.currency


def reserve_arguments(cost: Cost) -> dict[str, Any]:
    """The arguments by which `Ledger.reserve` charges a cost."""
    return {"rho": cost.rho} if cost.currency == "rho" else {"epsilon": cost.epsilon, "delta": cost.delta}


def amount_charged(cost: Cost, currency: PrivacyMeasure) -> Amount:
    if cost.currency == "epsilon":
        return Amount.charge(cost.epsilon, cost.delta, currency=currency)
    if currency == "epsilon":
        raise InputError(
            'the ledger counts ε, and this law of noise costs ρ: write currency = "rho" and create a ledger of its own, or '
            "choose a law that costs ε"
        )
    return Amount.charge_rho(cost.rho)
