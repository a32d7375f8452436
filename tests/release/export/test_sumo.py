"""SUMO relations, read back by sumolib."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from exported import city_release, read_sumo, released_trips, zone_trips

import cbdp
from cbdp.errors import InputError
from cbdp.release.export import export


def test_sumo_relations_are_read_by_sumolib(tmp_path: Path) -> None:
    """An interval per period with its seconds; from is the origin, to the destination."""
    release, trips = city_release()
    export(release, tmp_path / "out.xml", "sumo")
    intervals = read_sumo(tmp_path / "out.xml")
    assert [i[:3] for i in intervals] == [("06:00", "21600", "25200"), ("07:00", "25200", "28800")]
    found = {(int(o), int(d), name): n for name, _, _, rows in intervals for o, d, n in rows}
    assert found == trips


def test_sumo_of_zones_and_awkward_text(tmp_path: Path) -> None:
    """Ampersands, quotes and angle brackets in ids survive."""
    release, trips = city_release()
    export(release, tmp_path / "zones.xml", "sumo", level="zone")
    found = {(o, d, name): n for name, _, _, rows in read_sumo(tmp_path / "zones.xml") for o, d, n in rows}
    assert found == zone_trips(trips)
    awkward, trips = city_release(("<a>", '"b"', "c & d", "'e'"))
    export(awkward, tmp_path / "text.xml", "sumo")
    found = {(o, d, name): n for name, _, _, rows in read_sumo(tmp_path / "text.xml") for o, d, n in rows}
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
            ("2026-03-02 06:30", str(23400), str(25200), [("B", "A", 2)]),
            ("2026-03-04 06:00", str(21600 + 2 * 86400), str(23400 + 2 * 86400), [("A", "B", 3)]),
        ]
