"""What a manifest promises, worked out again from what was published, and looked up in the ledger: the noise decides what was spent, not the words.

Laplace noise of scale b on a partition's counts, which one unit changes by at most Δ in l1, costs ε = Δ/b (Dwork et al., 2006); Gaussian
noise of scale σ, continuous or discrete, costs ρ = l2²/2σ² (Bun and Steinke, 2016; Canonne, Kamath and Steinke, 2020). How much one unit
changes a table follows from the unit and from what the table tells apart. So the scales alone give what was spent, and the tree of
compositions says how it adds up; the claim must equal that sum. An ε that is stated for a ρ must be the one that follows at the stated δ:
neither too good to be true, nor by a looser formula.

The release's entry in the ledger comes last: charged before the noise was drawn, for the ε that the release claims, under the hash that it has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, cast

from cbdp.audit.findings import Finding, clear_finding
from cbdp.audit.own_release import OwnRelease
from cbdp.errors import CbdpError
from cbdp.features import FeatureDag
from cbdp.ledger import AccountOwner, Amount, Caps, Entry, Ledger, LedgerError
from cbdp.ledger.charges import amount_charged
from cbdp.privacy.accounting import DPCost, PrivacyGuarantee, ZCDPCost, cost_amount, epsilon_of, single_costs
from cbdp.privacy.noise import NOISE_DISTRIBUTIONS, NoiseDistribution, PrivacyMeasure
from cbdp.privacy.unit import Person, Sensitivity, Trip, feature_sensitivity, sensitivity
from cbdp.release.files import MANIFEST
from cbdp.release.manifest import UNNAMED_NOISE, UNSTATED_NOISE, ZEROS_SKIPPED
from cbdp.release.serialization import SEEDED_SIMULATION, exact_from, guarantee_from
from cbdp.release.series import running_total_part, sensitivity_of_span

if TYPE_CHECKING:
    from cbdp.release.manifest_model import (
        CostJson,
        FeatureJson,
        Manifest,
        MeasurementJson,
        NoiseJson,
        PrivacyJson,
        PureCost,
        RhoCost,
        Scale,
    )

DECIMAL_TOLERANCE = 1e-9  # relative: how near a decimal must be to the number that it states
CONVERSION_SLACK = 1e-6  # relative slack of a conversion, which is rounded up to nine digits

MisstatedConversion = tuple[str, str, dict[str, float]]  # title, evidence, figures


def misstated_conversions(privacy: PrivacyJson, rho: Fraction) -> Iterator[MisstatedConversion]:
    """What a manifest states of a ρ, worked out again."""
    stated: list[tuple[Number | None, Number | None]] = [
        (exact_from(privacy["epsilon"]), exact_from(privacy["delta"]))
    ]
    stated += [(pair["epsilon"], pair["delta"]) for pair in privacy.get("curve", [])]
    for epsilon, delta in stated:
        if not delta or epsilon is None:
            text = f"ρ = {float(rho):.6g} gives no ε without a δ, and δ is stated as {delta or 0}."
            yield "privacy/delta is missing where noise is paid for in ρ", text, {}
            continue
        least, at = float(epsilon_of(rho, delta)), f"at δ = {float(delta):.3g}"
        figures = {"least": least, "stated": float(epsilon)}
        if float(epsilon) < least * (1 - DECIMAL_TOLERANCE):
            text = f"ρ = {float(rho):.6g} gives ε = {least:.6g} {at}; {float(epsilon):.6g} is stated."
            yield "the stated ε does not follow from ρ", text, figures
        elif float(epsilon) > least * (1 + CONVERSION_SLACK):
            text = f"ρ = {float(rho):.6g} gives ε = {least:.6g} {at}; {float(epsilon):.6g} is stated, as a looser formula gives it."
            yield "the stated ε is not the tight one", text, figures


# The attack


ATTACK_ON_WEAK_NOISE = "Where noise is smaller than the claim needs, an attacker tells whether a rider is in the data with better odds than it allows."
CURE_RESTATE = (
    "State the ε that the noise buys, or draw noise of the scale that the claim needs and release anew."
)
POWER_OF_FRACTIONS = "Worked out with fractions: a claim that is too small by any amount would have been found for certain, if the noise is what is stated."
UNIT_CAVEAT = "This is read off the claim; whether one person's trips are more than the unit covers cannot be seen in a release."
MEASURE_SYMBOLS = {"epsilon": "ε", "rho": "ρ"}
THRESHOLD_SLACK = 1e-6  # relative slack of a threshold, which is stated as a decimal


def attack(manifest: Manifest, features: FeatureDag | None = None) -> list[Finding]:
    """Composition, scales and thresholds of a manifest that matches its schema.

    `features` are what the answers are of, where the files could be read. Without them, one unit is taken to change each table as it changes the
    worst.
    """
    try:
        claim = guarantee_from(manifest["privacy"])
        return _check_all(manifest, claim, _with_running_totals(manifest, _sensitivities(features, claim)))
    except (CbdpError, KeyError, TypeError, ValueError, ArithmeticError) as wrong:
        why = f"A number or a sum in it makes no sense ({type(wrong).__name__}: {wrong})."
        return [_contradiction(f"{MANIFEST}: what it says about privacy cannot be understood", why)]


Number = Fraction | float  # as exactly as it is stated
SensitivityOf = Callable[[str], Sensitivity]  # how much one unit changes the counts of a feature


def _sensitivities(features: FeatureDag | None, claim: PrivacyGuarantee) -> SensitivityOf:
    if features is None:
        return lambda _: sensitivity(claim.unit)
    dag = features
    return lambda name: feature_sensitivity(dag, name, claim.unit) if name in dag else sensitivity(claim.unit)


def _with_running_totals(manifest: Manifest, changes: SensitivityOf) -> SensitivityOf:
    """Also of the sums over days that a series measures for running totals."""
    stated = manifest.get("running")
    sums = (
        {} if stated is None else {running_total_part(t["feature"]): t["feature"] for t in stated["tables"]}
    )
    return lambda name: (
        sensitivity_of_span(stated, changes(sums[name])) if stated and name in sums else changes(name)
    )


def _check_all(manifest: Manifest, claim: PrivacyGuarantee, changes: SensitivityOf) -> list[Finding]:
    sign = MEASURE_SYMBOLS[claim.cost.currency]
    wrong_scales = [
        *_check_decimals(manifest, ""),
        *_check_scales(manifest, claim, changes),
        *_check_noise_statements(manifest),
    ]
    wrong_sums = [*_check_composition(manifest, claim, changes), *_check_thresholds(manifest, claim)]
    findings = [*wrong_scales, *wrong_sums]
    if not wrong_scales:
        text = "Each scale is what one unit can change of its table, over its share of ε; laws and variances agree."
        if sign == "ρ":
            text = "Each scale is the Euclidean length of what one unit changes, over the root of twice its share of ρ; laws and variances agree."
        findings.append(
            clear_finding(
                "noise scales", f"Every noise scale is what its {sign} needs", text, POWER_OF_FRACTIONS
            )
        )
    if not wrong_sums:
        findings.append(_composition_finding(claim, sign))
    return [*findings, *_caveats(manifest, claim)]


def _composition_finding(claim: PrivacyGuarantee, sign: str) -> Finding:
    amount, delta = cost_amount(claim.cost), claim.cost.delta
    text = f"The scales give {sign} = {amount}"
    if sign == "ρ":
        text += f", which is ε = {float(claim.cost.epsilon):.6g} at δ = {float(delta):.3g}."
    else:
        text += f" and δ = {float(delta):.3g}." if delta else "."
    title = (
        f"The noise adds up to the claimed {sign}" if claim.holds else "The noise adds up to what was spent"
    )
    return clear_finding(
        "composition",
        title,
        text,
        POWER_OF_FRACTIONS,
        {claim.cost.currency: float(amount), "epsilon": float(claim.cost.epsilon)},
    )


def _contradiction(title: str, evidence: str, check: str = "composition", **figures: float | str) -> Finding:
    return Finding(check, "contradicts", title, evidence, ATTACK_ON_WEAK_NOISE, CURE_RESTATE, figures)


def _equal(a: Number, b: Number) -> bool:
    """Fractions to the last unit; decimals as near as they are written."""
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a == b
    return math.isclose(float(a), float(b), rel_tol=DECIMAL_TOLERANCE)


# Scales


@dataclass(frozen=True)
class _AnsweredFeature:
    """A feature that was answered: where the manifest says so, the scale of its noise, and the ε stated for it."""

    where: str
    name: str
    law: type[NoiseDistribution]
    scale: Number | None
    share: Number | None  # of ε, or of ρ where the law is paid for in it

    def cost(self, change: Sensitivity) -> Number | None:
        """What the noise costs, as exactly as its scale is stated; None where that has none."""
        if self.scale is None or not self.scale > 0:
            return None
        cost = self.law(self.scale).cost(change)
        return cost if isinstance(self.scale, Fraction) else float(cost)


def _answered_features(manifest: Manifest) -> Iterator[_AnsweredFeature]:
    for m in manifest["measurements"]:
        law = NOISE_DISTRIBUTIONS.installed(m["law"] or "geometric")
        share = exact_from(m.get(law.currency))
        yield _AnsweredFeature(
            f"measurements/{m['feature']}", m["feature"], law, exact_from(m["scale"]), share
        )
    for t in manifest.get("running", {"tables": ()})["tables"]:
        law, name = NOISE_DISTRIBUTIONS.installed(t["law"]), running_total_part(t["feature"])
        yield _AnsweredFeature(
            f"running/{t['feature']}", name, law, exact_from(t["scale"]), exact_from(t.get(law.currency))
        )
    measured = {m["feature"] for m in manifest["measurements"]}
    for f in manifest["features"]:
        if f["published"] == "table" and f["name"] not in measured and f["noise"] is not None:
            if f["noise"]["name"] is None:
                continue  # `_check_feature_noise` says so
            law = NOISE_DISTRIBUTIONS.installed(f["noise"]["name"])
            scale = exact_from(f["noise"]["scale"])
            yield _AnsweredFeature(
                f"features/{f['name']}", f["name"], law, scale, exact_from(f.get(law.currency))
            )


def _check_scales(manifest: Manifest, claim: PrivacyGuarantee, changes: SensitivityOf) -> Iterator[Finding]:
    for a in _answered_features(manifest):
        if a.scale is None and claim.holds:
            yield _contradiction(
                f"{MANIFEST}: {a.where} states no scale",
                f"{a.name} was answered, and the manifest does not say with how much noise.",
                "noise scales",
            )
        if a.law.currency != claim.cost.currency:
            sign, other = MEASURE_SYMBOLS[a.law.currency], MEASURE_SYMBOLS[claim.cost.currency]
            text = f"{a.where}: noise of law {a.law.name!r} costs {sign}, and the claim is in {other}."
            yield _contradiction(
                f"{MANIFEST}: the claim does not say what {a.where} costs", text, "noise scales"
            )
            continue
        if a.scale is None or a.share is None:
            continue
        change, sign = changes(a.name), MEASURE_SYMBOLS[a.law.currency]
        cost = a.cost(change)
        if cost is None or not _covers_cost(a.law, cost, a.share):
            costs = f"no {sign}" if cost is None else f"{sign} = {_amount_text(cost)}"
            by = (
                f"sensitivity {change.l1}"
                if sign == "ε"
                else f"a squared Euclidean change of {change.l2_squared}"
            )
            text = f"{a.where}: a scale of {a.scale} with {by} costs {costs}; the manifest states {a.share}."
            title = f"{MANIFEST}: the scale of {a.where} does not fit its {sign}"
            figures = {"scale": float(a.scale), a.law.currency: float(a.share)}
            yield _contradiction(title, text, "noise scales", **figures)


def _amount_text(cost: Fraction | float) -> str:
    """A price to read: a fraction where it is short."""
    return str(cost) if len(str(cost)) <= 24 else f"{float(cost):.9g}"


def _covers_cost(law: type[NoiseDistribution], cost: Number, share: Number) -> bool:
    """Whether a share is what the noise costs; scales that are paid for in ρ are rounded up to twelve digits, and cost a trifle less."""
    if law.currency == "epsilon":
        return _equal(cost, share)
    return float(share) * (1 - DECIMAL_TOLERANCE) <= float(cost) and Fraction(cost) <= Fraction(share) * (
        1 if isinstance(share, Fraction) and isinstance(cost, Fraction) else 1 + Fraction(1, 10**9)
    )


def _check_noise_statements(manifest: Manifest) -> Iterator[Finding]:
    """What features and measurements say of their noise: its scale, law and variance must fit together."""
    measured = {m["feature"]: exact_from(m["scale"]) for m in manifest["measurements"]}
    for f in manifest["features"]:
        expected = None if manifest["levels"] is not None else measured.get(f["name"])
        yield from _check_feature_noise(f["noise"], f["name"], expected)
    for m in manifest["measurements"]:
        yield from _check_measured_noise(m)


def _check_feature_noise(noise: NoiseJson | None, name: str, expected: Number | None) -> Iterator[Finding]:
    where = f"features/{name}/noise"
    if noise is None or noise["scale"] is None:
        if expected is not None:
            text = f"{where} states no scale, measurements/{name} says {expected}."
            yield _contradiction(f"{MANIFEST}: {where} is not its measurement's", text, "noise scales")
        return
    scale = exact_from(noise["scale"])
    if expected is not None and not _equal(scale, expected):
        text = f"{where} says scale {scale}, measurements/{name} says {expected}."
        yield _contradiction(f"{MANIFEST}: {where} is not its measurement's", text, "noise scales")
    law = None if noise["name"] is None else NOISE_DISTRIBUTIONS.installed(noise["name"])
    if law is not None and not _near(noise["variance"], law(scale).variance()):
        text = f"{where} says variance {noise['variance']}; the law of scale {scale} has {law(scale).variance():.6g}."
        yield _contradiction(
            f"{MANIFEST}: {where} states the variance of another scale", text, "noise scales"
        )
    if noise["law"] not in ((UNNAMED_NOISE, UNSTATED_NOISE) if law is None else (law.words,)):
        text = f"{where}/law is {noise['law']!r}, which no release of cbdp states of noise named {noise['name']!r}."
        yield _contradiction(f"{MANIFEST}: {where}/law is not a law that is known", text, "noise scales")


def _check_measured_noise(measured: MeasurementJson) -> Iterator[Finding]:
    scale, stated, where = (
        exact_from(measured["scale"]),
        measured["variance"],
        f"measurements/{measured['feature']}",
    )
    if scale is None:
        return
    if measured["law"] is None:
        text = f"{where}/variance says {stated}; no law that is known has it with the scale {scale}."
        yield _contradiction(f"{MANIFEST}: {where}/variance is that of another scale", text, "noise scales")
        return
    expected = NOISE_DISTRIBUTIONS.installed(measured["law"])(scale).variance()
    if isinstance(stated, int | float) and not _near(stated, expected):
        text = f"{where}/variance says {stated}; the law {measured['law']!r} of scale {scale} has {expected:.6g}."
        yield _contradiction(f"{MANIFEST}: {where}/variance is that of another scale", text, "noise scales")


def _near(stated: float | None, expected: float | None) -> bool:
    return stated is None or expected is None or math.isclose(stated, expected, rel_tol=1e-6)


def _check_decimals(stated: object, where: str) -> Iterator[Finding]:
    """Numbers that are stated as a fraction and as a decimal that is not near it."""
    if isinstance(stated, list):
        stated = {str(n): part for n, part in enumerate(stated)}
    if not isinstance(stated, Mapping):
        return
    if set(stated) == {"exact", "decimal"}:
        if stated["exact"] is not None and float(Fraction(stated["exact"])) != stated["decimal"]:
            text = f"{where} is {stated['exact']} as a fraction, and {stated['decimal']} as a decimal."
            yield _contradiction(
                f"{MANIFEST}: {where} states two different numbers as one", text, "noise scales"
            )
        return
    for key, part in stated.items():
        yield from _check_decimals(part, f"{where}/{key}".lstrip("/"))


# Sums


def _check_composition(
    manifest: Manifest, claim: PrivacyGuarantee, changes: SensitivityOf
) -> Iterator[Finding]:
    rates, sign = _costs_of_features(manifest, changes), MEASURE_SYMBOLS[claim.cost.currency]
    named = {part.what for part in single_costs(claim.cost)}
    apart = bool(named & set(rates))  # the tree says what each answer cost
    unpaid = [name for name in rates if name not in named] if apart else []
    for name in unpaid:
        yield _contradiction(
            f"{MANIFEST}: {name} was answered and is in no sum of {sign}",
            f"The answer to {name} costs {sign} = {_amount_text(rates[name])}, and privacy/spent does not name it.",
            "composition",
            **{str(claim.cost.currency): float(rates[name])},
        )
    spent = _cost_of_tree(manifest["privacy"]["spent"], rates) if apart else sum(rates.values(), Fraction(0))
    paid, claimed = _pays_for(claim, spent), cost_amount(claim.cost)
    if rates and not unpaid and not paid(claimed):
        yield _contradiction(
            f"{MANIFEST}: privacy/spent is not what the noise costs",
            f"The scales give {sign} = {_amount_text(spent)}; {claimed} is claimed.",
            recomputed=float(spent),
            claimed=float(claimed),
        )
    key = claim.cost.currency
    stated = exact_from(manifest["privacy"].get(key))
    if claim.holds and rates and (stated is None or not paid(stated)):
        yield _contradiction(
            f"{MANIFEST}: privacy/{key} is not what the noise costs",
            f"The release claims {sign} = {stated}; its noise costs {sign} = {_amount_text(spent)}.",
            recomputed=float(spent),
            claimed="none" if stated is None else float(stated),
        )
    if claim.holds and key == "rho" and rates:
        for title, text, figures in misstated_conversions(manifest["privacy"], spent):
            yield _contradiction(f"{MANIFEST}: {title}", text, "composition", **figures)


def _pays_for(claim: PrivacyGuarantee, spent: Fraction) -> Callable[[Number], bool]:
    if claim.cost.currency == "epsilon":
        return lambda stated: _equal(stated, spent)
    return lambda stated: _covers_cost(NOISE_DISTRIBUTIONS.get("gaussian"), spent, stated)


def _costs_of_features(manifest: Manifest, changes: SensitivityOf) -> dict[str, Fraction]:
    """What the noise of each feature costs."""
    rates: dict[str, Fraction] = {}
    for a in _answered_features(manifest):
        cost = a.cost(changes(a.name))
        if cost is not None:
            rates[a.name] = rates.get(a.name, Fraction(0)) + Fraction(cost)
    return rates


def _cost_of_tree(tree: CostJson, rates: Mapping[str, Fraction]) -> Fraction:
    """What a tree of compositions costs whose leaves cost what their noise costs."""
    if "what" in tree:
        return rates.get(cast("PureCost | RhoCost", tree)["what"], Fraction(0))
    parts = [_cost_of_tree(part, rates) for part in tree["parts"]]
    return max(parts) if tree["composition"] == "parallel" else sum(parts, Fraction(0))


def _check_thresholds(manifest: Manifest, claim: PrivacyGuarantee) -> Iterator[Finding]:
    """A table that skips zeros and shows only what reaches a threshold needs δ ≥ l0 · exp(−(threshold − linf)/b) (Korolova et al., 2009)."""
    unit = claim.unit
    for f, noise in _features_skipping_zeros(manifest) if claim.holds else ():
        if noise["threshold"] is None or f["delta"] is None:
            continue
        scale, delta = float(exact_from(cast("Scale", noise["scale"]))), float(exact_from(f["delta"]))
        needed = unit.l0 * math.exp(-(noise["threshold"] - unit.linf) / scale)
        if needed > delta * (1 + THRESHOLD_SLACK):
            yield _contradiction(
                f"{MANIFEST}: the threshold of features/{f['name']} is too low for its δ",
                f"A threshold of {noise['threshold']:.6g} at scale {scale:.6g} needs δ = {needed:.3g}; {delta:.3g} is stated.",
                needed=needed,
                stated=delta,
            )


def _features_skipping_zeros(manifest: Manifest) -> list[tuple[FeatureJson, NoiseJson]]:
    """The features whose tables skip zeros, and their noise."""
    entries = ((f, f["noise"]) for f in manifest["features"])
    return [(f, noise) for f, noise in entries if noise is not None and noise["zeros"] == ZEROS_SKIPPED]


# What is said openly


def _caveats(manifest: Manifest, claim: PrivacyGuarantee) -> Iterator[Finding]:
    if not manifest["secure"]:
        yield Finding(
            "status",
            "weakness",
            "This is a simulation: it protects nobody",
            "Its noise came from a seeded source, and the manifest says so.",
            "Anybody who knows or guesses the seed draws the same noise and subtracts it.",
            "Never publish it as a release: run cbdp release, which draws from the system's entropy.",
        )
    caveat = claim.caveat.removeprefix(SEEDED_SIMULATION).removeprefix("; ")
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
    skipping = _features_skipping_zeros(manifest)
    if claim.cost.delta == 0 and skipping:
        yield _contradiction(
            f"{MANIFEST}: zeros are skipped, and δ is 0",
            f"features/{skipping[0][0]['name']}/noise/zeros is {ZEROS_SKIPPED!r}: a published count then proves that "
            "somebody was there.",
            "status",
        )
    if isinstance(claim.unit, Trip):
        text = "A person with n trips is protected with n·ε only; the claim says so."
        yield clear_finding("unit", "The unit of privacy is one trip", text, UNIT_CAVEAT)
    elif isinstance(claim.unit, Person):
        yield clear_finding("unit", "The unit of privacy is one person", f"{claim.unit}.", UNIT_CAVEAT)


# The charge in the ledger


ATTACK_ON_UNCHARGED = "Releases that no ledger counts add up: with enough of them the noise averages out."
REWRITTEN_NOTE = (
    "A ledger that can be rewritten lets ε be spent again and again; every release looks like the first."
)
TRUST_NOTE = (
    "Go back to a copy of the ledger that you trust, and keep the heads that manifests state elsewhere too."
)


@dataclass(frozen=True)
class LedgerRequest:
    """What a configuration asks the ledger for: the request, whose privacy it spends, and the caps it states."""

    request: str
    owner: AccountOwner
    cap: Fraction | Mapping[str, Fraction] | None = None
    cap_delta: Fraction | None = None


def attack_ledger(
    ledger: str | Path, ours: OwnRelease, *, asked: LedgerRequest | None = None
) -> list[Finding]:
    """What the ledger says of this release; `asked` is what the configuration that it is said to come from asks for.

    A file that is no ledger is bad input (`InputError`); a ledger whose chain is broken is a finding.
    """
    with Ledger.view(ledger) as book:
        broken = [*_chain_findings(book)]
        if broken:
            return broken
        findings = [*_check_charge(book, ours, asked), *_check_account(book, asked)]
        if findings:
            return findings
        return [
            clear_finding(
                "ledger",
                "The ledger is intact, and holds this release",
                f"{len(book.entries())} entries; {book.spent} of {book.cap} spent; the manifest's hash and ε are in it.",
                "A ledger that was cut or rewritten, a missing or different charge and another manifest would have been found for "
                "certain; a second ledger that nobody told us of would not.",
                {"spent": float(book.spent.value)} | _cap_figures(book),
            )
        ]


def _cap_figures(book: Ledger) -> dict[str, float]:
    return {} if book.cap.is_unlimited else {"cap": float(book.cap.value)}


def _ledger_contradiction(
    title: str, evidence: str, attack: str = ATTACK_ON_UNCHARGED, cure: str = TRUST_NOTE
) -> Finding:
    return Finding("ledger", "contradicts", title, evidence, attack, cure)


def _chain_findings(book: Ledger) -> Iterator[Finding]:
    """A ledger may be broken in its schema and in an entry: both are named."""
    messages: list[str] = []
    for look in (book.verify, lambda: book.head):
        try:
            look()
        except LedgerError as wrong:
            if str(wrong) not in messages:
                messages.append(str(wrong))
    for words in messages:
        short = words.replace(str(book.path), book.path.name)
        yield _ledger_contradiction(
            f"The ledger was tampered with: {short.partition(';')[0]}", words + ".", REWRITTEN_NOTE
        )


def _check_charge(book: Ledger, ours: OwnRelease, asked: LedgerRequest | None) -> Iterator[Finding]:
    head = ours.manifest["ledger"]["head"]
    if head is None:
        yield _ledger_contradiction(
            f"{MANIFEST}: ledger/head names no charge",
            f"The manifest does not say under which charge the release was made; {book.path.name} cannot hold it.",
        )
        return
    entries = book.entries()
    at = next((e for e in entries if e.hash == head), None)
    if at is None:
        yield _ledger_contradiction(
            f"The ledger does not hold the charge {head[:12]}… of {MANIFEST}: it is another ledger, or was cut off",
            f"ledger/head is {head}; none of the {len(entries)} entries of {book.path.name} has that hash.",
            REWRITTEN_NOTE,
        )
        return
    if at.event != "reserved":
        yield _ledger_contradiction(
            f"{MANIFEST}: ledger/head is entry {at.sequence}, which is no charge",
            f"Entry {at.sequence} of {book.path.name} is {at.event!r}.",
        )
        return
    yield from _check_amount(entries, at, ours.manifest)
    yield from _check_release_note(entries, at, ours)
    # the request is "asked:source". The trips may have been moved since; a request of the first version has one part, of another make
    request, _, source = at.fields["request"].partition(":")
    if asked is not None and source and request != asked.request:
        yield _ledger_contradiction(
            f"Entry {at.sequence} of the ledger is the charge of another request, not of the configuration's",
            "The configuration asks for another release than the one that was charged: universe, features, unit, mechanism or ε differ.",
            "What was announced is not what was released.",
            "Audit with the configuration that the release was made from.",
        )


def _check_account(book: Ledger, asked: LedgerRequest | None) -> Iterator[Finding]:
    """Owner and cap, as the configuration has them."""
    if asked is None:
        return
    if book.owner != asked.owner:
        yield _ledger_contradiction(
            f"The ledger is of {book.owner}, the configuration is of {asked.owner}",
            "A ledger accounts for its own riders; charges for others say nothing about these.",
            REWRITTEN_NOTE,
            "Audit with the ledger that the configuration names.",
        )
    if asked.cap is None:
        return
    delta = book.cap.delta if asked.cap_delta is None else asked.cap_delta
    caps = Caps.of(asked.cap, delta, currency=book.currency)
    if caps != book.caps:
        yield _ledger_contradiction(
            f"The ledger's cap is {book.caps}, the configuration's {caps}",
            f"Entry 1 of {book.path.name} opens it with a cap of {book.caps}. A cap is fixed when a ledger is created.",
            "A ledger begun anew with a higher cap lets more be spent than was announced.",
        )


def _check_amount(entries: tuple[Entry, ...], at: Entry, manifest: Manifest) -> Iterator[Finding]:
    paid, running = at.amount, manifest.get("running")
    try:
        due, span = _charges_due(manifest, paid.currency)
    except (CbdpError, KeyError, TypeError, ValueError, ArithmeticError):
        return  # what cannot be understood is a finding of its own
    if paid != due:
        yield _ledger_contradiction(
            f"Entry {at.sequence} of the ledger charges {paid}, the release claims {due}",
            f"Charged were {paid}; privacy/spent of {MANIFEST} comes to {due}.",
            "A release that was charged too little leaves room for more than the cap allows.",
            "Find out which of the two was changed; the ledger's chain protects the charge.",
        )
    before = [e for e in entries if e.event == "reserved" and e.sequence < at.sequence]
    if running is not None and all(
        (e.fields["request"], e.amount) != (running["request"], span) for e in before
    ):
        yield _ledger_contradiction(
            f"The ledger holds no charge of {span} for the running totals since {running['first']}",
            f"running/request of {MANIFEST} is {running['request'][:12]}…; no earlier entry charges that.",
            ATTACK_ON_UNCHARGED,
        )


def _charges_due(manifest: Manifest, currency: PrivacyMeasure) -> tuple[Amount, Amount | None]:
    """What the release itself costs, and the span of running totals that it is part of: two charges."""
    cost = guarantee_from(manifest["privacy"]).cost
    running = manifest.get("running")
    if running is None:
        return amount_charged(cost, currency), None
    span = sum((exact_from(t[cost.currency]) for t in running["tables"]), Fraction(0))
    kind = ZCDPCost if cost.currency == "rho" else DPCost
    release_charge, span_charge = (kind("", amount) for amount in (cost_amount(cost) - span, span))
    return amount_charged(release_charge, currency), amount_charged(span_charge, currency)


def _check_release_note(entries: tuple[Entry, ...], at: Entry, ours: OwnRelease) -> Iterator[Finding]:
    """The entry that notes the release, after its charge."""
    notes = [e for e in entries if e.event == "released" and e.fields["charge"] == at.fields["charge"]]
    if not notes:
        yield _ledger_contradiction(
            f"The ledger does not note that the charge of entry {at.sequence} was released",
            "The release is published, and its ledger ends before the note of its hash: it was cut off, or the run died just then.",
            REWRITTEN_NOTE,
            "If the run died, run cbdp release again, which notes the hash; otherwise "
            + TRUST_NOTE[0].lower()
            + TRUST_NOTE[1:],
        )
    elif notes[0].fields["sha256"] != ours.sha256:
        yield _ledger_contradiction(
            f"{MANIFEST} is not the one that was released",
            f"Its SHA-256 is {ours.sha256}; entry {notes[0].sequence} of the ledger notes {notes[0].fields['sha256']}.",
            "Whoever changes a file and corrects the hashes in the manifest cannot change this one.",
            "Restore the folder from a copy whose manifest has the SHA-256 that the ledger notes.",
        )
