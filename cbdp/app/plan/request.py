"""The request of a plan: a hash of everything public that decides what is released.

Where it is written, and at what confidence intervals are drawn, is not among it: to change that costs no ε.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.features import Universe
from cbdp.mechanisms import Mechanism
from cbdp.parts import settings_of
from cbdp.rounding.few import price_of
from cbdp.trips import Clock

SAID_ELSEWHERE = ("measured", "tables", "preset")  # by what is spent, or by other settings


def request_of(dataset: str, columns: Mapping[str, str], clock: Clock, mechanism: Mechanism) -> str:
    cost: Any = mechanism.claim().cost
    stated = {
        "version": 1,
        "dataset": dataset,
        "columns": dict(columns),
        "clock": [
            clock.timezone,
            clock.format,
            [[day.isoformat(), label] for day, label in dict(clock.holidays).items()],
        ],
        "universe": _universe_hash(mechanism.features.universe),
        "features": {name: list(f.by) for name, f in mechanism.features.features.items()},
        "mechanism": mechanism.name,
        "settings": _settings(mechanism),
        "unit": str(mechanism.unit),
        "person": getattr(mechanism.unit, "column", None),
        "spends": [(p.what, str(p.epsilon), str(p.delta)) for p in getattr(cost, "parts", (cost,))],
    }
    return _sha256(stated)


def _settings(mechanism: Mechanism) -> dict[str, Any]:
    """What the settings say, in the form of requests from before some of them existed."""
    stated = mechanism.recipe.settings
    settings = {n: stated[n] for n in settings_of(type(mechanism)) if n not in SAID_ELSEWHERE}
    for name in settings:
        if isinstance(array := getattr(mechanism, name), np.ndarray):
            settings[name] = _array_hash(array.astype("<f8"))
    if settings.get("estimator") == "projection":
        settings = {n: value for n, value in settings.items() if n not in ("estimator", "prior")}
    if settings.get("rounding") == "nearest":
        del settings["rounding"]
    elif "rounding" in settings:
        settings["rounding"] = [settings["rounding"], price_of(getattr(mechanism, "budget", None))]
    return settings


def _universe_hash(universe: Universe) -> str:
    dimensions = [[name, list(d.values), d.edges] for name, d in universe.dimensions.items()]
    attributes = [
        [a.name, list(a.of), list(a.labels), _array_hash(a.codes.astype("<i8"))]
        for _, a in sorted(universe.attributes.items())
    ]
    zeros = [[list(of), _array_hash(mask.astype("u1"))] for of, mask in universe.zeros]
    return _sha256([dimensions, attributes, zeros])


def _array_hash(array: NDArray[Any]) -> str:
    return hashlib.sha256(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes()).hexdigest()


def _sha256(stated: Any) -> str:
    text = json.dumps(stated, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
