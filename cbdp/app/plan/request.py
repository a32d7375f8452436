"""The request of a plan: what identifies a release, so that the same one is not paid for twice.

It is two hashes: one of everything public that decides what is released, and one of the trips' whereabouts (`source`). An audit
compares the first alone, for trips may be moved after a release. Where the release is written, at what confidence intervals
are drawn, and what it says about itself is in neither: to change that costs no ε.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from cbdp.app.config import Config, DataSection
from cbdp.mechanisms import Mechanism
from cbdp.parts import settings_of
from cbdp.privacy.composition import RhoSpend, Spend, spends_of
from cbdp.release.universe_files import universe_hash
from cbdp.rounding.few import price_of
from cbdp.trips import Clock

VERSION = 2
GEOMETRIC = "geometric"  # the law that goes without saying
SPELLING = ("measured", "tables", "preset")  # what is spent, and the other settings, say the same
# Of [data]: what is stated by other parts of the request, and what decides no count. All that is not listed counts.
ELSEWHERE = (
    "trips",
    "id",
    "columns",
    "timezone",
    "time_format",
    "holidays",
    "day_starts",
    "stops",
    "stop_columns",
)
NO_COUNT = ("riders", "expected_trips", "expected_filled")


def request_of(asked: str, source: str) -> str:
    return f"{asked}:{source}"


def asked_of(config: Config, columns: Mapping[str, str], clock: Clock, mechanism: Mechanism) -> str:
    """A hash of all that is public and decides what is released; `columns` are those of the dimensions."""
    features, cost = mechanism.features, mechanism.claim().cost
    stated = {
        "version": VERSION,
        "dataset": config.data.id,
        "reading": _reading(config.data, columns),
        "clock": _clock(clock),
        "universe": universe_hash(features.universe),
        "features": {name: list(feature.by) for name, feature in features.features.items()},
        "recipe": _recipe(mechanism),
        "unit": [str(mechanism.unit), getattr(mechanism.unit, "column", None)],
        "spends": [_spend(p) for p in spends_of(cost)],
        "cost": [str(cost.epsilon), str(cost.delta)],
    }
    law = getattr(mechanism, "law", GEOMETRIC)
    if law != GEOMETRIC:
        stated["law"] = law
    if mechanism.recipe.public:
        stated["public"] = dict(mechanism.recipe.public)
    text = json.dumps(stated, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _spend(part: Spend | RhoSpend) -> list[str]:
    if isinstance(part, RhoSpend):
        return [part.what, "rho", str(part.rho)]
    return [part.what, str(part.epsilon), str(part.delta)]


def _clock(clock: Clock) -> dict[str, str]:
    """What is set; of settings that older versions had not, only what is not the default, so that their requests stay the same."""
    newer = {f.name for f in fields(clock) if f.name == "day_starts" and getattr(clock, f.name) == f.default}
    return {f.name: repr(getattr(clock, f.name)) for f in fields(clock) if f.name not in newer}


def _reading(data: DataSection, columns: Mapping[str, str]) -> dict[str, Any]:
    """How rows are read. The column of persons counts where persons are protected, and then the unit names it.

    Settings that are not made are left out, so that one that an older version had not leaves its requests as they were.
    """
    others = {role: column for role, column in data.columns.items() if role not in ("person", "day")}
    further = {
        f.name: repr(getattr(data, f.name)) for f in fields(data) if f.name not in ELSEWHERE + NO_COUNT
    }
    unset = {f.name: repr(f.default) for f in fields(data) if f.default is not MISSING}
    unset |= {f.name: repr(f.default_factory()) for f in fields(data) if f.default_factory is not MISSING}
    stated = {name: value for name, value in further.items() if value != unset.get(name)}
    return {"columns": others | dict(columns), **stated}


def _recipe(mechanism: Mechanism) -> dict[str, Any]:
    """The recipe without what can be spelt in several ways and is said by what is spent."""
    stated = mechanism.recipe.settings
    settings = {n: stated[n] for n in settings_of(type(mechanism)) if n not in SPELLING}
    if settings.get("rounding") == "few":  # its price is by the budget's name, beyond what that spends
        settings["rounding"] = ["few", price_of(getattr(mechanism, "budget", None))]
    return {"mechanism": mechanism.name, "settings": settings}
