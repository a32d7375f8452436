"""xarray datasets, in memory and from NetCDF."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from exported import STOPS, city_release, released_trips, zone_trips

import cbdp
from cbdp.errors import InputError
from cbdp.estimation.intervals import Interval
from cbdp.release.export import export
from cbdp.release.export.xarray import dataset


def test_xarray_has_labels_as_coordinates(tmp_path: Path) -> None:
    """Whole trips by label, features by their attributes, and the same again from NetCDF."""
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    release, trips = city_release()
    export(release, tmp_path / "out.nc", "xarray")
    with xarray.open_dataset(tmp_path / "out.nc", engine="h5netcdf") as stored:
        for made in (dataset(release), stored):
            assert made["trips"].dtype == np.int64
            assert made["trips"].dims == ("origin", "destination", "time")
            for o in STOPS:
                for d in STOPS:
                    for t in ("06:00", "07:00"):
                        assert int(made["trips"].sel(origin=o, destination=d, time=t)) == trips.get(
                            (o, d, t), 0
                        )
            zones = made["zone_count"]
            for (o, d, t), count in zone_trips(trips).items():
                assert int(zones.sel({"origin.zone": o, "destination.zone": d, "time": t})) == count
            sums = [made["trips"], zones, made["time_count"], made["total_count"]]
            assert {int(s.sum()) for s in sums} == {release.total}


def test_xarray_has_intervals_and_refuses_names_that_clash() -> None:
    """Low and high stand beside the counts; a feature's array cannot have the name of a dimension."""
    pytest.importorskip("xarray", reason="xarray is not installed")
    ends = {"time": Interval(np.array([3, 4]), np.array([30, 40]))}
    release, _ = city_release(intervals=ends, confidence=0.9)
    made = dataset(release)
    assert int(made["time_low"].sel(time="07:00")) == 4
    assert int(made["time_high"].sel(time="06:00")) == 30
    universe = cbdp.Universe(a=["x"], f_count=["y"])
    clash = released_trips(universe, {("x", "y"): 1}, features=[cbdp.Feature("f", by="a")])
    with pytest.raises(InputError, match="'f_count'"):
        dataset(clash)


def test_xarray_of_a_large_universe_is_a_list() -> None:
    """What does not fit as an array is listed, with the labels of each."""
    pytest.importorskip("xarray", reason="xarray is not installed")
    universe = cbdp.Universe(origin=range(5000), destination=[f"s{i}" for i in range(5000)])
    made = dataset(released_trips(universe, {(4999, "s3"): 5, (7, "s8"): 2}))
    found = zip(
        made["origin_of_trip"].values, made["destination_of_trip"].values, made["trips"].values, strict=True
    )
    assert set(found) == {(4999, "s3", 5), (7, "s8", 2)}
