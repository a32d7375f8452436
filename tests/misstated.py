"""Manifests of a release with Gaussian noise that say of ρ, ε or δ what does not follow, each with the words that name it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

import cbdp
from cbdp.privacy.accounting import epsilon_of

STOPS = cbdp.Dimension([f"s{i}" for i in range(6)], zone=[f"z{i % 2}" for i in range(6)])
UNIVERSE = cbdp.Universe(origin=STOPS, destination=STOPS, time=["a", "b", "c", "d"])
DAG = cbdp.FeatureDag(UNIVERSE, [cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"])])
TRUTH = np.random.default_rng(3).poisson(4.0, UNIVERSE.size)
Edit = Callable[[dict[str, Any]], None]


def exactly(value: Fraction) -> dict[str, Any]:
    return {"exact": str(value), "decimal": float(value)}


def forget_delta(m: dict[str, Any]) -> None:
    m["privacy"]["delta"] = exactly(Fraction(0))


def loose_conversion(m: dict[str, Any]) -> None:
    """ρ + 2√(ρ ln 1/δ), as Bun and Steinke gave it, under the name of the tight one."""
    m["privacy"]["epsilon"] = exactly(Fraction(0.5 + 2 * math.sqrt(0.5 * math.log(1e6))))


def flattering_conversion(m: dict[str, Any]) -> None:
    """The standard deviation's share alone: √(2ρ ln 1/δ) less a fifth."""
    m["privacy"]["epsilon"] = exactly(Fraction(4))


def flattering_curve(m: dict[str, Any]) -> None:
    m["privacy"]["curve"][4]["epsilon"] *= 0.9


def halve_every_rho(m: dict[str, Any]) -> None:
    """All that the manifest says of ρ, halved, with the ε that follows; the scales stay."""
    spent = m["privacy"]["spent"]
    for entry in [
        m["privacy"],
        spent,
        *spent["parts"],
        *spent["parts"][0]["parts"],
        *m["features"],
        *m["measurements"],
    ]:
        if entry.get("rho"):
            entry["rho"] = exactly(Fraction(entry["rho"]["exact"]) / 2)
    for entry in (m["privacy"], spent):
        entry["epsilon"] = exactly(epsilon_of("1/4", 1e-6))
    m["privacy"]["curve"] = []


def smaller_scale(m: dict[str, Any]) -> None:
    m["measurements"][0]["scale"] = exactly(
        Fraction(m["measurements"][0]["scale"]["exact"]) * Fraction(99, 100)
    )


def pay_in_epsilon(m: dict[str, Any]) -> None:
    """The same noise under a claim of pure ε."""
    parts = [
        {"what": x["what"], "epsilon": exactly(Fraction(1, 3)), "delta": exactly(Fraction(0))}
        for x in m["privacy"]["spent"]["parts"][0]["parts"]
    ]
    m["privacy"]["spent"] = {
        "composition": "sequential", "of": "features", "parts": parts, "epsilon": exactly(Fraction(1)), "delta": exactly(Fraction(0)),
    }  # fmt: skip
    m["privacy"] |= {"epsilon": exactly(Fraction(1)), "delta": exactly(Fraction(0))}


MISSTATED: Mapping[str, tuple[Edit, str]] = MappingProxyType(
    {
        "δ forgotten": (forget_delta, "privacy/delta is missing where noise is paid for in ρ"),
        "loose conversion stated as tight": (loose_conversion, "the stated ε is not the tight one"),
        "ε too small for its ρ": (flattering_conversion, "the stated ε does not follow from ρ"),
        "curve too good to be true": (flattering_curve, "the stated ε does not follow from ρ"),
        "every ρ halved": (halve_every_rho, "does not fit its ρ"),
        "a scale one per cent smaller": (smaller_scale, "does not fit its ρ"),
        "ρ paid for in ε": (pay_in_epsilon, "the claim does not say what measurements/"),
    }
)
