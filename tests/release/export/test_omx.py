"""Open Matrix, read back by openmatrix."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exported import STOPS, city_release, released_trips, zone_trips

import cbdp
from cbdp.errors import InputError
from cbdp.release.export import export


def _omx(path: Path) -> Any:
    openmatrix = pytest.importorskip("openmatrix", reason="openmatrix is not installed")
    return openmatrix.open_file(str(path))


def test_omx_is_read_by_openmatrix(tmp_path: Path) -> None:
    """A matrix of whole numbers per period; the lookup finds rows as origins and columns as destinations."""
    release, trips = city_release(large=True)
    export(release, tmp_path / "out.omx", "omx")
    with _omx(tmp_path / "out.omx") as omx:
        assert omx.version() == b"0.2"
        assert tuple(omx.shape()) == (4, 4)
        assert omx.list_matrices() == ["06:00", "07:00"]
        assert omx.list_mappings() == ["stop"]
        place = omx.mapping("stop")
        assert set(place) == set(STOPS)
        total = 0
        for period in omx.list_matrices():
            matrix = np.array(omx[period])
            assert matrix.dtype == np.int32
            total += matrix.sum()
            for o in STOPS:
                for d in STOPS:
                    assert matrix[place[o], place[d]] == trips.get((o, d, period), 0)
        assert total == release.total


def test_omx_of_zones_and_of_text(tmp_path: Path) -> None:
    """Stops are added up to zones; ids that are no numbers are text; ids that are numbers in text are numbers."""
    release, trips = city_release()
    export(release, tmp_path / "zones.omx", "omx", level="zone")
    with _omx(tmp_path / "zones.omx") as omx:
        place = {key.decode(): p for key, p in omx.mapping("zone").items()}
        found = {
            (o, d, t): int(omx[t][place[o], place[d]])
            for t in omx.list_matrices()
            for o in place
            for d in place
        }
    assert {key: count for key, count in found.items() if count} == zone_trips(trips)
    text, _ = city_release(("30", "7", "-5", "12"))
    export(text, tmp_path / "text.omx", "omx")
    with _omx(tmp_path / "text.omx") as omx:
        assert set(omx.mapping("stop")) == {30, 7, -5, 12}
    padded, _ = city_release(("030", "7", "1", "12"))
    export(padded, tmp_path / "padded.omx", "omx")
    with _omx(tmp_path / "padded.omx") as omx:
        assert set(omx.mapping("stop")) == {b"030", b"7", b"1", b"12"}


def test_omx_of_large_counts_and_ids(tmp_path: Path) -> None:
    """Counts and ids beyond 32 bits are not cut."""
    stops = (2**40, 1, 2, 3)
    release, _ = city_release(stops)
    value = release.value.copy()
    value[0] = 2**33
    export(replace(release, value=value), tmp_path / "out.omx", "omx")
    with _omx(tmp_path / "out.omx") as omx:
        assert set(omx.mapping("stop")) == set(stops)
        assert sum(int(np.array(omx[m]).sum()) for m in omx.list_matrices()) == value.sum()


def test_omx_too_large_is_refused(tmp_path: Path) -> None:
    """Matrices that no program would hold are refused, with the cure."""
    universe = cbdp.Universe(origin=range(20_000), destination=range(20_000))
    release = released_trips(universe, {(3, 4): 1})
    with pytest.raises(InputError, match="level='zone'"):
        export(release, tmp_path / "out.omx", "omx")
    assert list(tmp_path.iterdir()) == []
