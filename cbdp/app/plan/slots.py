"""One release of a series as a plan: its configuration, its days, its request, and whether unit and universe fit the calendar."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cbdp.app.config import Config, DaySpan
from cbdp.app.plan.facts import PlannedMechanism
from cbdp.app.plan.periods import Slot, check_series, series_of
from cbdp.features import FeatureDag, Universe
from cbdp.features.calendar import dates_of, day_dimension
from cbdp.features.telling import telling
from cbdp.privacy.accounting import rho_for
from cbdp.privacy.ledger import Covers, Part
from cbdp.privacy.unit import RELEASE, Person, Unit
from cbdp.release.series import PRELIMINARY
from cbdp.release.universe_files import universe_hash

GAUSSIAN = "gaussian"
FITTING: Mapping[str, tuple[str, ...]] = {  # calendar → periods of a unit that lie within one of its own
    "daily": ("release", "day"),
    "weekly": ("release", "day", "week"),
    "monthly": ("release", "day", "month"),
}


def applied(config: Config, slot: Slot) -> Config:
    """The configuration of one release: its place, its rows' place, its share of ε, its period."""
    check_series(config)
    about = config.about
    if about is not None:
        about = replace(about, period=DaySpan(slot.first.isoformat(), slot.last.isoformat()))
    return replace(
        config,
        data=replace(config.data, trips=tuple(_filled(t, slot) for t in config.data.trips)),
        output=replace(config.output, path=_path(config.output.path, slot)),
        privacy=replace(config.privacy, **_shared(config, slot)),
        about=about,
    )


def _path(written: str, slot: Slot) -> str:
    """The folder of a release; a preliminary one has a name of its own."""
    if slot.stage == PRELIMINARY and "{stage}" not in written:
        written = written.replace("{period}", f"{{period}}-{PRELIMINARY}")
    return _filled(written, slot)


def _filled(written: str, slot: Slot) -> str:
    return written.replace("{period}", slot.period).replace("{stage}", slot.stage)


def _shared(config: Config, slot: Slot) -> dict[str, Any]:
    """The amounts of [privacy] that a stage gets its share of: of ρ where the noise costs ρ, which ε and δ do not share out."""
    privacy, share = config.privacy, slot.share
    if share == 1:
        return {}
    budget = privacy.budget
    found: dict[str, Any] = {}
    if isinstance(budget, Mapping):
        found["budget"] = {name: value * share for name, value in budget.items()}
    if privacy.rho is not None:
        return found | {"rho": privacy.rho * share}
    assert privacy.epsilon is not None
    if GAUSSIAN in (privacy.law, config.mechanism.settings.get("law")) and privacy.delta:
        return found | {"epsilon": None, "rho": rho_for(privacy.epsilon, privacy.delta) * share}
    delta = None if privacy.delta is None else privacy.delta * share
    return found | {"epsilon": privacy.epsilon * share, "delta": delta}


def check_fits(config: Config, unit: Unit, universe: Universe) -> None:
    """Whether the unit's period lies within those of the calendar, and the universe is the same for all of them."""
    series = series_of(config)
    per = unit.per
    if per not in FITTING[series.calendar]:
        raise config.source.error(
            ("privacy", "unit"),
            f"the unit protects one {per} of a person, and releases are {series.calendar}: one {per} would be in several "
            f"releases, each of which costs ε. Protect a person per {' or '.join(FITTING[series.calendar][1:])}, or release "
            f"{'monthly' if per == 'month' else 'weekly'}",
        )
    start = dt.date.fromisoformat(series.start)
    if per == "week" and start.weekday() != 0:
        monday = start + dt.timedelta(days=7 - start.weekday())
        raise config.source.error(
            ("series", "start"),
            f"the unit's weeks begin on Monday, and start is a {start:%A}: write {monday}, or protect a person per release",
        )
    named = day_dimension(universe.dimensions)
    if named is not None and dates_of(universe.dimensions[named]) is not None:
        raise config.source.error(
            ("universe", "days"),
            "all releases of a series have one universe, and this one lists dates: leave universe.days out, or list types of "
            'days like ["weekday", "saturday", "sunday"]',
        )


def request_of_slot(config: Config, slot: Slot) -> str:
    """What the ledger knows a release of a series by: the period, whatever else has changed, so that it is made once."""
    series, data = series_of(config), config.data
    days = [slot.first.isoformat(), slot.last.isoformat()]
    stated = ["series", data.id, data.riders, series.name, slot.period, *days, slot.stage]
    return hashlib.sha256(json.dumps(stated).encode()).hexdigest()


def part_of(config: Config, slot: Slot, features: FeatureDag) -> Part:
    series = series_of(config)
    return Part(series.name, series.version, slot.period, slot.stage, shape_of(features))


def shape_of(features: FeatureDag) -> str:
    """A hash of universe and features."""
    listed = {name: sorted(feature.by) for name, feature in features.features.items()}
    text = json.dumps([universe_hash(features.universe), listed], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def covers_of(
    unit: Unit, universe: Universe, slot: Slot | None, mechanism: PlannedMechanism | None = None
) -> Covers:
    """The days that a release looks at: of its period, or those that the universe lists; and whether all that is measured tells them apart."""
    if slot is not None:
        return Covers.of(unit, slot.first, slot.last)
    named = day_dimension(universe.dimensions)
    dates = None if named is None else dates_of(universe.dimensions[named])
    if not dates:
        return Covers.of(unit)
    apart = mechanism is not None and tells_periods_apart(mechanism)
    return Covers.of(unit, min(dates), max(dates), apart=apart)


def tells_periods_apart(mechanism: PlannedMechanism) -> bool:
    """Whether no count that is measured holds trips of two periods of the unit; where that is a trip, of two days."""
    unit = mechanism.unit
    per = unit.per if isinstance(unit, Person) else "day"
    if per == RELEASE:
        return False
    asked = [answer.feature for answer in mechanism.answers()]
    return bool(asked) and all(telling(mechanism.measured_features, name, per).periods for name in asked)
