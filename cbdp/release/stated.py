"""Numbers, units and claims as manifests state them, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from cbdp.privacy.claim import Claim
from cbdp.privacy.composition import Cost, Parallel, Sequential, Spend
from cbdp.privacy.unit import Person, Trip, Unit
from cbdp.solvers.solution import Certificate

SEEDED = "a simulation from a seeded source: it protects nobody"
NEIGHBOURS = {
    "add-remove": "Two data sets are neighbours if one is the other with one trip added or removed.",
    "replace": "Two data sets are neighbours if one is the other with one trip replaced by another.",
    "person": "Two data sets are neighbours if one is the other with all trips of one person added or removed; "
    "at most {max_trips} trips of each person, chosen at random, are counted.",
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
    """The number that `exact` wrote."""
    if given is None:
        return None
    return given["decimal"] if given["exact"] is None else Fraction(given["exact"])


def unit_json(unit: Unit) -> dict[str, Any]:
    """The unit of privacy, with the neighbouring relation in words."""
    shared = {"sensitivity": unit.sensitivity, "words": str(unit)}
    if isinstance(unit, Person):
        neighbouring = NEIGHBOURS["person"].format(max_trips=unit.max_trips)
        return {
            "kind": "person",
            "column": unit.column,
            "max_trips": unit.max_trips,
            "neighbouring": neighbouring,
        } | shared
    return {
        "kind": "trip",
        "neighbours": unit.neighbours,
        "neighbouring": NEIGHBOURS[unit.neighbours],
    } | shared


def unit_from(given: Mapping[str, Any]) -> Unit:
    """The unit that a manifest states."""
    return (
        Trip(given["neighbours"]) if given["kind"] == "trip" else Person(given["column"], given["max_trips"])
    )


def cost_json(cost: Cost) -> dict[str, Any]:
    """What was spent, as the tree of compositions that proves it."""
    price = {"epsilon": exact(cost.epsilon), "delta": exact(cost.delta)}
    if isinstance(cost, Spend):
        return {"what": cost.what} | price
    kind = "sequential" if isinstance(cost, Sequential) else "parallel"
    return {"composition": kind, "of": cost.of, "parts": [cost_json(part) for part in cost.parts]} | price


def cost_of(given: Mapping[str, Any]) -> Cost:
    """The tree of compositions that a manifest states."""
    if "what" in given:
        return Spend(given["what"], number(given["epsilon"]), number(given["delta"]))
    parts = tuple(cost_of(part) for part in given["parts"])
    return (Sequential if given["composition"] == "sequential" else Parallel)(parts, given["of"])


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
