"""Whether every (ε, δ) that is stated for a ρ follows from it: neither too good to be true, nor by a looser formula than is said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from cbdp.privacy.accounting import epsilon_of
from cbdp.release.stated import number

NEAR = 1e-9
LOOSE = 1e-6  # relative slack of a conversion, which is rounded up to nine digits

Misstated = tuple[str, str, dict[str, float]]  # title, evidence, figures


def misstated(privacy: Mapping[str, Any], rho: Fraction) -> Iterator[Misstated]:
    """What a manifest states of a ρ, worked out again."""
    stated = [(number(privacy["epsilon"]), number(privacy["delta"]))]
    stated += [(pair["epsilon"], pair["delta"]) for pair in privacy.get("curve", [])]
    for epsilon, delta in stated:
        if not delta or epsilon is None:
            text = f"ρ = {float(rho):.6g} gives no ε without a δ, and δ is stated as {delta or 0}."
            yield "privacy/delta is missing where noise is paid for in ρ", text, {}
            continue
        least, at = float(epsilon_of(rho, delta)), f"at δ = {float(delta):.3g}"
        figures = {"least": least, "stated": float(epsilon)}
        if float(epsilon) < least * (1 - NEAR):
            text = f"ρ = {float(rho):.6g} gives ε = {least:.6g} {at}; {float(epsilon):.6g} is stated."
            yield "the stated ε does not follow from ρ", text, figures
        elif float(epsilon) > least * (1 + LOOSE):
            text = f"ρ = {float(rho):.6g} gives ε = {least:.6g} {at}; {float(epsilon):.6g} is stated, as a looser formula gives it."
            yield "the stated ε is not the tight one", text, figures
