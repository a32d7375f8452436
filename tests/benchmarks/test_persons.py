"""The benchmark of persons: its riders commute, and what it compares is what it says."""

from __future__ import annotations

import collections

import numpy as np
import pytest

import cbdp
from benchmarks import persons
from benchmarks.harness.riders import population
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
    """Every mechanism, with every budget, protects the same unit with the same ε, and δ at most."""
    people = population(stops=6, riders=20, many_days=2)
    unit = cbdp.Person("card", 2, "day", "time")
    for way, budget in persons.ways(persons.BUDGETS):
        for law in persons.LAWS:
            price = {"epsilon": "1", "delta": "1e-6"}
            claim = persons.mechanism_of(way, budget, law, unit, people, price).claim()
            assert claim.holds
            assert claim.unit == unit
            assert float(claim.cost.epsilon) <= 1
            assert float(claim.cost.delta) <= (1e-6 if law == "gaussian" else 0)


def test_errors_are_against_all_trips(monkeypatch: pytest.MonkeyPatch) -> None:
    """With next to no noise, what is left of the error of the total is what the bound dropped."""
    monkeypatch.setattr(persons, "MOST", {"day": (1,)})
    people = population(stops=6, riders=100, many_days=3)
    found = list(persons.rows([people], "day", {"epsilon": "1000", "delta": "1e-6"}))
    assert {(r.way, r.budget, r.law, r.apart) for r in found} == {
        (*way, law, apart)
        for way in persons.ways(persons.BUDGETS)
        for law in persons.LAWS
        for apart in (None, "time")
    }
    for row in found:
        if row.law == "geometric":
            dropped = (1 - row.kept) * people.truth.sum()
            assert row.errors["total"] == pytest.approx(dropped, abs=2)
            assert np.isfinite(row.errors[SINGLETON])
    assert persons.said(found).count("\n") == len(found) + 1


def test_the_best_of_each_are_named() -> None:
    """The least error of a table is that of its row; a budget's is the least over max_trips."""
    made = [
        persons.Row(way, budget, law, None, most, 1.0, dict.fromkeys(persons.TABLES, error))
        for way, budget, law, most, error in (
            ("laplace", "–", "geometric", 2, 5.0),
            ("O5", "uniform", "geometric", 2, 4.0),
            ("ours", "tables", "geometric", 2, 3.0),
            ("ours", "tables", "gaussian", 4, 2.0),
            ("ours", "leaves", "geometric", 4, 7.0),
        )
    ]
    row = persons.winners(made).splitlines()[2]
    assert [cell.strip() for cell in row.strip("| ").split("|")] == [
        "total", "ours", "tables", "gaussian", "–", "4", "5.00", "4.00", "2.00", "3.00",
    ]  # fmt: skip
