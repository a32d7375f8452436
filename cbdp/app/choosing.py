"""`cbdp choose`: buy a public max_trips, a private quantile by the exponential mechanism (McSherry and Talwar 2007; Smith 2011).

Count, charge, draw, write, note; an identical purchase is made once.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from cbdp.app.inspecting import reading_of
from cbdp.app.trips import service_days
from cbdp.config import Config
from cbdp.counting import loads_of
from cbdp.counting.plausibility import Accepted, Plausibility, Share, refuse_dropped, refuse_unusual
from cbdp.counting.reading import TripReading, look
from cbdp.forecast.account import (
    Choice,
    bought_max_trips,
    noted_choice,
    place_of_choice,
    refuse_in_series,
    request_of_choice,
    requested_quantile,
    statement_of_choice,
    write_choice,
)
from cbdp.forecast.calendar import covers_of
from cbdp.forecast.continuity import check_alike
from cbdp.ledger import ChargeScope, Ledger
from cbdp.measuring.exact_sampling import exponential_mechanism
from cbdp.privacy.entropy import Entropy, SystemEntropy
from cbdp.privacy.unit import Person


def buy(
    config: Config,
    entropy: Entropy | None = None,
    *,
    accept_dropped: bool = False,
    accept_unusual: bool = False,
) -> Choice:
    """The max_trips that a configuration asks for: bought now, or before. What would stop a release stops it, unless that is accepted."""
    if requested_quantile(config) is None:
        raise config.source.error(
            ("privacy", "unit"),
            "there is nothing to buy: write max_trips = { quantile = 0.95, epsilon = 0.05 } in privacy.unit",
        )
    refuse_in_series(config)
    reading = reading_of(config)
    unit = reading.unit
    assert isinstance(unit, Person)
    request = request_of_choice(config, reading.universe, reading.columns, reading.clock, unit)
    place = place_of_choice(config, request)
    before = bought_max_trips(config, request)
    if before is not None:
        return Choice(before, place, fresh=False)
    _must_exist(config)
    _judge(reading, Accepted(accept_dropped, accept_unusual))
    check_alike(config, _covered(reading), config.path(config.privacy.ledger))
    trips, persons = loads_of(
        reading.trips, reading.universe, unit, columns=reading.columns, clock=reading.clock
    )
    return _bought(config, reading, unit, request, place, (trips, persons), entropy or SystemEntropy())


def _judge(reading: TripReading, accepted: Accepted) -> None:
    """Stop before the charge where the rows would stop a release; how many trips are kept is not known yet."""
    if accepted.dropped and accepted.unusual:
        return
    inspection = look(reading)
    if not accepted.dropped:
        refuse_dropped(reading, (Share(inspection.read, inspection.counted),))
    if not accepted.unusual:
        refuse_unusual(Plausibility(reading, inspection.read), inspection.trips, inspection.trips)


def _covered(reading: TripReading) -> ChargeScope:
    """The days and the unit that the charge is for, and how rows are given these days: as for the release that follows."""
    covers = covers_of(reading.unit, reading.universe, None)
    if covers.first is None and covers.per == "release":
        return covers  # it tells no days apart
    days = service_days(reading.columns, reading.universe, reading.clock, reading.schema)
    return replace(covers, days=days)


def _must_exist(config: Config) -> None:
    path = config.path(config.privacy.ledger)
    if not (path.parent.is_dir() and Ledger.started(path)):
        raise config.source.error(
            ("privacy", "ledger"),
            f"there is no ledger at {str(path)!r}: create it with `cbdp ledger create`, for these trips once",
        )


def _bought(
    config: Config,
    reading: TripReading,
    unit: Person,
    request: str,
    place: Path,
    loads: tuple[list[int], list[int]],
    entropy: Entropy,
) -> Choice:
    """The charge, the draw, the file, the note: a run that dies leaves ε spent, and nothing drawn twice under one charge."""
    assert unit.bought is not None
    ledger = config.path(config.privacy.ledger)
    with (
        Ledger.open(ledger, dataset=config.data.id, riders=config.data.riders) as book,
        book.lock(request),
    ):
        noted = noted_choice(book, request, place)
        if noted is not None:
            return noted
        covers = _covered(reading)
        charge = book.reserve(request, epsilon=unit.bought.epsilon, what="max_trips", covers=covers)
        most = exponential_mechanism(unit.bought, *loads, entropy)
        text = statement_of_choice(unit, most, book.statement(charge))
        write_choice(place, text)
        book.released(charge, hashlib.sha256(text).hexdigest(), place)
    return Choice(most, place, fresh=True)
