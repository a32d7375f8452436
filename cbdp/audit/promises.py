"""What a manifest promises, worked out again from what was published: the noise decides ε, not the words.

Noise of scale b on a partition's counts, which one unit changes by at most Δ, costs ε = Δ/b. So the scales alone give what
was spent, and the tree of compositions says how it adds up; the claim must equal that sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cbdp.audit.finding import Finding
from cbdp.errors import CbdpError
from cbdp.privacy.claim import Claim
from cbdp.privacy.composition import spends_of
from cbdp.privacy.laws import LAWS, Law, law_of
from cbdp.privacy.unit import Person, Trip
from cbdp.release.manifest import ANOTHER, SKIPPED
from cbdp.release.saving import MANIFEST
from cbdp.release.stated import SEEDED, claim_of, number

TOO_LITTLE = "Where noise is smaller than the claim needs, an attacker tells whether a rider is in the data with better odds than it allows."
CORRECT = "State the ε that the noise buys, or draw noise of the scale that the claim needs and release anew."
NEAR = 1e-9
PRICED = 1e-6  # relative slack of a threshold, which is stated as a decimal


def attack(manifest: Mapping[str, Any]) -> list[Finding]:
    """Composition, scales and thresholds of a manifest that matches its schema."""
    try:
        claim = claim_of(manifest["privacy"])
        return _attack(manifest, claim)
    except (CbdpError, KeyError, TypeError, ValueError, ArithmeticError) as wrong:
        why = f"A number or a sum in it makes no sense ({type(wrong).__name__}: {wrong})."
        return [_wrong(f"{MANIFEST}: what it says about privacy cannot be understood", why)]


def _attack(manifest: Mapping[str, Any], claim: Claim) -> list[Finding]:
    wrong_scales = [*_decimals(manifest, ""), *_scales(manifest, claim), *_laws(manifest)]
    wrong_sums = [*_composition(manifest, claim), *_thresholds(manifest, claim)]
    findings = [*wrong_scales, *wrong_sums]
    if not wrong_scales:
        text = f"Each scale is the sensitivity, {claim.unit.sensitivity}, over its share of ε; laws and variances agree."
        findings.append(Finding("noise scales", "clear", "Every noise scale is what its ε needs", text))
    if not wrong_sums:
        found, delta = claim.cost.epsilon, claim.cost.delta
        text = f"The scales give ε = {found}" + (f" and δ = {float(delta):.3g}." if delta else ".")
        title = "The noise adds up to the claimed ε" if claim.holds else "The noise adds up to what was spent"
        findings.append(Finding("composition", "clear", title, text, figures={"epsilon": float(found)}))
    return [*findings, *_caveats(manifest, claim)]


def _wrong(title: str, evidence: str, check: str = "composition", **figures: float | str) -> Finding:
    return Finding(check, "contradicts", title, evidence, TOO_LITTLE, CORRECT, figures)


def _equal(a: Any, b: Any) -> bool:
    """Fractions to the last unit; decimals as near as they are written."""
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a == b
    return math.isclose(float(a), float(b), rel_tol=NEAR)


# Scales


@dataclass(frozen=True)
class _Answered:
    """A feature that was answered: where the manifest says so, the scale of its noise, and the ε stated for it."""

    where: str
    name: str
    law: type[Law]
    scale: Any
    epsilon: Any

    def cost(self, sensitivity: int) -> Fraction | float | None:
        """The ε that the noise costs, as exactly as its scale is stated; None where that has none."""
        if self.scale is None or not self.scale > 0:
            return None
        found = self.law(self.scale).cost(sensitivity)
        return found if isinstance(self.scale, Fraction) else float(found)


def _answered(manifest: Mapping[str, Any]) -> Iterator[_Answered]:
    for m in manifest["measurements"]:
        law = LAWS.get(m["law"] or "geometric")
        yield _Answered(
            f"measurements/{m['feature']}", m["feature"], law, number(m["scale"]), number(m["epsilon"])
        )
    measured = {m["feature"] for m in manifest["measurements"]}
    for f in manifest["features"]:
        if f["published"] == "table" and f["name"] not in measured and f["noise"] is not None:
            law = _by_words().get(f["noise"]["law"], LAWS.get("geometric"))
            scale = number(f["noise"]["scale"])
            yield _Answered(f"features/{f['name']}", f["name"], law, scale, number(f["epsilon"]))


def _by_words() -> dict[str, type[Law]]:
    """Every law by the words with which manifests state it."""
    return {law.words: law for _, law, _ in LAWS.each() if law is not None}


def _scales(manifest: Mapping[str, Any], claim: Claim) -> Iterator[Finding]:
    unit = claim.unit.sensitivity
    for a in _answered(manifest):
        if a.scale is None and claim.holds:
            yield _wrong(
                f"{MANIFEST}: {a.where} states no scale",
                f"{a.name} was answered, and the manifest does not say with how much noise.",
                "noise scales",
            )
        if a.scale is None or a.epsilon is None:
            continue
        cost = a.cost(unit)
        if cost is None or not _equal(cost, a.epsilon):
            costs = "no ε" if cost is None else f"ε = {cost}"
            text = f"{a.where}: a scale of {a.scale} with sensitivity {unit} costs {costs}; the manifest states {a.epsilon}."
            title = f"{MANIFEST}: the scale of {a.where} does not fit its ε"
            yield _wrong(title, text, "noise scales", scale=float(a.scale), epsilon=float(a.epsilon))


def _laws(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """What features and measurements say of their noise: its scale, law and variance must fit together."""
    words = _by_words()
    measured = {m["feature"]: number(m["scale"]) for m in manifest["measurements"]}
    for f in manifest["features"]:
        expected = None if manifest["levels"] is not None else measured.get(f["name"])
        yield from _feature_noise(f["noise"], f["name"], expected, words)
    for m in manifest["measurements"]:
        yield from _measured_noise(m)


def _feature_noise(
    noise: Mapping[str, Any] | None, name: str, expected: Any, words: Mapping[str, type[Law]]
) -> Iterator[Finding]:
    where = f"features/{name}/noise"
    if noise is None or noise["scale"] is None:
        if expected is not None:
            text = f"{where} states no scale, measurements/{name} says {expected}."
            yield _wrong(f"{MANIFEST}: {where} is not its measurement's", text, "noise scales")
        return
    scale = number(noise["scale"])
    if expected is not None and not _equal(scale, expected):
        text = f"{where} says scale {scale}, measurements/{name} says {expected}."
        yield _wrong(f"{MANIFEST}: {where} is not its measurement's", text, "noise scales")
    law = words.get(noise["law"])
    if law is not None and not _near(noise["variance"], law(scale).variance()):
        text = f"{where} says variance {noise['variance']}; the law of scale {scale} has {law(scale).variance():.6g}."
        yield _wrong(f"{MANIFEST}: {where} states the variance of another scale", text, "noise scales")
    if law is None and noise["law"] not in (ANOTHER, "not stated"):
        text = f"{where}/law is {noise['law']!r}, which no release of cbdp states."
        yield _wrong(f"{MANIFEST}: {where}/law is not a law that is known", text, "noise scales")


def _measured_noise(measured: Mapping[str, Any]) -> Iterator[Finding]:
    scale, stated, where = (
        number(measured["scale"]),
        measured["variance"],
        f"measurements/{measured['feature']}",
    )
    if scale is None:
        return
    if measured["law"] is None:
        text = f"{where}/variance says {stated}; no law that is known has it with the scale {scale}."
        yield _wrong(f"{MANIFEST}: {where}/variance is that of another scale", text, "noise scales")
        return
    expected = law_of(measured["law"], scale).variance()
    if isinstance(stated, int | float) and not _near(stated, expected):
        text = f"{where}/variance says {stated}; the law {measured['law']!r} of scale {scale} has {expected:.6g}."
        yield _wrong(f"{MANIFEST}: {where}/variance is that of another scale", text, "noise scales")


def _near(stated: float | None, expected: float | None) -> bool:
    return stated is None or expected is None or math.isclose(stated, expected, rel_tol=1e-6)


def _decimals(stated: Any, where: str) -> Iterator[Finding]:
    """Numbers that are stated as a fraction and as a decimal that is not near it."""
    if isinstance(stated, list):
        stated = {str(n): part for n, part in enumerate(stated)}
    if not isinstance(stated, Mapping):
        return
    if set(stated) == {"exact", "decimal"}:
        if stated["exact"] is not None and float(Fraction(stated["exact"])) != stated["decimal"]:
            text = f"{where} is {stated['exact']} as a fraction, and {stated['decimal']} as a decimal."
            yield _wrong(f"{MANIFEST}: {where} states two different numbers as one", text, "noise scales")
        return
    for key, part in stated.items():
        yield from _decimals(part, f"{where}/{key}".lstrip("/"))


# Sums


def _composition(manifest: Mapping[str, Any], claim: Claim) -> Iterator[Finding]:
    rates = _rates(manifest, claim.unit.sensitivity)
    named = {part.what for part in spends_of(claim.cost)}
    apart = bool(named & set(rates))  # the tree says what each answer cost
    unpaid = [name for name in rates if name not in named] if apart else []
    for name in unpaid:
        yield _wrong(
            f"{MANIFEST}: {name} was answered and is in no sum of ε",
            f"The answer to {name} costs ε = {rates[name]}, and privacy/spent does not name it.",
            epsilon=float(rates[name]),
        )
    spent = _spent(manifest["privacy"]["spent"], rates) if apart else sum(rates.values(), Fraction(0))
    if rates and not unpaid and not _equal(spent, claim.cost.epsilon):
        yield _wrong(
            f"{MANIFEST}: privacy/spent is not what the noise costs",
            f"The scales give ε = {spent}; {claim.cost.epsilon} is claimed.",
            recomputed=float(spent),
            claimed=float(claim.cost.epsilon),
        )
    stated = number(manifest["privacy"]["epsilon"])
    if claim.holds and rates and (stated is None or not _equal(stated, spent)):
        yield _wrong(
            f"{MANIFEST}: privacy/epsilon is not what the noise costs",
            f"The release claims ε = {stated}; its noise costs ε = {spent}.",
            recomputed=float(spent),
            claimed="none" if stated is None else float(stated),
        )


def _rates(manifest: Mapping[str, Any], sensitivity: int) -> dict[str, Fraction]:
    """What the noise of each feature costs."""
    rates: dict[str, Fraction] = {}
    for a in _answered(manifest):
        cost = a.cost(sensitivity)
        if cost is not None:
            rates[a.name] = rates.get(a.name, Fraction(0)) + Fraction(cost)
    return rates


def _spent(tree: Mapping[str, Any], rates: Mapping[str, Fraction]) -> Fraction:
    """ε of a tree of compositions whose leaves cost what their noise costs."""
    if "what" in tree:
        return rates.get(tree["what"], Fraction(0))
    parts = [_spent(part, rates) for part in tree["parts"]]
    return sum(parts, Fraction(0)) if tree["composition"] == "sequential" else max(parts)


def _thresholds(manifest: Mapping[str, Any], claim: Claim) -> Iterator[Finding]:
    """A table that skips zeros and shows only what reaches a threshold needs δ ≥ touched · exp(−(threshold − pile)/b)."""
    unit = claim.unit
    for f in _skipping(manifest) if claim.holds else ():
        noise = f["noise"]
        if noise["threshold"] is None or f["delta"] is None:
            continue
        scale, delta = float(number(noise["scale"])), float(number(f["delta"]))
        needed = unit.touched * math.exp(-(noise["threshold"] - unit.pile) / scale)
        if needed > delta * (1 + PRICED):
            yield _wrong(
                f"{MANIFEST}: the threshold of features/{f['name']} is too low for its δ",
                f"A threshold of {noise['threshold']:.6g} at scale {scale:.6g} needs δ = {needed:.3g}; {delta:.3g} is stated.",
                needed=needed,
                stated=delta,
            )


def _skipping(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The features whose tables skip zeros."""
    return [f for f in manifest["features"] if f["noise"] is not None and f["noise"]["zeros"] == SKIPPED]


# What is said openly


def _caveats(manifest: Mapping[str, Any], claim: Claim) -> Iterator[Finding]:
    if not manifest["secure"]:
        yield Finding(
            "status",
            "weakness",
            "This is a simulation: it protects nobody",
            "Its noise came from a seeded source, and the manifest says so.",
            "Anybody who knows or guesses the seed draws the same noise and subtracts it.",
            "Never publish it as a release: run cbdp release, which draws from the system's entropy.",
        )
    caveat = claim.caveat.removeprefix(SEEDED).removeprefix("; ")
    if not claim.holds and caveat:
        yield Finding(
            "status",
            "weakness",
            "The release promises no differential privacy",
            f"{manifest['recipe']['mechanism']}: {caveat}.",
            "Nothing limits what can be learnt: see the other findings.",
            "Use a mechanism with a guarantee, such as constraint-based.",
        )
    if not claim.holds:
        return
    if claim.cost.delta == 0 and _skipping(manifest):
        yield _wrong(
            f"{MANIFEST}: zeros are skipped, and δ is 0",
            f"features/{_skipping(manifest)[0]['name']}/noise/zeros is {SKIPPED!r}: a published count then proves that "
            "somebody was there.",
            "status",
        )
    if isinstance(claim.unit, Trip):
        text = "A person with n trips is protected with n·ε only; the claim says so."
        yield Finding("unit", "clear", "The unit of privacy is one trip", text)
    elif isinstance(claim.unit, Person):
        yield Finding("unit", "clear", "The unit of privacy is one person", f"{claim.unit}.")
