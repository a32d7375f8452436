"""The synthetic data sets against the published statistics they claim to have."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest

from cbdp import datasets
from cbdp.datasets.ann_arbor import MODES, ZONES, geography
from cbdp.datasets.dataset import apportion, exponential_race, generator, gini, heavy_tailed
from cbdp.errors import InputError

SEEDS = (0, 1, 2)
RECORDED_CITY = 819472058
ann_arbor = functools.cache(datasets.ann_arbor)


def cube(dataset):
    """The counts as origin × destination × time."""
    return dataset.counts().reshape(130, 130, -1)


@pytest.mark.parametrize("seed", SEEDS)
def test_weekday_has_the_published_figures(seed):
    """Every printed figure of the case study's weekday holds exactly, for any seed."""
    day = ann_arbor(seed)
    counts = cube(day)
    assert day.universe.size == counts.size == 473_200
    assert counts.sum() == len(day) == 37_714
    rush = counts[:, :, 4:8]
    assert rush.size == 67_600
    assert rush.sum() == 4_878
    assert np.count_nonzero(rush) == 591


@pytest.mark.parametrize("seed", SEEDS)
def test_tail_of_the_rush(seed):
    """An answer of all zeros is wrong by about 2.16 from 8 to 10 am, and no type has more than two or three full buses."""
    rush = cube(ann_arbor(seed))[:, :, 4:8].ravel()
    assert np.sqrt(np.mean(rush**2)) == pytest.approx(2.16, rel=0.02)
    assert 150 <= rush.max() <= 260
    assert 0.6 < gini(rush[rush > 0]) < 0.85
    assert np.count_nonzero(rush == 1) > 100


@pytest.mark.parametrize("seed", SEEDS)
def test_laplace_noise_swells_it_as_published(seed):
    """Rounded Laplace noise at ε = 1 makes about the 261,032 trips of the day that the case study reports."""
    noise = np.random.default_rng(seed).laplace(size=473_200)
    noisy = np.maximum(np.rint(ann_arbor(seed).counts() + noise), 0)
    assert noisy.sum() == pytest.approx(261_032, rel=0.015)


@pytest.mark.parametrize("seed", SEEDS)
def test_weekend_is_about_half(seed):
    """The weekend has the stated fixed figures, half a weekday's trips, and its own tail."""
    counts = cube(ann_arbor(seed, "weekend"))
    rush = counts[:, :, 4:8]
    assert counts.sum() == 18_900
    assert (rush.sum(), np.count_nonzero(rush)) == (2_365, 331)
    assert rush.sum() / 4_878 == pytest.approx(48 / 99, abs=0.001)
    assert np.sqrt(np.mean(rush**2)) == pytest.approx(1.40, rel=0.02)


def test_geography_does_not_depend_on_seed_or_day():
    """Stops, zones, hubs and modes are the same whatever the demand is."""
    first = ann_arbor(0)
    for other in (ann_arbor(1), ann_arbor(2, "weekend")):
        for name, column in first.stops.items():
            assert np.array_equal(column, other.stops[name])
        for name in ("mode", "origin.zone", "destination.zone"):
            mine, theirs = first.universe.attribute(name), other.universe.attribute(name)
            assert mine.labels == theirs.labels
            assert np.array_equal(mine.codes, theirs.codes)


def test_four_zones_twelve_modes_eight_hubs():
    """All zones and modes occur, and each zone has two hubs."""
    day = ann_arbor(0)
    assert set(day.universe.attribute("origin.zone").labels) == set(ZONES) == set(day.stops["zone"])
    mode = day.universe.attribute("mode")
    assert set(mode.labels) == set(MODES)
    assert len(MODES) == 12
    assert np.bincount(mode.codes.ravel()).min() > 0
    assert [day.stops["hub"][day.stops["zone"] == zone].sum() for zone in ZONES] == [2] * 4
    assert np.bincount(geography().zone).min() >= 20


def test_zones_are_contiguous():
    """Each stop lies in the zone whose middle is nearest, so zones are convex."""
    place = geography()
    middles = np.array([[v[place.zone == z].mean() for v in (place.x, place.y)] for z in range(4)])
    gaps = np.hypot(place.x[:, None] - middles[:, 0], place.y[:, None] - middles[:, 1])
    assert np.array_equal(gaps.argmin(axis=1), place.zone)


def test_city_is_plausible():
    """Stops lie within 16 × 12 km, apart from each other, denser in the centre, and near Ann Arbor on the globe."""
    stops = ann_arbor(0).stops
    x, y = stops["x"], stops["y"]
    assert 0 <= x.min() < x.max() <= 16
    assert 0 <= y.min() < y.max() <= 12
    assert len(set(stops["stop"])) == len(set(zip(x, y, strict=True))) == 130
    inner = np.hypot((x - 8) / 8, (y - 6) / 6) < 0.5
    assert inner.sum() > 0.3 * 130  # a quarter of the area
    assert np.all(np.abs(stops["lat"] - 42.28) < 0.06)
    assert np.all(np.abs(stops["lon"] + 83.74) < 0.11)


def test_modes_follow_the_network():
    """Modes mirror each other on the way back, only hubs start with a bus, and short pairs are walked."""
    place = geography()
    mirror = {mode: "-".join(reversed(mode.split("-"))) for mode in MODES if " " not in mode}
    back = np.vectorize(lambda mode: mirror.get(mode, mode))(place.mode.T)
    assert np.array_equal(back, place.mode)
    starts_with_bus = np.char.startswith(place.mode.astype(str), "bus")
    assert np.array_equal(np.unique(np.nonzero(starts_with_bus)[0]), np.flatnonzero(place.hub))
    assert set(place.mode[place.distance <= 0.5]) == {"walk"}
    assert set(place.mode.diagonal()) == {"walk"}


def test_same_seed_same_trips():
    """A seed gives the same rows in the same order, another seed other ones."""
    first, again, other = datasets.ann_arbor(3), datasets.ann_arbor(3), ann_arbor(1)
    assert all(np.array_equal(first.trips[name], again.trips[name]) for name in first.trips)
    assert not np.array_equal(first.counts(), other.counts())


def test_draws_are_the_recorded_ones():
    """The trips of seed 0 are those recorded when the data set was made."""
    day = ann_arbor(0)
    assert int((day.index * np.arange(1, len(day) + 1)).sum() % 1_000_000_007) == RECORDED_CITY


@pytest.mark.parametrize("hours", [("08:00", "10:00"), ("06:00", "06:30"), ("15:30", "20:00")])
def test_hours_take_the_same_trips(hours):
    """Restricting the hours restricts universe and trips, and changes neither."""
    whole, part = ann_arbor(0), ann_arbor(0, "weekday", hours)
    inside = np.isin(whole.trips["time"], part.universe.dimension("time").values)
    for name in whole.trips:
        assert np.array_equal(whole.trips[name][inside], part.trips[name])
    assert part.universe.size == 16_900 * len(part.universe.dimension("time"))
    assert part.counts().sum() == inside.sum()


def test_index_agrees_with_labels():
    """The index of a trip is the rank of its labels, and the rows are in no order."""
    rush = ann_arbor(0, "weekday", ("08:00", "10:00"))
    assert list(rush.trips) == list(rush.universe.dimensions)
    assert np.array_equal(rush.universe.rank(*rush.trips.values()), rush.index)
    assert rush.index.dtype == np.int64
    assert abs(np.corrcoef(rush.index, np.arange(len(rush)))[0, 1]) < 0.1


@pytest.mark.parametrize("seed", SEEDS)
def test_peaks_are_asymmetric(seed):
    """People go to the centre and the hubs in the morning and back in the evening, and the evening peak is larger."""
    counts, place = cube(ann_arbor(seed)), geography()
    middle = np.hypot(place.x - 8, place.y - 6)
    inward = middle[:, None] > middle
    morning, noon, evening = (
        counts[:, :, part].sum(axis=2) for part in (slice(2, 6), slice(10, 14), slice(20, 24))
    )
    assert morning[inward].sum() > 2 * morning[~inward].sum()
    assert evening[~inward].sum() > 2 * evening[inward].sum()
    assert evening.sum() > morning.sum() > 1.5 * noon.sum()
    assert morning[:, place.hub].sum() > 1.5 * morning[place.hub].sum()
    assert counts.sum(axis=2)[:, place.hub].sum() > 1.5 * counts.sum() * 8 / 130


@pytest.mark.parametrize("seed", SEEDS)
def test_popular_pairs_stay_popular(seed):
    """Pairs recur from one half hour to the next, and no trip ends where it starts."""
    counts = cube(ann_arbor(seed))
    at_8, at_830 = counts[:, :, 4] > 0, counts[:, :, 5] > 0
    assert (at_8 & at_830).sum() > 10 * at_8.sum() * at_830.sum() / 16_900
    assert not counts.diagonal().any()


def test_describe_says_what_it_was_fitted_to():
    """The printed table says synthetic, names published and chosen figures, and meets its own targets."""
    for day in ("weekday", "weekend"):
        found = ann_arbor(0, day)
        text = found.describe()
        assert "synthetic" in text
        assert "37,714" in text or day == "weekend"
        assert "chosen" in text
        for name, figure in found.statistics.items():
            assert figure.target is None or figure.measured == pytest.approx(figure.target, rel=0.02), name


def test_statistics_without_the_rush():
    """A part of the day without 8 to 10 am claims no published trips."""
    late = ann_arbor(0, "weekday", ("15:30", "20:00"))
    assert late.statistics["trips"].target is None
    assert not any("8–10" in name for name in late.statistics)


def test_features_of_the_city():
    """The features have the sizes of the case study: 4 zones squared and 12 modes in each period."""
    rush = ann_arbor(0, "weekday", ("08:00", "10:00"))
    assert rush.features().sizes == {"total": 1, "time": 4, "zone": 64, "mode": 48, "singleton": 67_600}
    assert list(rush.features(level=3).sizes) == ["total", "time", "singleton"]


@pytest.mark.parametrize(
    "options",
    [
        {"day": "holiday"},
        {"hours": ("05:00", "10:00")},
        {"hours": ("08:10", "10:00")},
        {"hours": ("10:00", "08:00")},
        {"seed": -1},
        {"seed": "x"},
    ],
)
def test_bad_requests_say_so(options):
    """A wrong day, hour or seed is our own error."""
    with pytest.raises(InputError):
        datasets.ann_arbor(**options)


def test_a_dataset_is_frozen():
    """A data set's fields cannot be replaced."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        ann_arbor(0).name = "real"


def test_draws_do_what_they_say():
    """Apportioned integers add up, heavy tails meet both their sums, and a race favours the fast and skips the still."""
    rng = generator(0)
    assert apportion(rng.random(50), 1_000).sum() == 1_000
    sizes = heavy_tailed(rng, 300, 2_500, 120_000)
    assert (sizes.sum(), sizes.min()) == (2_500, 1)
    assert (sizes**2).sum() == pytest.approx(120_000, rel=0.02)
    assert np.all(np.diff(sizes) <= 0)
    first = [exponential_race(rng, np.array([1.0, 0.0, 3.0]), 3) for _ in range(2_000)]
    assert all(set(order) == {0, 2} for order in first)
    assert np.mean([order[0] == 2 for order in first]) == pytest.approx(0.75, abs=0.05)
