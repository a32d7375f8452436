"""The counting plan in the SQL of databases that are not here: it parses as theirs, says what it should, and counts alike when it is translated.

BigQuery, Snowflake and Trino are asked by proxy: sqlglot reads their SQL and writes DuckDB's, which runs. Databricks has Spark's words, which run on a
cluster in test_spark.py.
"""

# ruff: noqa: S608 - the queries are ours

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from counting.engines import contract

import cbdp
from cbdp.counting import bounding
from cbdp.counting.columns import Schema
from cbdp.counting.counts import ranked_counts
from cbdp.counting.engines import ibis, sql
from cbdp.counting.engines import sql as sql_inspect
from cbdp.counting.engines.dialects import (
    DIALECTS,
    SPARK_TEMPLATES,
    TemplateDialect,
    source_relation,
    template_dialect,
)
from cbdp.counting.plan import CountingPlan, make_plan
from cbdp.errors import InputError
from cbdp.privacy.unit import unit_of

sqlglot = pytest.importorskip("sqlglot", reason="no sqlglot: pip install 'cbdp[ibis]'")
exp = sqlglot.exp

KNOWN = {"postgres": {"CONVERT_TO", "REGEXP_MATCH"}}  # functions that sqlglot has no class for
BINARY = ("BINARY", "VARBINARY", "BLOB", "BYTES")
RANDOM = re.compile(
    r"\b(rand|random|randn|uniform|uuid|generate_uuid|tablesample|sample|shuffle)\b", re.IGNORECASE
)


def planned(case: contract.Case) -> CountingPlan:
    schema = Schema("the trips", {f.name: f.type for f in case.table.schema})
    return make_plan(schema, case.universe, case.columns, unit_of(case.unit), case.clock)


def queries(case: contract.Case, name: str) -> dict[str, str]:
    """All that a database is asked, with its public tables under their own names."""
    plan, words = planned(case), DIALECTS[name]
    say = template_dialect(words, plan)
    source = source_relation(say, plan, "trips", [words.identifier(f.name) for f in plan.fields])
    made = {
        "counts": sql.count_query(plan, say, source, str),
        "statuses": sql_inspect.status_query(plan, say, source, str),
    }
    made["examples"] = sql_inspect.example_query(plan, say, source, str, 0, 2, 5)
    span = sql_inspect.day_query(plan, say, source, str)
    if span is not None:
        made["span"] = span
    if plan.weight is not None:
        made["weights"] = sql.weight_query(plan, say, source)
    if plan.bound is not None:
        made |= {
            "allowed": bounding.max_kept_in_all(plan, say, source),
            "loads": bounding.load_rows(plan, say, source, str),
        }
        made["kept"] = kept(plan, say, source)
    return made


def kept(plan: CountingPlan, say: TemplateDialect, source: str) -> str:
    assert plan.bound is not None
    kind = plan.fields[plan.bound.person].kind
    steps = bounding.bounding_steps(plan.bound, kind, say, sql.SECRET_TABLE, with_load=True)
    return sql.query(
        [*sql.steps_inside(plan, say, source, str), *steps], "SELECT person, flat, own FROM kept"
    )


@pytest.mark.parametrize("name", DIALECTS)
def test_the_sql_of_every_database_parses_and_draws_nothing(name: str) -> None:
    """Every query is SQL of its dialect, made of functions that it knows, without one that draws at random, and without a key."""
    for make in contract.CASES.values():
        for text in queries(make(), name).values():
            tree = sqlglot.parse_one(text, read=name, error_level=sqlglot.ErrorLevel.RAISE)
            assert not RANDOM.search(text)
            unknown = {call.name.upper() for call in tree.find_all(exp.Anonymous)}
            assert unknown <= KNOWN.get(name, set())
            assert not [s for s in contract.spellings(contract.KEY) if s in text.encode().lower()]


@pytest.mark.parametrize("name", DIALECTS)
def test_texts_lose_their_collation_before_anything_is_compared(name: str) -> None:
    """A column of text is cast away from its collation where it is read, and keys and persons are joined and grouped as bytes."""
    words, texts = DIALECTS[name], queries(contract.CASES["persons"](), name)
    assert words.plain != "{v}"
    read = sqlglot.parse_one(texts["kept"], read=name).find(exp.Subquery).sql(name)
    for column in ("origin", "card"):
        plain = words.plain.format(v=words.identifier(column))
        assert sqlglot.parse_one(plain, read=name).sql(name) in read
        assert read.count(words.identifier(column)) == 1
    assert words.bytes.format(v="v0") in texts["kept"]
    assert "w_0_0.look = t.f0_bytes" in texts["kept"]


@pytest.mark.parametrize("name", DIALECTS)
def test_persons_are_asked_for_with_sha_256_of_a_key_in_a_table(name: str) -> None:
    """The ticket is SHA-256 of a column `word` of a table, with the number and the person; tables are joined by nothing but it."""
    text = queries(contract.CASES["persons"](), name)["kept"]
    tree = sqlglot.parse_one(text, read=name)
    assert tree.find(exp.SHA2, exp.SHA, exp.SHA2Digest, exp.Anonymous) is not None
    assert re.search(r"sha_?2(56)?\b", text, re.IGNORECASE)
    assert re.search(r"word \|\| .*':' \|\| .* \|\| ':'.* \|\| person", text)
    assert re.search(rf"CROSS JOIN {sql.SECRET_TABLE} s", text)


@pytest.mark.parametrize("name", ["bigquery", "snowflake", "trino"])
@pytest.mark.parametrize("case", contract.CASES)
def test_translated_to_duckdb_it_counts_alike(name: str, case: str) -> None:
    """What BigQuery, Snowflake and Trino are asked, said in DuckDB's SQL by sqlglot, gives the counts of DuckDB's own."""
    given = contract.CASES[case]()
    plan, asked = planned(given), queries(given, name)
    wanted = given.count(given.table)
    text = asked["counts"]
    if plan.bound is not None:
        text = f"SELECT flat, COUNT(*) AS n FROM ({asked['kept']}) k GROUP BY flat"
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        if given.folded:  # text alone would be compared without regard to case
            database.execute("SET default_collation = 'NOCASE'")
        _lay(database, given, plan)
        flat, n = np.array(database.sql(translated(text, name)).fetchall(), dtype=np.int64).reshape(-1, 2).T
        index, value = ranked_counts([(flat, n)], given.universe, plan)
        assert index.tolist() == wanted.index.tolist()
        assert value.tolist() == wanted.value.tolist()
        rows = database.sql(translated(asked["statuses"], name)).fetchall()
    assert sum(row[-2] for row in rows) == len(given.table)


def _lay(database: Any, case: contract.Case, plan: CountingPlan) -> None:
    tables = {
        **sql.lookup_tables(plan),
        "trips": case.table,
        sql.SECRET_TABLE: pa.table({"word": pa.array([contract.KEY], pa.binary())}),
    }
    for table, rows in tables.items():
        database.register(table, rows)


def translated(text: str, name: str) -> str:
    """DuckDB's SQL of another's, where sqlglot knows no better: bytes of a text are its encoding, Trino divides whole numbers wholly."""

    def mended(node: Any) -> Any:
        if isinstance(node, exp.Cast) and node.to.this.name in BINARY:
            return exp.Anonymous(this="ENCODE", expressions=[node.this])
        return exp.IntDiv(**node.args) if name == "trino" and isinstance(node, exp.Div) else node

    return str(sqlglot.parse_one(text, read=name).transform(mended).sql("duckdb"))


def test_databricks_speaks_as_spark_does() -> None:
    """So that what is tried on a cluster holds there."""
    differs = {
        f
        for f in SPARK_TEMPLATES.__dataclass_fields__
        if getattr(SPARK_TEMPLATES, f) != getattr(DIALECTS["databricks"], f)
    }
    assert differs == {"name", "temporary"}


def test_persons_are_refused_where_the_key_would_be_logged() -> None:
    """Trino has no way to hand over a key but in a query's text: it counts trips, and says why it bounds no persons."""

    class Unasked:
        def __getattr__(self, name: str) -> Callable[..., Any]:
            raise AssertionError(f"the database was asked to {name}")

    case = contract.CASES["persons"]()
    schema = Schema("the trips", {f.name: f.type for f in case.table.schema})
    source = ibis.WarehouseSource(Unasked(), "SELECT 1", schema, DIALECTS["trino"])
    with pytest.raises(InputError, match=r"persons cannot be bounded there: Trino .* log.* Count with Spark"):
        list(source.count(planned(case), contract.KEY))


class Recorded:
    """A database that says yes to everything, and remembers what it was asked."""

    def __init__(self) -> None:
        self.made: dict[str, tuple[Any, dict[str, Any]]] = {}
        self.asked: list[str] = []

    def create_table(self, name: str, table: Any, **how: Any) -> Any:
        import ibis

        self.made[name] = table, how
        schema = ibis.Schema.from_pyarrow(table.schema)
        return ibis.table(schema, name=name, catalog="city", database="rides")

    def raw_sql(self, text: str) -> Any:
        self.asked.append(text)
        return _Answer()


class _Answer:
    def fetchmany(self, _: int) -> list[Any]:
        return []

    def close(self) -> None:
        pass


@pytest.mark.parametrize("name", ["bigquery", "snowflake", "databricks"])
def test_a_database_gets_tables_of_ours_and_loses_them(name: str) -> None:
    """Tables have names nobody else has, the key is the only row of one of them and in no query, and all are dropped."""
    pytest.importorskip("ibis")
    case, there = contract.CASES["persons"](), Recorded()
    schema = Schema("the trips", {f.name: f.type for f in case.table.schema})
    with ibis.open_warehouse(there, "SELECT * FROM trips", schema, DIALECTS[name]) as source:
        assert list(source.count(planned(case), contract.KEY)) == []
    assert all(re.match("cbdp_[0-9a-f]{16}_", made) for made in there.made)
    assert [t["word"].to_pylist() for n, (t, _) in there.made.items() if n.endswith("secret")] == [
        [contract.KEY]
    ]
    assert {how.get("temp", False) for _, how in there.made.values()} == {DIALECTS[name].temporary}
    dropped = {
        made for made in there.made for text in there.asked if text.startswith("DROP TABLE") and made in text
    }
    assert dropped == set(there.made)
    for text in there.asked:
        sqlglot.parse_one(text, read=name, error_level=sqlglot.ErrorLevel.RAISE)
        assert not [s for s in contract.spellings(contract.KEY) if s in text.encode().lower()]


def test_a_table_that_cannot_be_dropped_is_named() -> None:
    """It may hold the key: the count fails, and says what is left."""
    pytest.importorskip("ibis")

    class Stubborn(Recorded):
        def raw_sql(self, text: str) -> Any:
            if text.startswith("DROP"):
                raise RuntimeError("no")
            return super().raw_sql(text)

    case = contract.Case(pa.table({"stop": ["A"]}), cbdp.Universe(stop=["A"]))
    schema = Schema("the trips", {"stop": pa.string()})
    with (
        pytest.raises(InputError, match=r"`city`.`rides`.`cbdp_\w+` could not be dropped by bigquery"),
        ibis.open_warehouse(Stubborn(), "SELECT * FROM trips", schema, DIALECTS["bigquery"]) as source,
    ):
        list(source.count(planned(case), None))
