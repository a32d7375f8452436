"""SUMO relations, read back by sumolib."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from urllib.parse import unquote

import pytest
from exported import city_release, read_sumo, released_trips, zone_trips

import cbdp
from cbdp.errors import InputError
from cbdp.release.export import export
from cbdp.release.export.flows import flows_of

VEHICLES = "DEFAULT_VEHTYPE"  # od2trips takes an interval's id for the type of its vehicles
CLOCK = {"21600": "06:00", "25200": "07:00"}


def test_sumo_relations_are_read_by_sumolib(tmp_path: Path) -> None:
    """An interval per period with its seconds; from is the origin, to the destination."""
    release, trips = city_release()
    export(release, tmp_path / "out.xml", "sumo")
    intervals = read_sumo(tmp_path / "out.xml")
    assert [i[:3] for i in intervals] == [(VEHICLES, "21600", "25200"), (VEHICLES, "25200", "28800")]
    found = {(int(o), int(d), CLOCK[begin]): n for _, begin, _, rows in intervals for o, d, n in rows}
    assert found == trips
    assert "period: 06:00\n" in (tmp_path / "out.xml").read_text("utf-8")


def test_sumo_of_zones_and_awkward_text(tmp_path: Path) -> None:
    """Ampersands, quotes, spaces and per cent signs in ids come back: they are written as in web addresses."""
    release, trips = city_release()
    export(release, tmp_path / "zones.xml", "sumo", level="zone")
    found = {
        (unquote(o), unquote(d), CLOCK[begin]): n
        for _, begin, _, rows in read_sumo(tmp_path / "zones.xml")
        for o, d, n in rows
    }
    assert found == zone_trips(trips)
    awkward, trips = city_release(("<a>", '"b"', "c & d", "'e' 50%26"))
    export(awkward, tmp_path / "text.xml", "sumo")
    found = {
        (unquote(o), unquote(d), CLOCK[begin]): n
        for _, begin, _, rows in read_sumo(tmp_path / "text.xml")
        for o, d, n in rows
    }
    assert found == trips
    broken, _ = city_release(("a\x00", "b", "c", "d"))
    with pytest.raises(InputError, match="XML cannot hold"):
        export(broken, tmp_path / "broken.xml", "sumo")


def test_days_follow_each_other(tmp_path: Path) -> None:
    """With dates as a dimension, each day's periods begin 24 hours after the last day's; a trip is in one of them."""
    for days in ([dt.date(2026, 3, 2), dt.date(2026, 3, 4)], ["2026-03-02", "2026-03-04"]):
        universe = cbdp.Universe(
            day=days, destination=["A", "B"], origin=["A", "B"], time=cbdp.periods("06:00", "07:00", "30min")
        )
        release = released_trips(universe, {(days[0], "A", "B", "06:30"): 2, (days[1], "B", "A", "06:00"): 3})
        path = tmp_path / f"{type(days[0]).__name__}.xml"
        export(release, path, "sumo")
        found = [i for i in read_sumo(path) if i[3]]
        assert found == [
            (VEHICLES, str(23400), str(25200), [("B", "A", 2)]),
            (VEHICLES, str(21600 + 2 * 86400), str(23400 + 2 * 86400), [("A", "B", 3)]),
        ]


@pytest.mark.parametrize(
    ("days", "first"),
    [
        (["weekday", "saturday", "sunday"], [0, 1, 2]),
        (["sunday", "saturday", "weekday"], [2, 1, 0]),
        (["weekend", "weekday"], [1, 0]),
        (["school", "holiday"], [0, 1]),
        (["tuesday", "monday"], [1, 0]),
    ],
)
def test_types_of_days_are_apart_in_time(days: list[str], first: list[int]) -> None:
    """Each has 24 hours of its own, in the order of the week where it has one; other dimensions share them."""
    universe = cbdp.Universe(
        origin=["A"],
        destination=["B"],
        kind=["x", "y"],
        day=days,
        time=cbdp.periods("06:00", "07:00", "30min"),
    )
    made = flows_of(released_trips(universe, {("A", "B", "y", days[0], "06:30"): 1}))
    for period in made.periods:
        at = dict(period.labels)
        second = {"06:00": 21600, "06:30": 23400}[at["time"]]
        assert period.begin == second + 86400 * first[days.index(at["day"])]
