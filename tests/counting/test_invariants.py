"""A count that is wrong stops before anything is spent: the invariants find it by other code than the count's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from counting.making import parquet

import cbdp
from cbdp.counting.columns import ColumnKind, Schema
from cbdp.counting.counts import InvariantError, check_invariants, ranked_counts
from cbdp.counting.engines import CountFacts, sql
from cbdp.counting.engines.duckdb import DuckDialect
from cbdp.counting.engines.sql import Step
from cbdp.counting.plan import ContributionBound, CountingPlan, make_plan

STOPS = cbdp.Universe(stop=["A", "B"])
ROWS = {"stop": ["A", "A", "B", "A"] * 10, "card": ["x", "x", "y", "z"] * 10, "n": [2] * 40}
PERSON = cbdp.Person("card", 3)


def _tables_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = sql.lookup_tables
    monkeypatch.setattr(
        sql, "lookup_tables", lambda plan: {n: pa.concat_tables([t, t]) for n, t in tables(plan).items()}
    )


@pytest.mark.parametrize("columns", [{}, {"count": "n"}])
def test_keys_that_multiply_rows_are_found(columns: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that matches twice counts more trips than there are rows, or weights."""
    _tables_twice(monkeypatch)
    with pytest.raises(InvariantError, match="more trips were counted than there are"):
        cbdp.count(ROWS, STOPS, columns=columns)


@pytest.mark.parametrize("place", ["memory", "parquet"])
@pytest.mark.parametrize("wrong", ["CAST(random() AS VARCHAR)", "stop", "upper(CAST(v AS VARCHAR)) || rowid"])
def test_persons_that_fall_apart_are_found(
    wrong: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One person that is taken for many keeps more than all persons together may."""

    def person(self: DuckDialect, field: int, kind: ColumnKind) -> str:
        text = f"CAST({self.stored[field].expression} AS VARCHAR)"
        return (
            f"{text} || CAST(hash(random()) AS VARCHAR)"
            if "random" in wrong
            else f"{text} || md5(CAST(random() AS VARCHAR))"
        )

    monkeypatch.setattr(DuckDialect, "person", person)
    monkeypatch.setattr(DuckDialect, "ticket", lambda *_: "sha256(CAST(person AS VARCHAR))")
    trips: Any = ROWS if place == "memory" else parquet(pa.table(ROWS), tmp_path / "t.parquet")
    with pytest.raises(InvariantError, match="more than 3 trips of a person were counted"):
        cbdp.count(trips, STOPS, unit=PERSON)


def test_a_bound_that_is_too_wide_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept trips are grouped by person again, whatever the choice says of itself."""
    persons = DuckDialect.persons

    def wide(
        self: DuckDialect, bound: ContributionBound, kind: ColumnKind, secret: str, **more: bool
    ) -> list[Step]:
        return persons(self, ContributionBound(bound.person, bound.most + 1), kind, secret, **more)

    monkeypatch.setattr(DuckDialect, "persons", wide)
    with pytest.raises(InvariantError, match="more than 3 trips of a person were counted"):
        cbdp.count(ROWS, STOPS, unit=PERSON)


def test_a_type_that_comes_twice_is_not_believed() -> None:
    """Nor one without trips."""
    plan = _plan(cbdp.Trip())
    assert [
        a.tolist()
        for a in ranked_counts([(np.array([1]), np.array([5])), (np.array([0]), np.array([2]))], STOPS, plan)
    ] == [
        [0, 1],
        [2, 5],
    ]
    for flat, n in (([1, 1], [5, 5]), ([0, 1], [5, 0]), ([0], [-3])):
        with pytest.raises(InvariantError, match="trip type"):
            ranked_counts([(np.array(flat), np.array(n))], STOPS, plan)


def _plan(unit: Any) -> CountingPlan:
    schema = Schema("the trips", {"stop": pa.string(), "card": pa.string()})
    return make_plan(schema, STOPS, None, unit, cbdp.Clock())


@pytest.mark.parametrize(
    "facts",
    [
        CountFacts(read=10, inside=11, kept=11),
        CountFacts(read=10, inside=5, kept=6),
        CountFacts(read=10, inside=5, kept=5, changed=("t.parquet",)),
    ],
)
def test_every_broken_fact_stops(facts: CountFacts) -> None:
    """More counted than read, more kept than inside, a file that changed."""
    with pytest.raises(InvariantError):
        check_invariants(_plan(cbdp.Trip()), facts)


@pytest.mark.parametrize(
    "facts",
    [
        CountFacts(read=10, inside=10, kept=6),  # an engine that says nothing of persons
        CountFacts(read=10, inside=10, kept=6, most_kept=4, allowed=6),
        CountFacts(read=10, inside=10, kept=6, most_kept=3, allowed=5),
    ],
)
def test_every_broken_fact_of_persons_stops(facts: CountFacts) -> None:
    """More than the bound of one person, or of all together."""
    with pytest.raises(InvariantError):
        check_invariants(_plan(PERSON), facts)
    check_invariants(_plan(PERSON), CountFacts(read=10, inside=10, kept=6, most_kept=3, allowed=6))


def test_a_sound_count_passes() -> None:
    """The rows that were read and those inside are known to the curator's code, and are in no representation."""
    counts = cbdp.count(ROWS, STOPS, unit=PERSON)
    assert counts.value.sum() == 9
    assert counts.rows is not None
    assert (counts.rows.read, counts.rows.inside) == (40, 40)
    assert "40" not in repr(counts) + repr(counts.rows)
    weighed = cbdp.count(ROWS, STOPS, columns={"count": "n"})
    assert weighed.rows is not None
    assert weighed.rows.read == weighed.value.sum() == 80
