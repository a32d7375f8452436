"""Riders of counted trips, and their shuttle legs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from cbdp import ConstraintBased
from cbdp.datasets import ann_arbor, ann_arbor_city
from cbdp.errors import InputError
from cbdp.transit.modes import ModeRule, arrivals, fleet_counts, legs_of, spread, trips_of_release


def test_riders_of_a_release() -> None:
    """Every published trip becomes one rider, inside its period, between its stops; shared trips share seconds."""
    data = ann_arbor(seed=0, hours=("08:00", "10:00"))
    city = ann_arbor_city()
    release = ConstraintBased(data.features(), 1, rounding="few").simulate(data.counts(), 0)
    trips = trips_of_release(release, city)
    assert len(trips) == release.total
    assert (np.diff(trips.second) >= 0).all()
    period = (trips.second - 8 * 3600) // 1800
    again = np.bincount(
        data.universe.rank_codes([trips.origin, trips.destination, period]), minlength=data.universe.size
    )
    assert (again == release.counts("singleton")).all()
    few = spread(data.universe, release.index, np.maximum(release.value - 1, 0), city)
    rows = set(zip(trips.origin.tolist(), trips.destination.tolist(), trips.second.tolist(), strict=True))
    assert set(zip(few.origin.tolist(), few.destination.tolist(), few.second.tolist(), strict=True)) <= rows


@pytest.mark.parametrize(
    "asked", [{}, {"budget": "leaves"}, {"rounding": "few"}, {"preset": "paper"}], ids=str
)
def test_fleets_gather_what_is_published(asked: dict[str, str]) -> None:
    """Expected values are gathered on fewer types, and no count of a table changes; all other trips stay as published."""
    data = ann_arbor(seed=0, hours=("08:00", "09:00"))
    release = ConstraintBased(data.features(), 1, **asked).simulate(data.counts(), 0)
    index, value = fleet_counts(release)
    gathered = not {"rounding", "preset"} & set(asked)
    assert (len(index) < 0.8 * len(release.index)) if gathered else index is release.index
    for name in ("total", "time", "zone", "mode"):
        of = release.features.partition(name).element_of(data.universe.unrank_codes(index))
        assert np.bincount(of, value, release.features.size(name)).tolist() == release.counts(name).tolist()
    if asked == {}:
        few = ConstraintBased(data.features(), 1, rounding="few").simulate(data.counts(), 0)
        assert np.isin(index, few.index).mean() > 0.95  # as if the release had been made for fleets


def test_anything_with_trips_has_riders() -> None:
    """A release of another kind has no estimates to gather: its trips are taken as they are."""
    plain = SimpleNamespace(features=None, index=np.array([3]), value=np.array([2]))
    assert fleet_counts(plain) == (plain.index, plain.value)


def test_seconds_are_uniform() -> None:
    """Seconds of random riders fill their period evenly (chi-square far below its 1e-6 quantile), and even ones exactly."""
    data = ann_arbor(seed=0, hours=("08:00", "08:30"))
    city = ann_arbor_city()
    trips = spread(data.universe, np.array([500]), np.array([20_000]), city, seed=3)
    counts = np.bincount((trips.second - 8 * 3600) // 60, minlength=30)
    assert (((counts - 20_000 / 30) ** 2) / (20_000 / 30)).sum() < 80
    even = spread(data.universe, np.array([500]), np.array([3]), city, how="even")
    assert (even.second - 8 * 3600).tolist() == [300, 900, 1500]


@pytest.mark.parametrize(
    ("index", "value", "message"),
    [
        ([0], [1.5], "1.5 trips"),
        ([0], [np.nan], "nan trips"),
        ([0], [-2], "-2 trips"),
        ([10**9], [1], "outside the universe"),
        ([0, 1], [1], "one count"),
    ],
)
def test_bad_counts_are_refused(index: list[int], value: list[float], message: str) -> None:
    """Fractional, missing, negative and misplaced trips are named."""
    data = ann_arbor(seed=0, hours=("08:00", "08:30"))
    with pytest.raises(InputError, match=message):
        spread(data.universe, np.array(index), np.array(value), ann_arbor_city())


def test_bus_arrivals_follow_the_timetable() -> None:
    """Riders take the first bus that leaves when they are there or later, ride by ride."""
    table = np.array([[[0, 600, 100], [50, 300, 40]]])
    now = np.array([0, 1, 600])
    # 0: leaves 0, there 100, leaves 350, there 390 · 1: leaves 600, there 700, leaves 950, there 990
    assert arrivals(table, np.zeros(3, dtype=np.int64), now).tolist() == [390, 990, 990]


def test_walks_and_buses_have_no_shuttle_legs() -> None:
    """Legs are those of the modes with shuttles, at most two by rider."""
    data = ann_arbor(seed=0, hours=("08:00", "10:00"))
    city = ann_arbor_city()
    counts = data.counts()
    types = np.flatnonzero(counts)
    trips = spread(data.universe, types, counts[types], city)
    modes = ModeRule().choose(city)
    legs = legs_of(trips, modes)
    label = np.array(modes.labels)[modes.mode[0][trips.origin, trips.destination]]
    expected = np.char.count(label.astype(str), "shuttle")
    assert np.bincount(legs.trip, minlength=len(trips)).tolist() == expected.tolist()
