"""What identifies a release, or the purchase of a max_trips, so that the same one is not paid for twice; and what a purchase leaves on disk."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

from cbdp.config import Config, DataSection, UnitSection
from cbdp.config.sections import PrivateQuantileSection
from cbdp.errors import InputError
from cbdp.features import Universe
from cbdp.forecast.plan import PlannedMechanism
from cbdp.ledger import Charge, Ledger
from cbdp.parts import settings_of
from cbdp.privacy.accounting import DPCost, ZCDPCost, single_costs
from cbdp.privacy.unit import MAX_TRIPS_CANDIDATES, RELEASE, Person, PrivateQuantile, Unit
from cbdp.release.layout import universe_hash
from cbdp.release.serialization import Recipe, unit_json
from cbdp.rounding.roundings import cost_per_wrong_type
from cbdp_features.calendar import day_dimension


class RecordedMechanism(PlannedMechanism, Protocol):
    """A mechanism whose settings are a recipe."""

    @property
    def recipe(self) -> Recipe: ...
    @property
    def protected(self) -> Unit: ...


class ClockSettings(Protocol):
    """How times are read, as a frozen record of settings."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


# The request of a release
#
# It is a hash of everything public that decides what is released, and one of the trips' whereabouts. An audit compares the first alone, for trips
# may be moved after a release. The output's path, the confidence of intervals and [about] are in neither: to change them costs no ε.


REQUEST_VERSION = 2  # of what is hashed: another number, and no earlier release is recognised
GEOMETRIC = "geometric"  # the law that goes without saying
SETTINGS_STATED_BY_COST = (
    "measured",
    "tables",
    "preset",
)  # what is spent, and the other settings, say the same
# Of [data]: what is stated by other parts of the request, and what decides no count. All that is not listed counts.
DATA_STATED_ELSEWHERE = (
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
DATA_WITHOUT_EFFECT = ("riders", "expected_trips", "expected_filled")


def request_of(asked: str, source: str) -> str:
    return f"{asked}:{source}"


def public_request_of(
    config: Config, columns: Mapping[str, str], clock: ClockSettings, mechanism: RecordedMechanism
) -> str:
    """A hash of all that is public and decides what is released; `columns` are those of the dimensions."""
    features, cost = mechanism.features, mechanism.claim().cost
    stated = {
        "version": REQUEST_VERSION,
        "dataset": config.data.id,
        "reading": _reading(config.data, columns),
        "clock": _clock(clock),
        "universe": universe_hash(features.universe),
        "features": {name: list(feature.by) for name, feature in features.features.items()},
        "recipe": _recipe(mechanism),
        "unit": [str(mechanism.protected), getattr(mechanism.protected, "column", None)],
        "spends": [_spend(p) for p in single_costs(cost)],
        "cost": [str(cost.epsilon), str(cost.delta)],
    }
    law = getattr(mechanism, "law", GEOMETRIC)
    if law != GEOMETRIC:
        stated["law"] = law
    if mechanism.recipe.public:
        stated["public"] = dict(mechanism.recipe.public)
    text = json.dumps(stated, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _spend(part: DPCost | ZCDPCost) -> list[str]:
    if isinstance(part, ZCDPCost):
        return [part.what, "rho", str(part.rho)]
    return [part.what, str(part.epsilon), str(part.delta)]


def _clock(clock: ClockSettings) -> dict[str, str]:
    """What is set; of settings that older versions had not, only what is not the default, so that their requests stay the same."""
    newer = {f.name for f in fields(clock) if f.name == "day_starts" and getattr(clock, f.name) == f.default}
    return {f.name: repr(getattr(clock, f.name)) for f in fields(clock) if f.name not in newer}


def _reading(data: DataSection, columns: Mapping[str, str]) -> dict[str, Any]:
    """How rows are read. The column of persons counts where persons are protected, and then the unit names it.

    Settings that are not made are left out, so that one that an older version had not leaves its requests as they were.
    """
    others = {role: column for role, column in data.columns.items() if role not in ("person", "day")}
    further = {
        f.name: repr(getattr(data, f.name))
        for f in fields(data)
        if f.name not in DATA_STATED_ELSEWHERE + DATA_WITHOUT_EFFECT
    }
    unset = {f.name: repr(f.default) for f in fields(data) if f.default is not MISSING}
    unset |= {f.name: repr(f.default_factory()) for f in fields(data) if f.default_factory is not MISSING}
    stated = {name: value for name, value in further.items() if value != unset.get(name)}
    return {"columns": others | dict(columns), **stated}


def _recipe(mechanism: RecordedMechanism) -> dict[str, Any]:
    """The recipe without what can be spelt in several ways and is said by what is spent."""
    stated = mechanism.recipe.settings
    settings = {n: stated[n] for n in settings_of(type(mechanism)) if n not in SETTINGS_STATED_BY_COST}
    if settings.get("rounding") == "few":  # its price is by the budget's name, beyond what that spends
        settings["rounding"] = ["few", cost_per_wrong_type(getattr(mechanism, "budget", None))]
    return {"mechanism": mechanism.name, "settings": settings}


# A max_trips that is bought (`cbdp choose`): a charge of its own, whose ε is part of the release's


MAX_TRIPS_UNTIL_BOUGHT = 10  # trips of a person that `cbdp check` goes by until max_trips is bought


def requested_quantile(config: Config) -> PrivateQuantile | None:
    """The purchase that a configuration asks for."""
    unit = config.privacy.unit
    max_trips = unit.max_trips if isinstance(unit, UnitSection) else None
    if not isinstance(max_trips, PrivateQuantileSection):
        return None
    with config.source.at("privacy", "unit", "max_trips"):
        return PrivateQuantile(max_trips.quantile, max_trips.epsilon)


def refuse_in_series(config: Config) -> None:
    """A series has one max_trips for all its releases, and most of their rows are still to come."""
    if config.series is not None and requested_quantile(config) is not None:
        raise config.source.error(
            ("privacy", "unit", "max_trips"),
            "a series states its max_trips before its rows are there: buy it with the trips of a past period, by `cbdp choose` with a "
            "configuration without [series] that names the same ledger, and write the number here",
        )


def request_of_choice(
    config: Config, universe: Universe, columns: Mapping[str, str], clock: object, unit: Person
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


def bought_max_trips(config: Config, request: str) -> int | None:
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
    return max_trips_in(json.loads(text))


def max_trips_in(stated: Mapping[str, Any]) -> int:
    most = stated["max_trips"]
    if most not in MAX_TRIPS_CANDIDATES:
        raise InputError(f"max_trips is {most!r}, which is no candidate: restore the file")
    return int(most)


def with_bought_max_trips(
    config: Config, universe: Universe, columns: Mapping[str, str], clock: object, unit: Person
) -> Person:
    """The unit with the max_trips that was bought, or with a guess."""
    if unit.bought is None:
        return unit
    most = bought_max_trips(config, request_of_choice(config, universe, columns, clock, unit))
    return unit if most is None else replace(unit, max_trips=most)


def is_unbought(
    config: Config, universe: Universe, columns: Mapping[str, str], clock: object, unit: Unit
) -> bool:
    """Whether the unit's max_trips is a guess, because nothing was bought yet."""
    if not isinstance(unit, Person) or unit.bought is None:
        return False
    return bought_max_trips(config, request_of_choice(config, universe, columns, clock, unit)) is None


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


@dataclass(frozen=True)
class Choice:
    """What was bought, where that is written, and whether this run paid for it."""

    max_trips: int
    path: Path
    fresh: bool


def noted_choice(book: Ledger, request: str, place: Path) -> Choice | None:
    """What another run bought meanwhile, or one that died before its note."""
    done = book.finished(request)
    if done is None:
        charge = _unnoted(book, request, place)
        if charge is None:
            return None
        book.released(charge, hashlib.sha256(place.read_bytes()).hexdigest(), place)
    return Choice(max_trips_in(json.loads(place.read_bytes())), place, fresh=False)


def _unnoted(book: Ledger, request: str, place: Path) -> Charge | None:
    if not place.is_file():
        return None
    head = json.loads(place.read_bytes())["ledger"]["head"]
    return next((c for c in book.unfinished(request) if c.head == head), None)


def statement_of_choice(unit: Person, most: int, ledger: dict[str, Any]) -> bytes:
    """What anybody may read: what was drawn, from which candidates, for what price."""
    whose = unit_json(unit)
    stated = {
        "max_trips": most,
        "candidates": [MAX_TRIPS_CANDIDATES[0], MAX_TRIPS_CANDIDATES[-1]],
        "bought": whose.get("bought"),
        "column": unit.column,
        "per": unit.per,
        "apart": unit.apart,
        "mechanism": "exponential mechanism on a quantile of how many trips persons have",
        "ledger": ledger,
    }
    return (json.dumps(stated, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def write_choice(place: Path, text: bytes) -> None:
    """Whole or not at all, and on disk."""
    part = place.with_name(f"{place.name}.part")
    with part.open("wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(place)
