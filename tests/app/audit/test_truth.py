"""The true counts behind a release, as far as the bound lets them be known."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import cbdp
from cbdp.app.audit.truth import truth

UNIVERSE = cbdp.Universe(stop=["A", "B", "C"], time=cbdp.periods("06:00", "20:00", "1h"))
ROWS = [  # on Monday x travels three times, twice in one hour; on Tuesday once; y once on Monday, late at night of Sunday
    ("A", dt.datetime(2026, 3, 2, 8, 0), "x"),  # noqa: DTZ001
    ("B", dt.datetime(2026, 3, 2, 8, 30), "x"),  # noqa: DTZ001
    ("C", dt.datetime(2026, 3, 2, 17), "x"),  # noqa: DTZ001
    ("C", dt.datetime(2026, 3, 3, 9), "x"),  # noqa: DTZ001
    ("A", dt.datetime(2026, 3, 2, 12), "y"),  # noqa: DTZ001
]


def _known(unit: cbdp.Person, trips: Any) -> tuple[set[Any], set[Any]]:
    """The types that are counted for certain, and those that bounding may have touched."""
    release = cbdp.ConstraintBased(cbdp.FeatureDag(UNIVERSE, []), 1, unit=unit).simulate(
        _table(), 1, columns={"time": "when"}
    )
    found = truth(trips, replace(release, secure=False), columns={"time": "when"})
    named = [{UNIVERSE.unrank(int(i)) for i in part} for part in (found.index, found.loose)]
    return named[0], named[1]


def _table() -> pa.Table:
    stop, when, card = zip(*ROWS, strict=True)
    return pa.table({"stop": list(stop), "when": list(when), "card": list(card)})


@pytest.mark.parametrize("place", ["memory", "engine"])
def test_a_period_is_known_or_not_as_a_whole(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tuesday is within the bound of two a day, and Monday is not; over the whole release, nothing of x is known."""
    path = tmp_path / "t.parquet"
    parquet.write_table(_table(), path)
    if place == "engine":
        monkeypatch.setattr("cbdp.counting.inspection.can_recount", lambda _: False)
    by_day = _known(cbdp.Person("card", 2, "day"), str(path))
    assert by_day == (
        {("C", "09:00"), ("A", "12:00")},
        {("A", "08:00"), ("B", "08:00"), ("C", "17:00")},
    )
    whole = _known(cbdp.Person("card", 2), str(path))
    assert whole[0] == {("A", "12:00")}
    apart = _known(cbdp.Person("card", 3, "day", "time"), str(path))
    assert apart == by_day, "three trips are within the bound, but two of them are not apart"
    assert not _known(cbdp.Person("card", 3, "day"), str(path))[1]
