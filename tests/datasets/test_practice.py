"""The practice files: the same invented trips, written three ways."""

from __future__ import annotations

import csv
import io
from collections import Counter

from cbdp.datasets import practice


def _rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(practice.practice_files()[name])))


def test_counts_are_sums_of_the_trips() -> None:
    """By date, hour, origin and destination."""
    summed = Counter(
        (r["start_time"][:10], str(int(r["start_time"][11:13])), r["from_stop"], r["to_stop"])
        for r in _rows("trips.csv")
    )
    counted = {(r["date"], r["hour"], r["from"], r["to"]): int(r["count"]) for r in _rows("counts.csv")}
    assert counted == summed


def test_a_cards_taps_are_on_and_off_in_turn() -> None:
    """Nobody is on two trips at once."""
    last: dict[str, str] = {}
    for row in _rows("taps.csv"):
        assert row["tap"] != last.get(row["card"], "off")
        last[row["card"]] = row["tap"]
    assert set(last.values()) == {"off"}


def test_trips_are_between_different_stops_of_the_list() -> None:
    """And another seed gives other trips of the same town."""
    ids = {stop.id for stop in practice.stops()}
    assert all(t.origin != t.destination and {t.origin, t.destination} <= ids for t in practice.trips())
    assert practice.trips(1) != practice.trips(0)
