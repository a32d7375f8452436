"""Numbers, units and claims as manifests state them, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from cbdp.errors import InputError
from cbdp.privacy.bought import Bought
from cbdp.privacy.claim import Claim
from cbdp.privacy.composition import Cost, Parallel, Part, RhoSpend, Sequential, Spend, Stated
from cbdp.privacy.unit import RELEASE, Person, Trip, Unit
from cbdp.solvers.solution import Certificate

LARGEST = Fraction(
    10**30
)  # no ε, ρ, δ or scale of noise is larger, and none above 0 is smaller than its reciprocal
SEEDED = "a simulation from a seeded source: it protects nobody"
NEIGHBOURS = {
    "add-remove": "Two data sets are neighbours if one is the other with one trip added or removed.",
    "replace": "Two data sets are neighbours if one is the other with one trip replaced by another.",
    "person": "Two data sets are neighbours if one is the other with all trips of one person{within} added or removed; "
    "at most {max_trips} trips of each person{each}, chosen at random, are counted{apart}.",
}


def exact(value: Fraction | float | None) -> dict[str, Any] | None:
    """A number as the fraction it is, and as a decimal near it. A float has no fraction that it was meant to be.

    >>> exact(Fraction(1, 5))
    {'exact': '1/5', 'decimal': 0.2}
    """
    if value is None:
        return None
    fraction = None if isinstance(value, float) else str(Fraction(value))
    return {"exact": fraction, "decimal": float(value)}


def number(given: Mapping[str, Any] | None) -> Any:
    """The number that `exact` wrote.

    >>> number({"exact": "1/5", "decimal": 0.2})
    Fraction(1, 5)
    """
    if given is None:
        return None
    if given["exact"] is None:
        return given["decimal"]
    try:
        value = Fraction(given["exact"])
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{given['exact']!r} is not an exact number: write one like '1/3'") from None
    if abs(value) > LARGEST or 0 < abs(value) < 1 / LARGEST:
        raise InputError(f"the exact number {str(given['exact'])[:40]!r} is out of all range")
    return value


def unit_json(unit: Unit) -> dict[str, Any]:
    """The unit of privacy, with the neighbouring relation in words."""
    shared = {"sensitivity": unit.sensitivity, "words": str(unit)}
    if isinstance(unit, Person):
        place = "on" if unit.per == "day" else "in"
        within, each = (
            ("", "") if unit.per == RELEASE else (f" {place} one {unit.per}", f" {place} each {unit.per}")
        )
        apart = (
            ""
            if unit.apart is None
            else f", and of those with the same {unit.apart} (and day, where days are counted) one"
        )
        words = {"max_trips": unit.max_trips, "within": within, "each": each, "apart": apart}
        return {
            "kind": "person",
            "column": unit.column,
            "max_trips": unit.max_trips,
            **({} if unit.per == RELEASE else {"per": unit.per}),
            **({} if unit.apart is None else {"apart": unit.apart}),
            **({} if unit.bought is None else {"bought": _bought_json(unit.bought)}),
            "neighbouring": NEIGHBOURS["person"].format(**words),
        } | shared
    return {
        "kind": "trip",
        "neighbours": unit.neighbours,
        "neighbouring": NEIGHBOURS[unit.neighbours],
    } | shared


def _bought_json(bought: Bought) -> dict[str, Any]:
    """How max_trips was chosen; its ε is a charge of its own, beside that of the release."""
    return {"quantile": exact(bought.quantile), "epsilon": exact(bought.epsilon)}


def unit_from(given: Mapping[str, Any]) -> Unit:
    """The unit that a manifest states; what is not stated is the default."""
    if given["kind"] == "trip":
        return Trip(given["neighbours"])
    paid = given.get("bought")
    bought = None if paid is None else Bought(number(paid["quantile"]), number(paid["epsilon"]))
    return Person(given["column"], given["max_trips"], given.get("per", RELEASE), given.get("apart"), bought)


def cost_json(cost: Cost) -> dict[str, Any]:
    """What was spent, as the tree of compositions that proves it."""
    if isinstance(cost, Stated):
        price = {"rho": exact(cost.rho), "epsilon": exact(cost.epsilon), "delta": exact(cost.delta)}
        return {"composition": "stated", "parts": [cost_json(cost.part)]} | price
    rho = cost.currency == "rho"
    price = {"rho": exact(cost.rho)} if rho else {"epsilon": exact(cost.epsilon), "delta": exact(cost.delta)}
    if isinstance(cost, Spend | RhoSpend):
        return {"what": cost.what} | price
    kind = "sequential" if isinstance(cost, Sequential) else "parallel"
    return {"composition": kind, "of": cost.of, "parts": [cost_json(part) for part in cost.parts]} | price


def cost_of(given: Mapping[str, Any]) -> Cost:
    """The tree of compositions that a manifest states."""
    if "what" in given:
        if "rho" in given:
            return RhoSpend(given["what"], number(given["rho"]))
        return Spend(given["what"], number(given["epsilon"]), number(given["delta"]))
    if given["composition"] == "stated":
        (part,) = given["parts"]
        return Stated(_part_of(part), number(given["delta"]))
    parts = tuple(map(_part_of, given["parts"]))
    return (Sequential if given["composition"] == "sequential" else Parallel)(parts, given["of"])


def _part_of(given: Mapping[str, Any]) -> Part:
    part = cost_of(given)
    if isinstance(part, Stated):
        raise InputError("an (ε, δ) is stated inside a composition: only the whole can be stated so")
    return part


def claim_of(privacy: Mapping[str, Any]) -> Claim:
    """The claim that a manifest states."""
    return Claim(unit_from(privacy["unit"]), cost_of(privacy["spent"]), privacy["holds"], privacy["caveat"])


def simulated(claim: Claim) -> Claim:
    """What a simulation promises: nothing. What a release would have cost stays in the tree."""
    if claim.caveat.startswith(SEEDED):
        return claim
    return replace(claim, holds=False, caveat=SEEDED if claim.holds else f"{SEEDED}; {claim.caveat}")


def certificate_of(given: Mapping[str, Any]) -> Certificate:
    """The certificate that a manifest states."""
    return Certificate(**given)
