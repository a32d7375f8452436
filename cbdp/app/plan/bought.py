"""A max_trips that is bought: which purchase a configuration asks for, and what came of it, by the ledger and the file that it notes.

The purchase (`cbdp choose`) is a charge of its own. Its ε is part of the release's: what is left of that is spent on the tables.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cbdp.app.config import Config, UnitSection
from cbdp.app.config.privacy import BoughtSection
from cbdp.errors import InputError
from cbdp.features import Universe
from cbdp.features.calendar import day_dimension
from cbdp.privacy.bought import CANDIDATES, Bought
from cbdp.privacy.ledger import Ledger
from cbdp.privacy.unit import RELEASE, Person, Unit
from cbdp.release.universe_files import universe_hash
from cbdp.trips import Clock

GUESS = 10  # trips of a person that `cbdp check` goes by until max_trips is bought


def bought_of(config: Config) -> Bought | None:
    """The purchase that a configuration asks for."""
    unit = config.privacy.unit
    given = unit.max_trips if isinstance(unit, UnitSection) else None
    if not isinstance(given, BoughtSection):
        return None
    with config.source.at("privacy", "unit", "max_trips"):
        return Bought(given.quantile, given.epsilon)


def refuse_in_series(config: Config) -> None:
    """A series has one max_trips for all its releases, and most of their rows are still to come."""
    if config.series is not None and bought_of(config) is not None:
        raise config.source.error(
            ("privacy", "unit", "max_trips"),
            "a series states its max_trips before its rows are there: buy it with the trips of a past period, by `cbdp choose` with a "
            "configuration without [series] that names the same ledger, and write the number here",
        )


def request_of_choice(
    config: Config, universe: Universe, columns: Mapping[str, str], clock: Clock, unit: Person
) -> str:
    """A hash of all that is public and decides what is bought."""
    assert unit.bought is not None
    needed = {*universe.dimensions, *(["day"] if unit.per != RELEASE else [])}
    stated = {
        "dataset": config.data.id,
        "columns": {name: column for name, column in columns.items() if name in needed},
        "clock": [repr(clock)],
        "universe": universe_hash(universe),
        "person": [unit.column, unit.per, unit.apart, day_dimension(universe.dimensions)],
        "quantile": str(unit.bought.quantile),
        "epsilon": str(unit.bought.epsilon),
    }
    text = json.dumps(stated, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"max_trips:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def place_of_choice(config: Config, request: str) -> Path:
    """The public file that says what was bought, beside the ledger."""
    ledger = config.path(config.privacy.ledger)
    return ledger.with_name(f"{ledger.stem}-max_trips-{request.partition(':')[2][:16]}.json")


def choice(config: Config, request: str) -> int | None:
    """What was bought before; None: nothing yet. A file that is not the ledger's is refused."""
    ledger = config.path(config.privacy.ledger)
    if not (ledger.parent.is_dir() and Ledger.started(ledger)):
        return None
    with Ledger.view(ledger) as view:
        done = view.finished(request)
    if done is None:
        return None
    place = Path(done.path)
    text = place.read_bytes() if place.is_file() else b""
    if hashlib.sha256(text).hexdigest() != done.sha256:
        raise config.source.error(
            ("privacy", "unit", "max_trips"),
            f"max_trips was bought, and {str(place)!r} is not what was written then: restore it",
        )
    return most_in(json.loads(text))


def most_in(stated: Mapping[str, Any]) -> int:
    most = stated["max_trips"]
    if most not in CANDIDATES:
        raise InputError(f"max_trips is {most!r}, which is no candidate: restore the file")
    return int(most)


def settled(
    config: Config, universe: Universe, columns: Mapping[str, str], clock: Clock, unit: Person
) -> Person:
    """The unit with the max_trips that was bought, or with a guess."""
    if unit.bought is None:
        return unit
    most = choice(config, request_of_choice(config, universe, columns, clock, unit))
    return unit if most is None else replace(unit, max_trips=most)


def unbought(
    config: Config, universe: Universe, columns: Mapping[str, str], clock: Clock, unit: Unit
) -> bool:
    """Whether the unit's max_trips is a guess, because nothing was bought yet."""
    if not isinstance(unit, Person) or unit.bought is None:
        return False
    return choice(config, request_of_choice(config, universe, columns, clock, unit)) is None


def after_purchase(config: Config, unit: Unit) -> Config:
    """The configuration with what is left for the tables; the ledger's cap stays that of the whole."""
    if not isinstance(unit, Person) or unit.bought is None:
        return config
    privacy, paid = config.privacy, unit.bought.epsilon
    whole = privacy.epsilon if privacy.rho is None else privacy.rho
    assert whole is not None
    left = whole - (paid if privacy.rho is None else paid**2 / 2)
    if left <= 0:
        raise config.source.error(
            ("privacy", "unit", "max_trips"),
            f"max_trips costs ε = {paid}, and the release has no more than that: pay less, or spend more",
        )
    cap: Any = privacy.cap if privacy.cap is not None else whole
    spends: dict[str, Any] = {"epsilon": left} if privacy.rho is None else {"rho": left}
    return replace(config, privacy=replace(privacy, cap=cap, **spends))
