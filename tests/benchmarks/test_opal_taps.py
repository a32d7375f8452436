"""The synthetic taps of the benchmarks have the shape of the Opal release, and the leaks that were found in it."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest

from benchmarks.harness import opal_taps as generated
from cbdp.errors import CbdpError

SEEDS = (0, 1, 2)
RECORDED_FERRY = 940583919
MANLY, QUAY = "Manly Wharf", "Circular Quay No. 3 Wharf"
opal_taps = functools.cache(generated.opal_taps)


def wharf(taps, name):
    return taps.universes["ferry"].dimension("location").values.index(name)


def test_draws_are_the_recorded_ones():
    """The taps of seed 0 are those recorded when the data set was made."""
    ferry = opal_taps(0).index("20160812", "ferry")
    assert int((ferry * np.arange(1, len(ferry) + 1)).sum() % 1_000_000_007) == RECORDED_FERRY


@pytest.mark.parametrize("seed", SEEDS)
def test_opal_shape(seed):
    """Two weeks, four modes, the stated numbers of places, and about half a million trips."""
    taps = opal_taps(seed)
    assert len(taps.days) == 14
    assert (taps.days[0], taps.days[6], taps.days[7], taps.days[-1]) == (
        "20160725",
        "20160731",
        "20160808",
        "20160814",
    )
    places = {mode: len(universe.dimension("location")) for mode, universe in taps.universes.items()}
    assert places == {"bus": 80, "ferry": 12, "lightrail": 23, "train": 60}
    assert set(taps.parts) == {(day, mode) for day in taps.days for mode in taps.modes}
    assert 400_000 <= len(taps) <= 600_000
    assert {MANLY, QUAY} <= set(taps.universes["ferry"].dimension("location").values)


def test_opal_counts_are_two_taps_a_trip():
    """Each trip is one tap on and one tap off, and removing one trip changes the counts by 2 in all."""
    taps = opal_taps(0)
    for mode in taps.modes:
        part, universe = taps.parts["20160725", mode], taps.universes[mode]
        n = len(part["on_time"])
        counts = taps.counts("20160725", mode)
        on, off = counts.reshape(2, -1).sum(axis=1)
        assert (on, off, len(counts)) == (n, n, universe.size)
        rows = taps.taps("20160725", mode)
        assert np.array_equal(universe.rank(*rows.values()), taps.index("20160725", mode))
        less = dataclasses.replace(taps, parts={("20160725", mode): {k: v[1:] for k, v in part.items()}})
        change = (counts - less.counts("20160725", mode)).reshape(2, -1)
        assert np.abs(change).sum(axis=1).tolist() == [1, 1]


@pytest.mark.parametrize("seed", SEEDS)
def test_manly_ferry_is_point_to_point(seed):
    """Every tap-on at Manly is a tap-off at Circular Quay half an hour later, and the other way, on every day."""
    taps = opal_taps(seed)
    manly, quay = wharf(taps, MANLY), wharf(taps, QUAY)
    for day in taps.days:
        part = taps.parts[day, "ferry"]
        for start, end in ((manly, quay), (quay, manly)):
            mine = part["on_location"] == start
            assert set(part["off_location"][mine]) == {end}
            assert np.array_equal((part["on_time"][mine] + 2) % 96, part["off_time"][mine])
        counts = taps.counts(day, "ferry").reshape(2, 96, 12)
        assert np.array_equal(np.roll(counts[0, :, manly], 2), counts[1, :, quay])


@pytest.mark.parametrize("seed", SEEDS)
def test_secret_ferry(seed):
    """At midnight on a Friday only Manly's ferries and a few people at Cremorne Point arrive, too few to be shown."""
    taps = opal_taps(seed)
    for day in ("20160729", "20160812"):
        midnight = taps.counts(day, "ferry").reshape(2, 96, 12)[1, 0]
        names = taps.universes["ferry"].dimension("location").values
        arrived = {names[i] for i in np.flatnonzero(midnight)}
        assert arrived == {MANLY, QUAY, "Cremorne Point Wharf"}
        assert 12 <= midnight[wharf(taps, "Cremorne Point Wharf")] < 18
        shown = midnight[midnight >= 18]
        assert len(shown) == 2
        assert midnight.sum() - shown.sum() >= 12


def test_opal_days_have_two_peaks_and_a_night():
    """Weekdays peak morning and evening, weekends are smaller on trains, and nights are nearly empty."""
    taps = opal_taps(0)
    on = {day: taps.counts(day, "train").reshape(2, 24, 4, 60)[0].sum(axis=(1, 2)) for day in taps.days}
    monday, saturday = on["20160725"], on["20160730"]
    assert monday[8] > 3 * monday[11]
    assert monday[17] > 3 * monday[11]
    assert monday[1:4].sum() < 0.02 * monday.sum()
    assert saturday.sum() < 0.7 * monday.sum()
    assert saturday[8] < saturday[12]


def test_opal_places_are_heavy_tailed():
    """A few places hold much of the traffic, and some cells fall below Opal's threshold of 18 and some above."""
    taps = opal_taps(0)
    for mode in taps.modes:
        counts = taps.counts("20160808", mode)
        by_place = np.sort(counts.reshape(192, -1).sum(axis=0))[::-1]
        assert by_place[0] > 5 * np.median(by_place)
        assert ((counts > 0) & (counts < 18)).any()
        assert (counts >= 18).any()


def test_opal_is_linked_and_repeatable():
    """Trips end elsewhere, the same seed gives the same taps, another seed others, and the table says synthetic."""
    taps, again = opal_taps(0), generated.opal_taps(0)
    for key, part in taps.parts.items():
        assert np.all(part["on_location"] != part["off_location"])
        assert all(np.array_equal(column, again.parts[key][name]) for name, column in part.items())
    assert not np.array_equal(taps.counts("20160725", "bus"), opal_taps(1).counts("20160725", "bus"))
    assert "synthetic" in taps.describe()
    assert taps.features("train").sizes["singleton"] == 2 * 96 * 60


def test_opal_bad_requests_say_so():
    """An unknown day or mode is our own error."""
    taps = opal_taps(0)
    for ask in (
        lambda: taps.counts("20200101", "bus"),
        lambda: taps.taps("20160725", "tram"),
        lambda: taps.features("tram"),
    ):
        with pytest.raises(CbdpError):
            ask()
