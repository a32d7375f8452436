"""The mechanism of a plan, with its settings, its budget and its δ."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from cbdp.app.config import Config
from cbdp.app.config.choices import budgets, laws, mechanisms
from cbdp.app.plan.chosen import check_chosen
from cbdp.app.plan.features import check_features
from cbdp.app.plan.prior import weights_of
from cbdp.app.plan.public_counts import public_counts
from cbdp.features import SINGLETON, TOTAL, FeatureDag
from cbdp.measuring import DENSE
from cbdp.mechanisms import Mechanism
from cbdp.mechanisms.either_law import EitherLaw
from cbdp.parts import Parts, Setting, settings_of
from cbdp.privacy.laws import LAWS
from cbdp.privacy.unit import Unit

OPTIMAL = "optimal"  # the budget that goes by a target


def mechanism_of(config: Config, features: FeatureDag, unit: Unit) -> Mechanism:
    with config.source.at("mechanism", "name"):
        cls: type[Mechanism] = mechanisms().get(config.mechanism.name)
    settings = (
        _settings(config, cls, features)
        | _budget(config, cls, features)
        | _law(config, cls)
        | _delta(config, cls, features)
        | _public(config, cls, features)
    )
    privacy = config.privacy
    where: tuple[str, ...] = ("mechanism",)
    if privacy.target is not None:
        where = ("privacy", "target")
    elif isinstance(privacy.budget, Mapping) or privacy.budget == OPTIMAL:
        where = ("privacy", "budget")
    elif privacy.law is not None:
        where = ("privacy", "law")
    with config.source.at(*where):
        return cls(features, privacy.epsilon, unit, **settings)


def _has(cls: type[Mechanism], name: str) -> bool:
    return name in [f.name for f in dataclasses.fields(cls)]


def _settings(config: Config, cls: type[Mechanism], features: FeatureDag) -> dict[str, Any]:
    """The settings that are written, checked against the features, the installed parts and the files."""
    declared = settings_of(cls)
    made: dict[str, Any] = {}
    for name, value in config.mechanism.settings.items():
        keys = ("mechanism", name)
        if declared[name].kind == "names" or isinstance(value, Mapping):
            check_features(config, features, keys, value)
        with config.source.at(*keys):
            made |= _made(config, features, name, declared[name], value)
    if SINGLETON not in made.get("measured", [SINGLETON]):
        raise config.source.error(
            ("mechanism", "measured"), f"{SINGLETON!r} is not measured: every trip type needs a noisy count"
        )
    return made


def _made(config: Config, features: FeatureDag, name: str, declared: Setting, value: Any) -> dict[str, Any]:
    """What the mechanism is given for a setting."""
    if isinstance(declared.choices, Parts) and isinstance(value, str):
        check_chosen(declared.choices, value)
    if declared.kind != "file":
        return {name: value}
    weights, source = weights_of(config, features.universe, value, DENSE)
    return {name: weights, f"{name}_source": source}


def _budget(config: Config, cls: type[Mechanism], features: FeatureDag) -> dict[str, Any]:
    """How ε is shared: as it is written, or for a target."""
    privacy = config.privacy
    made: dict[str, Any] = {}
    if privacy.budget is not None:
        if not _has(cls, "budget"):
            raise config.source.error(
                ("privacy", "budget"),
                f"{cls.name} measures once and has no budget to share: leave budget out",
            )
        with config.source.at("privacy", "budget"):
            if isinstance(privacy.budget, Mapping):
                check_features(config, features, ("privacy", "budget"), privacy.budget)
            else:
                check_chosen(budgets(), privacy.budget)
        made["budget"] = privacy.budget
    if privacy.target is not None:
        if not _has(cls, "target"):
            raise config.source.error(
                ("privacy", "target"), f"{cls.name} cannot share ε for a target: leave target out"
            )
        check_features(config, features, ("privacy", "target"), privacy.target)
        made |= {
            "target": privacy.target,
            "expected_trips": config.data.expected_trips,
            "expected_filled": config.data.expected_filled,
        }
    return made


def _public(config: Config, cls: type[Mechanism], features: FeatureDag) -> dict[str, Any]:
    """Counts that are public already, for a mechanism that can meet them."""
    if config.privacy.public is None:
        return {}
    if not _has(cls, "public"):
        raise config.source.error(
            ("privacy", "public"),
            f"{cls.name} cannot meet public counts: leave public out, or use constraint-based",
        )
    return {"public": public_counts(config, features)}


def _law(config: Config, cls: type[Mechanism]) -> dict[str, Any]:
    """The law of the noise and what it is paid for in; the mechanism says which go together."""
    privacy, own = config.privacy, config.mechanism.settings.get("law")
    if not issubclass(cls, EitherLaw):
        for name in ("law", "rho"):
            if getattr(privacy, name) is not None:
                raise config.source.error(
                    ("privacy", name), f"{cls.name} draws geometric noise and spends ε: leave {name} out"
                )
        return {}
    if privacy.law is not None and own not in (None, privacy.law):
        raise config.source.error(
            ("privacy", "law"),
            f"law is {privacy.law!r} here and {own!r} in [mechanism]: leave one of them out",
        )
    with config.source.at(*(("privacy", "law") if own is None else ("mechanism", "law"))):
        chosen: str = privacy.law or own or cls.law
        check_chosen(laws(), chosen)
        currency = LAWS.get(chosen).currency
    given = {"rho": privacy.rho, "delta": privacy.delta or None}
    for name, value in given.items():
        if currency == "epsilon" and value is not None:
            raise config.source.error(
                ("privacy", name),
                f'law {chosen!r} spends pure ε, and no {"ρ" if name == "rho" else "δ"}: leave {name} out, or write law = "gaussian"',
            )
    return {"law": chosen} | {name: value for name, value in given.items() if value is not None}


def _delta(config: Config, cls: type[Mechanism], features: FeatureDag) -> dict[str, Any]:
    """δ is stated for the whole release, and shared evenly among the tables that need it."""
    delta = config.privacy.delta
    if issubclass(cls, EitherLaw):
        return {}
    if not _has(cls, "delta"):
        if delta:
            raise config.source.error(("privacy", "delta"), f"{cls.name} spends no δ: leave delta out")
        return {}
    if not delta:
        raise config.source.error(
            ("privacy", "delta"), f"{cls.name} skips zeros and pays with δ: give a delta above 0, like 1e-6"
        )
    tables = config.mechanism.settings.get("tables") or [n for n in features.features if n != TOTAL]
    return {"delta": delta / len(tables)}
