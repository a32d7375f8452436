"""Plots show what is published: bars are the counts, thin lines the intervals, and words say unit, ε and how sure it is."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from released import city_features, release_of

import cbdp
from cbdp.errors import InputError
from cbdp.release import About, Dates
from cbdp.release.release import Release
from cbdp_features.places import Stops

MONDAY = Dates(dt.date(2026, 3, 2), dt.date(2026, 3, 2))
ABOUT = About("A small city", "Nowhere", MONDAY, timezone="Europe/Paris")
PLACES = Stops(
    ("A", "B", "C", "D"),
    ("North", "Mill", "South", "Quay"),
    np.array([48.80, 48.81, 48.90, 48.91]),
    np.array([2.30, 2.31, 2.40, 2.41]),
)


@pytest.fixture(autouse=True)
def _no_window() -> Iterator[None]:
    with mpl.rc_context(), plt.ioff():
        plt.switch_backend("Agg")
        yield
        plt.close("all")


@pytest.fixture
def city() -> Release:
    return replace(release_of("constraint-based"), about=ABOUT, places=PLACES)


def words(ax: Any) -> str:
    """All that is written on a picture."""
    whole = ax.figure
    texts = [
        whole.get_suptitle(),
        whole.get_supxlabel(),
        ax.get_title(loc="left"),
        ax.get_xlabel(),
        ax.get_ylabel(),
    ]
    texts += [t.get_text() for t in ax.texts]
    return " ".join(texts).replace("\n", " ")


def whiskers(ax: Any) -> np.ndarray:
    """The ends of the thin lines."""
    (lines,) = [c for c in ax.collections if hasattr(c, "get_segments")]
    return np.array(lines.get_segments())


def test_the_day_has_a_bar_for_each_published_count(city: Release) -> None:
    """As high as the count, as wide as the period, with the published interval."""
    ax = city.plot.day()
    bars = ax.patches
    assert [b.get_height() for b in bars] == city.counts("time").tolist()
    assert [round(b.get_x() + b.get_width() / 2, 6) for b in bars] == [6.5, 7.5]
    interval = city.interval("time")
    assert whiskers(ax)[:, :, 1].tolist() == np.column_stack([interval.low, interval.high]).tolist()
    said = words(ax)
    for part in (
        "A small city",
        "Nowhere",
        "2 March 2026",
        "trips",
        "Europe/Paris",
        "90 % intervals",
        "ε = 1 for each trip",
    ):
        assert part in said


def test_lines_by_an_attribute_are_its_counts(city: Release) -> None:
    """A line for each mode; one that nobody has, or with too many values, is refused with a cure."""
    ax = city.plot.day(by="mode")
    rows = city.ask(by=["mode", "time"])
    for line in ax.get_lines():
        own = [n for mode, n in zip(rows["mode"], rows["count"], strict=True) if mode == line.get_label()]
        assert line.get_ydata().tolist() == own
    with pytest.raises(InputError, match="did you mean 'mode'"):
        city.plot.day(by="mod")


def test_flows_are_the_largest_counts_in_order(city: Release) -> None:
    """Of zones with their intervals, which are those of the noise alone; of stops by their names."""
    ax = city.plot.flows(3)
    rows = city.ask(by=["origin.zone", "destination.zone"], sharp=False)
    order = np.argsort(-np.asarray(rows["count"]), kind="stable")[:3]
    assert [b.get_width() for b in ax.patches] == np.asarray(rows["count"])[order].tolist()
    names = [f"{rows['origin.zone'][i]} → {rows['destination.zone'][i]}" for i in order]
    assert [t.get_text() for t in ax.get_yticklabels()] == names
    ends = np.sort(whiskers(ax)[:, :, 0], axis=1)
    shown = np.column_stack([np.asarray(rows["low"])[order], np.asarray(rows["high"])[order]])
    assert (np.abs(ends - shown) <= 1).all()  # `ask` widens to the estimate
    stops = city.plot.flows(50, level="stops")
    assert sum(b.get_width() for b in stops.patches) == city.total
    assert any("North → " in t.get_text() for t in stops.get_yticklabels())


def test_the_map_is_framed_by_trips_and_notes_what_is_left_out(city: Release) -> None:
    """A stop at 0° N 0° E, a common mistake in files of stops, does not shrink the city."""
    lat, lon = PLACES.lat.copy(), PLACES.lon.copy()
    ax = city.plot.map()
    near = ax.get_xlim()
    wide = city_features().universe.dimension("origin").values
    assert list(wide) == list(PLACES.ids)
    lat[3], lon[3] = 0.0, 0.0
    few = replace(city, places=replace(PLACES, lat=lat, lon=lon))
    keep = city.features.universe.unrank_codes(city.index)
    at_d = (keep[0] == 3) | (keep[1] == 3)
    value = np.where(at_d, 1, 1000)
    ax = replace(few, value=value).plot.map(level="stops")
    assert np.ptp(ax.get_xlim()) < 2 * np.ptp(near)
    assert "Not shown: 1 stop far from most trips" in words(ax)


def test_what_cannot_be_drawn_is_refused_with_a_cure(city: Release) -> None:
    """No places, no zones, no times, no flows: each says what is missing."""
    with pytest.raises(InputError, match="lat and lon"):
        release_of("constraint-based").plot.map()
    with pytest.raises(InputError, match="'zones' or 'stops'"):
        city.plot.flows(level="cities")
    with pytest.raises(InputError, match="at least one flow"):
        city.plot.map(0)
    taps = cbdp.FeatureDag(cbdp.Universe(kind=["on", "off"]), [])
    counted = cbdp.Laplace(taps, 1).simulate(np.array([5, 7]), seed=1)
    with pytest.raises(InputError, match="no times"):
        counted.plot.day()
    with pytest.raises(InputError, match="no origin and destination"):
        counted.plot.flows()


def test_without_matplotlib_it_says_what_to_install(city: Release, monkeypatch) -> None:
    """The extra by name; and nothing is drawn with a promise that does not hold."""
    simulated = replace(city, secure=False)
    assert "a simulation: it protects nobody" in words(simulated.plot.day()).lower()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"cbdp\[plot\]"):
        city.plot.day()


def test_on_axes_of_somebody_else_all_is_said_too(city: Release) -> None:
    """Two plots in one picture: each has its own title and foot, and the picture's own title is left alone."""
    whole, (left, right) = plt.subplots(1, 2, layout="constrained")
    whole.suptitle("mine")
    assert city.plot.day(ax=left) is left
    city.plot.map(level="stops", zoom="n", ax=right)
    assert whole.get_suptitle() == "mine"
    for ax in (left, right):
        said = words(ax)
        assert "A small city" in said
        assert "ε = 1 for each trip" in said


def test_a_map_of_one_zone(city: Release) -> None:
    """Half of the stops, half of the city; another zone is refused with a cure."""
    whole, part = city.plot.map(level="stops"), city.plot.map(level="stops", zoom="n")
    assert np.ptp(part.get_xlim()) < 0.5 * np.ptp(whole.get_xlim())
    with pytest.raises(InputError, match="no zone 'north' to zoom to: there are n, s"):
        city.plot.map(zoom="north")


def test_arrows_are_as_wide_as_their_trips(city: Release) -> None:
    """In proportion to the published counts, the widest for the largest flow between two zones."""
    ax = city.plot.map()
    rows = city.ask(by=["origin.zone", "destination.zone"])
    pairs = zip(rows["origin.zone"], rows["destination.zone"], rows["count"], strict=True)
    between = sorted(int(n) for a, b, n in pairs if a != b)
    wide = sorted(p.get_linewidth() for p in ax.patches)
    assert np.allclose(np.array(wide) / wide[-1], np.array(between) / between[-1])
    assert f"the widest arrow: {between[-1]:,}" in words(ax)
