"""Looking at trips without counting them: their schema, which is public, and the trips of each person, which are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.features import Universe
from cbdp.privacy.unit import Person
from cbdp.trips.clock import Clock
from cbdp.trips.engines import engine_for
from cbdp.trips.kinds import Schema
from cbdp.trips.planning import make_plan, wanted_columns
from cbdp.trips.ranking import rank

Ints = NDArray[np.int64]


def schema_of(trips: Any, wanted: Sequence[str] | None = None) -> Schema:
    """The columns of trips and their types: no row is read. Of several files, the wanted columns must be alike in all."""
    with engine_for(trips).open(trips, wanted) as source:
        return source.schema


def trips_by_person(
    trips: Any,
    universe: Universe,
    unit: Person,
    *,
    columns: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> tuple[NDArray[np.bool_], Ints]:
    """All trips of persons inside the universe, before bounding: where another person begins, and the trips' types. Private."""
    with engine_for(trips).open(trips, wanted_columns(universe, columns, unit)) as source:
        plan = make_plan(source.schema, universe, columns, unit, clock or Clock())
        begins, types = [np.empty(0, dtype=bool)], [np.empty(0, dtype=np.int64)]
        for new, flat in source.by_person(plan):
            begins.append(new)
            types.append(rank(flat, universe, plan))
    return np.concatenate(begins), np.concatenate(types)
