"""Where trips are counted: one ordered table of engines, one file each. cbdp.trips.engines.base says what an engine is."""

from __future__ import annotations

from typing import Any

from cbdp.errors import InputError
from cbdp.parts import Parts, instance_of
from cbdp.text import remember_secrets
from cbdp.trips.engines.base import Engine, Facts, Source

ENGINES: Parts[Engine] = Parts(
    "counting engine",
    "cbdp.engines",
    {
        "duckdb": "cbdp.trips.engines.duckdb:DuckDB",
        "spark": "cbdp.trips.engines.spark:Spark",
        "ibis": "cbdp.trips.engines.ibis:Ibis",
    },
    instance_of(Engine),
    base="cbdp.trips.engines.Engine",
)


def engine_for(trips: Any) -> Engine:
    """The engine that opens these trips. DuckDB is asked first for what is nobody else's, and last for whatever hands out Arrow.

    >>> engine_for({"stop": ["A", "B"]}).name
    'duckdb'
    """
    from cbdp.trips.engines.duckdb import DuckDB

    if isinstance(trips, str):
        remember_secrets(trips)
    if DuckDB().owns(trips):
        return DuckDB()
    names = list(ENGINES.names())
    for name in [*names[1:], names[0]]:
        engine = ENGINES.get(name)
        if engine.opens(trips):
            return engine
    if isinstance(trips, str) and "://" in trips:
        scheme = trips.partition("://")[0]
        raise InputError(f"no engine opens {scheme} URLs: there are {', '.join(names)}")
    raise InputError(
        f"trips of type {type(trips).__name__} cannot be read as a table: "
        "give a path, a data frame, an Arrow table or a URL"
    )


__all__ = ["ENGINES", "Engine", "Facts", "Source", "engine_for"]
