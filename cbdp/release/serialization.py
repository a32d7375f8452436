"""Numbers, units, costs, guarantees and recipes as manifests state them, and back. Names in a manifest are looked up among installed parts only."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, cast, overload

import numpy as np

from cbdp.errors import CbdpError, InputError
from cbdp.estimation import ESTIMATORS
from cbdp.parts import handed
from cbdp.privacy.accounting import (
    Composable,
    Cost,
    DPCost,
    EpsilonDeltaStatement,
    Parallel,
    PrivacyGuarantee,
    Sequential,
    ZCDPCost,
)
from cbdp.privacy.noise import NOISE_DISTRIBUTIONS, NoiseDistribution
from cbdp.privacy.unit import RELEASE, Person, PrivateQuantile, Trip, Unit
from cbdp.rounding import ROUNDINGS
from cbdp.untrusted import JSON
from cbdp_solvers.solution import Certificate

if TYPE_CHECKING:
    from cbdp.release.manifest_model import (
        CertificateJson,
        CostJson,
        ExactJson,
        Manifest,
        PersonUnit,
        PrivacyJson,
        PureComposition,
        PureCost,
        RecipeJson,
        RhoComposition,
        RhoCost,
        SettingsJson,
        StatedCost,
        UnitJson,
    )

MAX_FRACTION = Fraction(
    10**30
)  # no ε, ρ, δ or scale of noise is larger, and none above 0 is smaller than its reciprocal
SEEDED_SIMULATION = "a simulation from a seeded source: it protects nobody"
NEIGHBOURING_RELATIONS = {
    "add-remove": "Two data sets are neighbours if one is the other with one trip added or removed.",
    "replace": "Two data sets are neighbours if one is the other with one trip replaced by another.",
    "person": "Two data sets are neighbours if one is the other with all trips of one person{within} added or removed; "
    "at most {max_trips} trips of each person{each}, chosen at random, are counted{apart}.",
}


@dataclass(frozen=True)
class TableNoise:
    """The noise of a table that is published as it was measured: its distribution, and the threshold below which no count is shown."""

    law: NoiseDistribution
    threshold: float | None = None
    skips_zeros: bool = False  # counts of zero got no noise, and never show


@dataclass(frozen=True, eq=False)
class Recipe:
    """The mechanism by name and all its settings. Manifest, request, intervals and audit go by it."""

    mechanism: str
    settings: Mapping[str, object] = field(default_factory=dict)  # JSON
    tables: Mapping[str, TableNoise] = field(
        default_factory=dict
    )  # of tables published as they were measured

    def json(self) -> RecipeJson:
        return {"mechanism": self.mechanism, "settings": cast("SettingsJson", dict(self.settings))}

    @property
    def estimator(self) -> str | None:
        """How counts were estimated, where they were."""
        return self._text("estimator")

    @property
    def rounding(self) -> str | None:
        """How whole trips were chosen, where the mechanism says."""
        return self._text("rounding")

    @property
    def public(self) -> Mapping[str, Sequence[int]]:
        """Counts that were public already and are met exactly: by feature, in the order of its elements."""
        stated = self.settings.get("public")
        return stated if isinstance(stated, Mapping) else {}

    def rule(self, name: str) -> str | Mapping[str, object] | None:
        """A setting that is a name or goes by features, such as budget or weights, as the mechanism had it."""
        return cast("str | Mapping[str, object] | None", setting_from_json(self.settings.get(name)))

    def _text(self, name: str) -> str | None:
        stated = self.settings.get(name)
        return stated if isinstance(stated, str) else None


# Numbers, units, costs and guarantees


@overload
def exact_json(value: None) -> None: ...
@overload
def exact_json(value: Fraction | float) -> ExactJson: ...
def exact_json(value: Fraction | float | None) -> ExactJson | None:
    """A number as the fraction it is, and as a decimal near it. A float has no fraction that it was meant to be.

    >>> exact_json(Fraction(1, 5))
    {'exact': '1/5', 'decimal': 0.2}
    """
    if value is None:
        return None
    fraction = None if isinstance(value, float) else str(Fraction(value))
    return {"exact": fraction, "decimal": float(value)}


@overload
def exact_from(stated: None) -> None: ...
@overload
def exact_from(stated: ExactJson) -> Fraction: ...
def exact_from(stated: ExactJson | None) -> Fraction | None:
    """The number that `exact_json` wrote; a float passes for a fraction where none is stated.

    >>> exact_from({"exact": "1/5", "decimal": 0.2})
    Fraction(1, 5)
    """
    if stated is None:
        return None
    if stated["exact"] is None:
        return cast("Fraction", stated["decimal"])
    try:
        value = Fraction(stated["exact"])
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{stated['exact']!r} is not an exact number: write one like '1/3'") from None
    if abs(value) > MAX_FRACTION or 0 < abs(value) < 1 / MAX_FRACTION:
        raise InputError(f"the exact number {str(stated['exact'])[:40]!r} is out of all range")
    return value


def unit_json(unit: Unit) -> UnitJson:
    """The unit of privacy, with the neighbouring relation in words."""
    if not isinstance(unit, Person):
        return {
            "kind": "trip",
            "neighbours": cast("Literal['add-remove', 'replace']", unit.neighbours),
            "neighbouring": NEIGHBOURING_RELATIONS[unit.neighbours],
            "sensitivity": unit.sensitivity,
            "words": str(unit),
        }
    place = "on" if unit.per == "day" else "in"
    within, each = (
        ("", "") if unit.per == RELEASE else (f" {place} one {unit.per}", f" {place} each {unit.per}")
    )
    apart = (
        ""
        if unit.apart is None
        else f", and of those with the same {unit.apart} (and day, where days are counted) one"
    )
    stated: PersonUnit = {
        "kind": "person",
        "column": unit.column,
        "max_trips": unit.max_trips,
        "neighbouring": NEIGHBOURING_RELATIONS["person"].format(
            max_trips=unit.max_trips, within=within, each=each, apart=apart
        ),
        "sensitivity": unit.sensitivity,
        "words": str(unit),
    }
    if unit.per != RELEASE:
        stated["per"] = cast("Literal['day', 'week', 'month']", unit.per)
    if unit.apart is not None:
        stated["apart"] = unit.apart
    if unit.bought is not None:
        stated["bought"] = {
            "quantile": exact_json(unit.bought.quantile),
            "epsilon": exact_json(unit.bought.epsilon),
        }
    return stated


def unit_from(stated: UnitJson) -> Unit:
    """The unit that a manifest states; what is not stated is the default."""
    if stated["kind"] == "trip":
        return Trip(stated["neighbours"])
    paid = stated.get("bought")
    bought = (
        None if paid is None else PrivateQuantile(exact_from(paid["quantile"]), exact_from(paid["epsilon"]))
    )
    return Person(
        stated["column"], stated["max_trips"], stated.get("per", RELEASE), stated.get("apart"), bought
    )


def cost_json(cost: Cost) -> CostJson:
    """What was spent, as the tree of compositions that proves it."""
    if isinstance(cost, EpsilonDeltaStatement):
        return {
            "composition": "stated",
            "parts": [cost_json(cost.part)],
            "rho": exact_json(cost.rho),
            "epsilon": exact_json(cost.epsilon),
            "delta": exact_json(cost.delta),
        }
    if isinstance(cost, DPCost):
        return {"what": cost.what, "epsilon": exact_json(cost.epsilon), "delta": exact_json(cost.delta)}
    if isinstance(cost, ZCDPCost):
        return {"what": cost.what, "rho": exact_json(cost.rho)}
    kind: Literal["sequential", "parallel"] = "sequential" if isinstance(cost, Sequential) else "parallel"
    parts = [cost_json(part) for part in cost.parts]
    if cost.currency == "rho":
        return {"composition": kind, "of": cost.of, "parts": parts, "rho": exact_json(cost.rho)}
    epsilon, delta = exact_json(cost.epsilon), exact_json(cost.delta)
    return {"composition": kind, "of": cost.of, "parts": parts, "epsilon": epsilon, "delta": delta}


def cost_from(stated: CostJson) -> Cost:
    """The tree of compositions that a manifest states."""
    if "what" in stated:
        if "rho" in stated:
            price = cast("RhoCost", stated)
            return ZCDPCost(price["what"], exact_from(price["rho"]))
        single = cast("PureCost", stated)
        return DPCost(single["what"], exact_from(single["epsilon"]), exact_from(single["delta"]))
    if cast("StatedCost", stated)["composition"] == "stated":
        whole = cast("StatedCost", stated)
        (part,) = whole["parts"]
        return EpsilonDeltaStatement(_part_from(part), exact_from(whole["delta"]))
    composed = cast("PureComposition | RhoComposition", stated)
    parts = tuple(map(_part_from, composed["parts"]))
    return (Sequential if composed["composition"] == "sequential" else Parallel)(parts, composed["of"])


def _part_from(stated: CostJson) -> Composable:
    part = cost_from(stated)
    if isinstance(part, EpsilonDeltaStatement):
        raise InputError("an (ε, δ) is stated inside a composition: only the whole can be stated so")
    return part


def guarantee_from(privacy: PrivacyJson) -> PrivacyGuarantee:
    """The privacy guarantee that a manifest states."""
    return PrivacyGuarantee(
        unit_from(privacy["unit"]), cost_from(privacy["spent"]), privacy["holds"], privacy["caveat"]
    )


def simulated_guarantee(claim: PrivacyGuarantee) -> PrivacyGuarantee:
    """What a simulation promises: nothing. What a release would have cost stays in the tree."""
    if claim.caveat.startswith(SEEDED_SIMULATION):
        return claim
    return replace(
        claim,
        holds=False,
        caveat=SEEDED_SIMULATION if claim.holds else f"{SEEDED_SIMULATION}; {claim.caveat}",
    )


def certificate_from(stated: CertificateJson) -> Certificate:
    """The certificate that a manifest states."""
    return Certificate(**stated)


# Settings, and the names of parts among them


def setting_to_json(value: object) -> JSON:
    """A setting as JSON: fractions as text, arrays by their size and hash, objects by their name."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): setting_to_json(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value, dtype="<f8").tobytes()).hexdigest()
        return {"numbers": value.size, "sha256": digest}
    if isinstance(value, Sequence):
        return [setting_to_json(inner) for inner in value]
    return str(getattr(value, "name", type(value).__name__))


def setting_from_json(stated: object) -> object:
    """The setting that `setting_to_json` wrote, as far as it can be had back: arrays are stated by their hash only."""
    if isinstance(stated, Mapping):
        if set(stated) == {"numbers", "sha256"}:
            raise InputError("a setting is stated by its hash only: it cannot be used again")
        return {name: setting_from_json(inner) for name, inner in stated.items()}
    if isinstance(stated, list):
        return [setting_from_json(inner) for inner in stated]
    return float(stated) if stated in ("inf", "-inf", "nan") else stated


def check_installed_parts(manifest: Manifest, what: str) -> None:
    """Refuse a manifest that names parts which are not installed: a stranger's folder never says which Python code is loaded.

    Noise, estimator and rounding are needed to read a release. Of mechanism, solver and budget, which only whoever makes it again needs,
    a plain name may be unknown here.
    """
    recipe = manifest["recipe"]
    settings = recipe["settings"]
    noises = [
        *(m["law"] for m in manifest["measurements"]),
        *(t["law"] for t in manifest.get("running", {"tables": ()})["tables"]),
        *(f["noise"]["name"] for f in manifest["features"] if f["noise"] is not None),
        settings.get("law"),
    ]
    needed = [
        *((NOISE_DISTRIBUTIONS.installed, name) for name in noises),
        (ESTIMATORS.installed, settings.get("estimator")),
        (ROUNDINGS.installed, settings.get("rounding")),
    ]
    for installed, name in needed:
        if name is not None:
            _refuse_code(name, what)
            try:
                installed(name)
            except CbdpError as unknown:
                raise InputError(f"{what}: {unknown}") from None
    for part in (recipe["mechanism"], settings.get("solver"), settings.get("budget")):
        if isinstance(part, str):
            _refuse_code(part, what)


def _refuse_code(name: str, what: str) -> None:
    if ":" in name and not handed(name):
        raise InputError(
            f"{what} names code to load, {name!r}, which is not done because a file says so: install a package that registers it, "
            "or, in Python, hand it to this program before"
        )
