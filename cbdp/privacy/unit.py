"""What is protected, and how much one unit of it changes the counts: units of privacy, sensitivity, and the private quantile that may choose the bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol
from weakref import WeakKeyDictionary

from cbdp.errors import InputError
from cbdp.features import FeatureDag
from cbdp.numbers import Number, positive, probability
from cbdp_features.contribution import contribution_structure

NEIGHBOURING_RELATIONS = ("add-remove", "replace")
RELEASE = "release"  # the period of a person who is protected in all of a release at once
PERIODS = ("day", "week", "month", RELEASE)  # of a person
PERSON_KEYS = {"person", "max_trips", "per", "apart"}  # of a person in a configuration
MAX_TRIPS_CANDIDATES = tuple(range(1, 101))  # public candidates for `max_trips`


@dataclass(frozen=True)
class Trip:
    """One trip is protected: neighbouring data sets differ by one trip added or removed, or by one replaced by another.

    >>> Trip().sensitivity, Trip("replace").sensitivity
    (1, 2)
    """

    neighbours: str = "add-remove"

    per: ClassVar[str] = RELEASE
    apart: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        if self.neighbours not in NEIGHBOURING_RELATIONS:
            raise InputError(
                f"unknown neighbours {self.neighbours!r}: use {' or '.join(map(repr, NEIGHBOURING_RELATIONS))}"
            )

    @property
    def sensitivity(self) -> int:
        """How much one unit can change a partition's counts in total."""
        return 1 if self.neighbours == "add-remove" else 2

    @property
    def l0(self) -> int:
        """How many of a partition's counts one unit can change."""
        return self.sensitivity

    @property
    def linf(self) -> int:
        """How much one unit can add to a single count."""
        return 1

    def __str__(self) -> str:
        return "one trip, added or removed" if self.sensitivity == 1 else "one trip, replaced by another"


@dataclass(frozen=True)
class Person:
    """One person is protected: whether they travelled in a period at all and, if so, where and when.

    The period is the whole release, or a service day, a week (from Monday on) or a month: neighbours differ in all that one person does in
    one period. At most `max_trips` trips of each person in each period are counted, chosen at random by the engine. With `apart`, the
    name of a dimension (say "time"), at most one of them in each of its values, of each day where the universe tells days apart: then a
    person's trips cannot pile up in one count of a feature that tells those values apart. `bought` says how `max_trips` was chosen, where the
    data had a say in it and that was paid for.

    >>> print(Person("card", 4))
    one person with at most 4 trips, added or removed
    >>> print(Person("card", 4, per="day", apart="time"))
    one day of one person with at most 4 trips, kept apart by time, added or removed
    """

    column: str
    max_trips: int
    per: str = RELEASE
    apart: str | None = None
    bought: PrivateQuantile | None = None

    def __post_init__(self) -> None:
        if isinstance(self.max_trips, bool) or not isinstance(self.max_trips, int) or self.max_trips < 1:
            raise InputError(f"max_trips is {self.max_trips!r}, it must be a whole number of at least 1")
        if self.per not in PERIODS:
            raise InputError(f"a person is protected per {self.per!r}: use {', '.join(map(repr, PERIODS))}")
        if self.apart is not None and not (isinstance(self.apart, str) and self.apart):
            raise InputError(f"trips are kept apart by {self.apart!r}: name a dimension, say 'time'")

    @property
    def sensitivity(self) -> int:
        """How much one unit can change a partition's counts in total."""
        return self.max_trips

    @property
    def l0(self) -> int:
        """How many of a partition's counts one unit can change."""
        return self.max_trips

    @property
    def linf(self) -> int:
        """How much one unit can add to a single count."""
        return self.max_trips

    @property
    def period(self) -> str:
        """The period in words that follow a number of trips: " a day", or nothing for the whole release."""
        return "" if self.per == RELEASE else f" a {self.per}"

    def __str__(self) -> str:
        whose = "one person" if self.per == RELEASE else f"one {self.per} of one person"
        apart = "" if self.apart is None else f", kept apart by {self.apart}"
        paid = (
            ""
            if self.bought is None
            else f" ({self.max_trips} was bought for ε = {self.bought.epsilon} more)"
        )
        return f"{whose} with at most {self.max_trips} trips{paid}{apart}, added or removed"


Unit = Trip | Person
UnitLike = Unit | str | Mapping[str, object]  # what `unit_of` understands


def unit_of(stated: object) -> Unit:
    """A unit from "trip", {"person": column, "max_trips": m}, perhaps with "per" and "apart", or itself.

    >>> unit_of({"person": "card_id", "max_trips": 4, "per": "day"})
    Person(column='card_id', max_trips=4, per='day', apart=None, bought=None)
    """
    if isinstance(stated, Trip | Person):
        return stated
    if stated == "trip":
        return Trip()
    if isinstance(stated, Mapping) and {"person", "max_trips"} <= set(stated) <= PERSON_KEYS:
        return Person(stated["person"], stated["max_trips"], stated.get("per", RELEASE), stated.get("apart"))
    raise InputError(
        f"unknown unit of privacy {stated!r}: use 'trip' or {{'person': column, 'max_trips': m}}, with 'per' and 'apart' if wanted"
    )


# Sensitivity
#
# A person's counted trips of one period add a vector x of whole numbers to a feature's counts. All of x adds up to at most k = `max_trips`, so the counts
# change by k in all, and where nothing else can be said, one count may change by k: x·x ≤ k². With `apart` a person has at most one trip in each slot, so
# that a count which holds g slots changes by at most g. Fill the counts that hold the most slots first, up to k trips: every x that is
# possible is weakly majorised by that vector, and x·x, a sum of increasing convex functions, is greatest there (Marshall, Olkin and Arnold 2011, 3.C.1.b).


@dataclass(frozen=True)
class Sensitivity:
    """The most by which the counts of one feature differ between neighbouring data sets: one unit is added, removed or (`Trip("replace")`) replaced."""

    l1: int  # all counts together
    l2_squared: int  # their squares together: the Euclidean length, squared
    l0: int  # how many counts
    linf: int  # a single count

    def __post_init__(self) -> None:
        if min(self.l1, self.l2_squared, self.l0, self.linf) < 1:
            raise InputError(f"{self}: each of the numbers must be at least 1")


class ContributionFacts(Protocol):
    """What a feature tells apart of one person's trips in one period, as `cbdp_features.contribution` finds it."""

    @property
    def elements(self) -> int: ...  # how many counts there are
    @property
    def slots(self) -> int | None: ...  # of a period; None where trips are not kept apart
    @property
    def in_one(self) -> Sequence[int]: ...  # how many of them counts hold, the largest first
    @property
    def periods(self) -> bool: ...  # whether no count holds trips of two periods


def sensitivity(unit: Unit, tells: ContributionFacts | None = None) -> Sensitivity:
    """How much one unit can change the counts of a feature; of a feature of which nothing is known, the worst.

    Proof: docs/proofs/counting.md and docs/proofs/sensitivity.md.

    >>> sensitivity(Trip()), sensitivity(Trip("replace"))
    (Sensitivity(l1=1, l2_squared=1, l0=1, linf=1), Sensitivity(l1=2, l2_squared=2, l0=2, linf=1))
    >>> sensitivity(Person("card", 4))
    Sensitivity(l1=4, l2_squared=16, l0=4, linf=4)
    """
    if isinstance(unit, Trip):
        both = 1 if unit.neighbours == "add-remove" else 2
        return Sensitivity(both, both, both, 1)
    most = unit.max_trips
    if tells is None:
        return Sensitivity(most, most**2, most, most)
    if unit.apart is None:
        return Sensitivity(most, most**2, min(most, tells.elements), most)
    if tells.slots is None or not tells.in_one:
        raise InputError(f"trips are kept apart by {unit.apart!r}: say how many slots there are")
    most = min(most, tells.slots)
    piles = _majorant(most, tells.in_one)
    return Sensitivity(most, sum(pile**2 for pile in piles), min(most, tells.elements), piles[0])


def group_sensitivity(unit: Unit, tells: ContributionFacts | None = None, *, periods: int) -> Sensitivity:
    """How much one person can change the counts of a feature in so many periods of one release: with a day as the period, 7 are a week.

    Where no count holds trips of two periods, the periods' squares add up. Else the same counts may change in each of them, and lengths add up.

    Proof: docs/proofs/sensitivity.md.

    >>> group_sensitivity(Person("card", 4, per="day"), periods=7)
    Sensitivity(l1=28, l2_squared=784, l0=28, linf=28)
    """
    if periods < 1:
        raise InputError(f"{periods!r} periods: give a whole number of at least 1")
    if unit.per == RELEASE and periods > 1:
        raise InputError(f"{unit} has one period, the release: ask for 1, not {periods}")
    one = sensitivity(unit, tells)
    if tells is not None and tells.periods:
        return Sensitivity(periods * one.l1, periods * one.l2_squared, periods * one.l0, one.linf)
    l0 = periods * one.l0 if tells is None else min(periods * one.l0, tells.elements)
    return Sensitivity(periods * one.l1, periods**2 * one.l2_squared, l0, periods * one.linf)


def _majorant(most: int, in_one: Sequence[int]) -> list[int]:
    """So many trips, put into the counts that hold the most slots."""
    piles, left = [], most
    for slots in sorted(in_one, reverse=True):
        if left:
            piles.append(min(slots, left))
            left -= piles[-1]
    return piles


_SENSITIVITIES: WeakKeyDictionary[FeatureDag, dict[tuple[str, Unit], Sensitivity]] = (
    WeakKeyDictionary()
)  # worked out once


def feature_sensitivity(features: FeatureDag, name: str, unit: Unit) -> Sensitivity:
    """The most by which one unit can change the counts of this feature: it follows from the unit and from what the feature tells apart.

    Proof: docs/proofs/sensitivity.md.

    >>> from cbdp.features import Universe
    >>> dag = FeatureDag(Universe(stop=["A", "B"], time=["am", "pm"]), [])
    >>> [feature_sensitivity(dag, name, Person("card", 2, apart="time")).l2_squared for name in ("total", "singleton")]
    [4, 2]
    """
    kept = _SENSITIVITIES.setdefault(features, {})
    if (name, unit) not in kept:
        kept[name, unit] = sensitivity(unit, contribution_structure(features, name, unit.per, unit.apart))
    return kept[name, unit]


# A choice of `max_trips` that is paid for: a quantile of how many trips persons have


@dataclass(frozen=True, init=False)
class PrivateQuantile:
    """Which share of persons shall lose no trip, and the ε that is paid to find the `max_trips` that does it.

    Let n persons have x trips each, and q be the quantile. A candidate k is off by the persons that would have to change sides for
    it to be a quantile: max(0, #{x < k} − q·n, q·n − #{x ≤ k}). One person more or less changes that by at most max(q, 1 − q) for every k, so a
    k that is drawn with probability proportional to exp(−ε · off / (2 · max(q, 1 − q))) is ε-differentially private: the exponential mechanism
    (McSherry and Talwar 2007). The candidates, 1 to 100, are public.

    Proof: docs/proofs/quantile.md.

    >>> PrivateQuantile("0.95", "1/20")
    PrivateQuantile(quantile=Fraction(19, 20), epsilon=Fraction(1, 20))
    """

    quantile: Fraction
    epsilon: Fraction

    def __init__(self, quantile: Number, epsilon: Number) -> None:
        share = probability(quantile, "the quantile")
        if not 0 < share < 1:
            raise InputError(f"the quantile {quantile!r} must lie strictly between 0 and 1")
        object.__setattr__(self, "quantile", share)
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))

    @property
    def sensitivity(self) -> Fraction:
        """The most by which one person can change how far off a candidate is."""
        return max(self.quantile, 1 - self.quantile)


def rank_errors(bought: PrivateQuantile, trips: Sequence[int], persons: Sequence[int]) -> list[Fraction]:
    """How far off each candidate is, where so many persons have so many trips."""
    target = bought.quantile * sum(persons)
    exactly = dict(zip(trips, persons, strict=True))
    errors, fewer = [], 0
    for most in MAX_TRIPS_CANDIDATES:
        upto = fewer + exactly.get(most, 0)
        errors.append(max(Fraction(0), fewer - target, target - upto))
        fewer = upto
    return errors


def selection_exponents(
    bought: PrivateQuantile, trips: Sequence[int], persons: Sequence[int]
) -> list[Fraction]:
    """For each candidate the x such that it is drawn with probability proportional to exp(−x); the least is 0. Proof: docs/proofs/quantile.md."""
    each, rate = rank_errors(bought, trips, persons), bought.epsilon / (2 * bought.sensitivity)
    least = min(each)
    return [rate * (o - least) for o in each]
