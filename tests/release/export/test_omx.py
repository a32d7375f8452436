"""Open Matrix, read back by openmatrix."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exported import STOPS, city_release, mechanism_release, released_trips, zone_trips

import cbdp
from cbdp.errors import InputError
from cbdp.release.export import export
from cbdp.release.export.flows import FlowEnds, Flows, Period
from cbdp.release.export.omx import flows_between_zones


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
            assert matrix.dtype == np.float64  # AequilibraE assigns no other kind
            assert (matrix == np.rint(matrix)).all()
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
    value[0], value[1] = 2**33, 2**60 + 1
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


def test_omx_is_padded_to_the_zones_of_another_program(tmp_path: Path) -> None:
    """Its order, its zones without trips, and all trips; a zone with trips that is not listed is named."""
    release, trips = city_release()
    (tmp_path / "zones.csv").write_text("name,zone\nx,99\ny,7\nz,1001\nu,30\nv,12\nw,5\n")
    export(release, tmp_path / "out.omx", "omx", zones=tmp_path / "zones.csv")
    with _omx(tmp_path / "out.omx") as omx:
        assert list(omx.mapping("stop").items()) == [(99, 0), (7, 1), (1001, 2), (30, 3), (12, 4), (5, 5)]
        assert tuple(omx.shape()) == (6, 6)
        place = omx.mapping("stop")
        for period in omx.list_matrices():
            matrix = np.array(omx[period])
            assert matrix.sum() == sum(n for (_, _, t), n in trips.items() if t == period)
            for (o, d, t), n in trips.items():
                assert t != period or matrix[place[o], place[d]] == n
    (tmp_path / "few.txt").write_text("30\n7\n1001\n")
    with pytest.raises(InputError, match="the place '12' has trips and is not among the 3 zones listed"):
        export(release, tmp_path / "few.omx", "omx", zones=tmp_path / "few.txt")
    assert not (tmp_path / "few.omx").exists()


def test_omx_has_intervals_and_says_what_it_is(tmp_path: Path) -> None:
    """Low and high are what the release answers, of every pair, those without trips too; ε, unit and source are attributes."""
    release = replace(mechanism_release(), secure=True)
    export(release, tmp_path / "out.omx", "omx", intervals=0.8, zones=(99, *STOPS))
    answer = release.ask(by=["origin", "destination", "time"], confidence=0.8)
    with _omx(tmp_path / "out.omx") as omx:
        place = omx.mapping("stop")
        names = ["06:00", "07:00", "06:00 low", "07:00 low", "06:00 high", "07:00 high"]
        assert omx.list_matrices() == sorted(names)
        rows = zip(
            *(answer[n] for n in ("origin", "destination", "time", "count", "low", "high")), strict=True
        )
        for o, d, t, *numbers in rows:
            found = [omx[t + ending][place[o], place[d]] for ending in ("", " low", " high")]
            assert found == numbers
        assert np.array(omx["06:00 high"])[place[99]].sum() == 0
        said = omx.root._v_attrs
        assert said["confidence"] == 0.8
        assert said["epsilon"] == b"1"
        assert said["protects"] == b"one trip, added or removed"
        assert said["source"].startswith(b"cbdp ")
        assert said["source"].endswith(b"mechanism constraint-based")
        assert omx["07:00 low"].attrs["begin"] == 25200


@pytest.mark.parametrize("high", [0, 2])
def test_omx_refuses_to_drop_what_may_be_there(high: int) -> None:
    """With intervals, a place without published trips that may have some is not left out in silence."""
    columns = [
        np.array(v, dtype=np.int64) for v in ([0, 0], [0, 0], [1, 2], [4, 0], [0, -1], [3, 0], [5, high])
    ]
    flows = Flows(FlowEnds(), ("A", "B", "C"), (Period((), 0, 86400),), *columns)
    if not high:
        assert flows_between_zones(flows, ["B", "A"]).count.tolist() == [4]
        return
    with pytest.raises(InputError, match=r"the place 'C' may have trips \(up to 2\)"):
        flows_between_zones(flows, ["B", "A"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("zone\n", "has no id"),
        ("7\n7\n", "'7' is in the list .* twice"),
        ("a,b\n1,2\n", "call the one with the ids zone"),
        ("zone,name\n7,a\n,b\n", "has no id"),
    ],
)
def test_bad_lists_of_zones_are_refused(text: str, said: str, tmp_path: Path) -> None:
    """One line with the cure."""
    (tmp_path / "zones.csv").write_text(text)
    with pytest.raises(InputError, match=said):
        export(city_release()[0], tmp_path / "out.omx", "omx", zones=tmp_path / "zones.csv")
    with pytest.raises(InputError, match="cannot be read"):
        export(city_release()[0], tmp_path / "out.omx", "omx", zones=tmp_path / "nowhere.csv")
