"""The benchmark of persons: its riders commute, and what it compares is what it says."""

from __future__ import annotations

import argparse
import collections

import numpy as np
import pytest

import cbdp
from benchmarks import persons
from benchmarks.riders import population
from cbdp.features import SINGLETON


def test_most_trips_repeat() -> None:
    """Of the trips of a rider, most are the same two, day after day."""
    people = population(stops=20, riders=300, seed=1)
    trips = people.trips.to_pydict()
    pairs = collections.Counter(zip(trips["card"], trips["origin"], trips["destination"], strict=True))
    repeated = sum(n for n in pairs.values() if n >= 8)
    assert repeated > 0.6 * people.trips.num_rows
    assert people.truth.sum() == people.trips.num_rows, "all are inside the universe"


def test_the_same_promise_is_kept_by_all() -> None:
    """Every mechanism protects the same unit with the same ε, and δ at most."""
    people = population(stops=6, riders=20, many_days=2)
    unit = cbdp.Person("card", 2, "day", "time")
    for way in persons.WAYS:
        for law in persons.LAWS:
            claim = persons.mechanism_of(way, law, unit, people, "1", "1e-6", "balanced").claim()
            assert claim.holds
            assert claim.unit == unit
            assert float(claim.cost.epsilon) <= 1
            assert float(claim.cost.delta) <= 1e-6


def test_errors_are_against_all_trips(monkeypatch: pytest.MonkeyPatch) -> None:
    """With next to no noise, what is left of the error of the total is what the bound dropped."""
    monkeypatch.setattr(persons, "MOST", {"day": (1,)})
    people = population(stops=6, riders=100, many_days=3)
    given = argparse.Namespace(epsilon="1000", delta="1e-6", budget="balanced", runs=1)
    found = list(persons.rows(people, "day", given))
    assert {r.key for r in found} == {
        (w, law, a) for w in persons.WAYS for law in persons.LAWS for a in (None, "time")
    }
    for row in found:
        if row.law == "geometric":
            dropped = (1 - row.kept) * people.truth.sum()
            assert row.errors["total"] == pytest.approx(dropped, abs=2)
            assert np.isfinite(row.errors[SINGLETON])
    assert "geometric, not apart" in persons.winners(found)
    assert persons.said(found).count("\n") == len(found) + 1
