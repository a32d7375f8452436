"""The charts show the published numbers, whatever the universe is."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import strategies as own
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reported import Page, grouped

import cbdp
from cbdp.app.internal import build_internal
from cbdp.features import opal
from cbdp.release.views import counted_noun, published_view
from cbdp.report import build
from cbdp.report.charts import chart_data
from cbdp_features.places import Stops


def test_charts_show_the_published_counts(rush):
    """Demand, matrix and shares in the page are sums of the published trips, in all and by period."""
    _, release, stops = rush
    data = Page(build(release, places=stops)).data
    times = release.features.universe.dimension("time").values
    assert data["periods"] == ["all day", "08:00–08:30", "08:30–09:00", "09:00–09:30", "09:30–10:00"]
    assert data["total"] == release.total
    demand = grouped(release, ["time"])
    assert data["demand"]["series"][0]["count"] == [demand[(t,)] for t in times]
    zones = data["matrix"]["rows"]
    assert zones == data["matrix"]["columns"] == ["NE", "NW", "SE", "SW"]
    pairs = grouped(release, ["origin.zone", "destination.zone"])
    assert data["matrix"]["cells"][0]["count"] == [pairs[a, b] for a in zones for b in zones]
    each = grouped(release, ["origin.zone", "destination.zone", "time"])
    modes = grouped(release, ["mode", "time"])
    for place, time in enumerate(times, 1):
        assert data["matrix"]["cells"][place]["count"] == [each[a, b, time] for a in zones for b in zones]
        bars = data["shares"][0]["bars"][place]["count"]
        assert bars == [modes[mode, time] for mode in data["shares"][0]["labels"]]


def test_flows_between_stops_are_the_largest_ones(rush):
    """Each period lists its largest pairs with their trips, from origin to destination and not the other way."""
    _, release, stops = rush
    flows = Page(build(release, places=stops)).data["flows"]
    name = [stop[0] for stop in flows["stops"]]
    for place, time in enumerate([None, *release.features.universe.dimension("time").values]):
        by = ["origin", "destination"] if time is None else ["origin", "destination", "time"]
        true = {k[:2]: n for k, n in grouped(release, by).items() if time is None or k[2] == time}
        shown = {(name[o], name[d]): n for o, d, n in flows["flows"][place]}
        most = flows["most"] if time is None else flows["most_each"]
        assert all(true[pair] == n for pair, n in shown.items())
        assert sorted(shown.values()) == sorted(true.values())[-most:]
        assert any(true.get((b, a)) != n for (a, b), n in shown.items())


def test_stops_lie_where_the_places_say(rush):
    """Coordinates and zones in the page are those of the stops, and a zone's middle is the mean of its stops."""
    _, release, stops = rush
    flows = Page(build(release, places=stops)).data["flows"]
    assert len(flows["stops"]) == len(stops) == 130
    zone_names = [zone[0] for zone in flows["zones"]]
    where = {s: (a, o, z) for s, a, o, z in zip(stops.ids, stops.lat, stops.lon, stops.zone, strict=True)}
    for stop, _, lat, lon, zone in flows["stops"]:
        assert (lat, lon) == pytest.approx(where[stop][:2], abs=1e-6)
        assert zone_names[zone] == where[stop][2]
    for zone, lat, lon in flows["zones"]:
        own_stops = np.array([where[s][:2] for s in where if where[s][2] == zone])
        assert (lat, lon) == pytest.approx(own_stops.mean(axis=0), abs=1e-5)
    for (zone, lat, lon), said in zip(
        flows["zones"], flows["called"], strict=True
    ):  # numbered zones name their middle
        own = [s for s in flows["stops"] if zone_names[s[4]] == zone]
        wide = np.cos(np.radians(lat))
        nearest = min(own, key=lambda s: (s[2] - lat) ** 2 + ((s[3] - lon) * wide) ** 2)
        assert said == (f"{zone} around {nearest[1]}" if re.fullmatch(r"Z\d+", zone) else zone)


def test_intervals_are_the_published_ones_and_sums_have_their_own(rush):
    """Counts of a table have its intervals; sums over periods have those that `ask` gives, narrower than added ends."""
    _, release, stops = rush
    page = Page(build(release, places=stops))
    data, dag = page.data, release.features
    assert data["demand"]["exact"]
    assert data["demand"]["series"][0]["low"] == release.intervals["time"].low.tolist()
    assert data["demand"]["series"][0]["high"] == release.intervals["time"].high.tolist()
    added = Counter()
    ends = release.intervals["mode"]
    for mode, width in zip(dag.partition("mode").keys()["mode"], ends.high - ends.low, strict=True):
        added[mode] += int(width)
    share = data["shares"][0]
    assert share["exact_each"]
    assert share["exact"]
    asked = release.ask("mode", sharp=False)
    assert share["labels"] == asked["mode"]
    told = list(zip(share["bars"][0]["low"], share["bars"][0]["high"], strict=True))
    for label, count, (low, high) in zip(share["labels"], share["bars"][0]["count"], told, strict=True):
        assert low <= count <= high
        assert high - low < 0.8 * added[label]
    assert told == list(zip(asked["low"], asked["high"], strict=True))
    best = max(range(4), key=lambda t: data["demand"]["series"][0]["count"][t])
    i = release.intervals["time"]
    assert f"(90 % interval {i.low[best]:,}–{i.high[best]:,})" in page.text


def test_sums_that_measurements_do_not_tell_say_they_are_ranges(rush):
    """Of tables that were published on their own, sums over periods have added ends and do not claim to be intervals."""
    city, *_ = rush
    made = cbdp.ThresholdLaplace(rush[1].features, 9, unit="trip", threshold=2).simulate(city.trips, 5)
    release = made.with_intervals()
    share = Page(build(release)).data["shares"][0]
    keys, ends = release.features.partition("mode").keys()["mode"], release.intervals["mode"]
    low = Counter()
    for mode, least in zip(keys, ends.low, strict=True):
        low[mode] += int(least)
    assert not share["exact"]
    assert share["bars"][0]["low"] == [low[m] for m in share["labels"]]


def _cases():
    def plain(**dims):
        return cbdp.Universe(**dims)

    stops = ["A", "B", "C"]
    od = plain(origin=stops, destination=stops, time=["am", "pm"])
    taps = opal(plain(tap=["on", "off"], time=cbdp.periods("00:00", "24:00", "15min"), location=stops))
    one = cbdp.FeatureDag(
        plain(origin=stops, destination=stops, time=["am"]).without_equal("origin", "destination"), []
    )
    many = cbdp.Dimension(range(90), zone=[f"Z{i}" for i in range(90)])
    wide = cbdp.FeatureDag(
        plain(origin=many, destination=many), [cbdp.Feature("zone", by=["origin.zone", "destination.zone"])]
    )
    moments = plain(when=cbdp.periods("00:00", "24:00", "1min"))
    days = plain(day=["mon", "tue"], origin=["A", "B"], destination=["C", "D", "E"])
    yield "no zones", cbdp.FeatureDag(od, [cbdp.Feature("time", by="time")]), {"demand", "matrix", "flows"}
    yield "taps", taps, {"demand", "matrix", "types"}
    yield "one period", one, {"demand", "matrix", "flows"}
    yield "many zones", wide, {"matrix", "flows"}
    yield "minutes only", cbdp.FeatureDag(moments, []), {"demand", "types"}
    yield "one dimension", cbdp.FeatureDag(plain(place=stops), []), {"types"}
    yield "days, other stops", cbdp.FeatureDag(days, [cbdp.Feature("day", by="day")]), {"matrix", "flows"}


@pytest.mark.parametrize(("name", "dag", "shown"), [pytest.param(*case, id=case[0]) for case in _cases()])
@pytest.mark.parametrize("trips", [0, 7])
def test_any_feature_set(name: str, dag: cbdp.FeatureDag, shown: set[str], trips: int):
    """Charts appear for what the features have; totals agree with the release, also where there are no trips at all."""
    release = cbdp.ConstraintBased(dag, 1000).simulate(np.full(dag.universe.size, trips), 1)
    assert release.total == trips * dag.universe.size
    page = Page(build(release))
    data = page.data
    assert {key for key in ("demand", "matrix", "flows", "types") if data[key]} == shown
    assert data["total"] == release.total
    assert counted_noun(dag.universe).number(release.total) in page.text
    if data["demand"]:
        assert sum(sum(s["count"]) for s in data["demand"]["series"]) == release.total
    if data["matrix"]:
        cells = [n for n in data["matrix"]["cells"][0]["count"] if n >= 0]
        assert sum(cells) == sum(n for n in cells) <= release.total
        assert len(data["matrix"]["rows"]) <= 40
    for share in data["shares"]:
        assert sum(share["bars"][0]["count"]) == release.total
    build_internal(release, cbdp.count(np.full(dag.universe.size, trips), dag.universe))


def test_impossible_cells_are_marked():
    """A structural zero is no count of zero."""
    stops = ["A", "B", "C"]
    universe = cbdp.Universe(origin=stops, destination=stops).without_equal("origin", "destination")
    dag = cbdp.FeatureDag(universe, [cbdp.Feature("pair", by=["origin", "destination"])])
    release = cbdp.ConstraintBased(dag, 1000).simulate(np.arange(6), 1)
    assert chart_data(published_view(release))["matrix"]["cells"][0]["count"] == [
        -1,
        0,
        1,
        2,
        -1,
        3,
        4,
        5,
        -1,
    ]


@pytest.mark.slow
def test_universe_too_large_to_list():
    """Ten billion trip types: the page lists the largest flows only, and stays small."""
    stops = cbdp.Dimension(range(20_000), zone=[i % 50 for i in range(20_000)])
    universe = cbdp.Universe(origin=stops, destination=stops, time=cbdp.periods("00:00", "24:00", "1h"))
    dag = cbdp.FeatureDag(
        universe,
        [cbdp.Feature("time", by="time"), cbdp.Feature("zone", by=["origin.zone", "destination.zone"])],
    )
    rng = np.random.default_rng(0)
    ends = rng.zipf(1.3, (2, 20_000)) % 20_000
    times = np.array(universe.dimension("time").values)[rng.integers(0, 24, 20_000)]
    release = cbdp.ConstraintBased(dag, 1).simulate(
        {"origin": ends[0], "destination": ends[1], "time": times}, 3
    )
    angle = rng.uniform(0, 1, (2, 20_000))
    places = Stops(tuple(range(20_000)), tuple("stop" for _ in range(20_000)), *angle)
    html = build(release, places=places)
    data = Page(html).data
    assert len(html.encode()) < 1_000_000
    assert len(data["matrix"]["rows"]) == 40
    assert data["matrix"]["of"] == [50, 50]
    assert data["flows"]["hidden"] + len(data["flows"]["stops"]) == 20_000
    assert f"{universe.size:,}" in Page(html).text


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_random_universes(draw):
    """Whatever the dimensions, attributes, structural zeros and features: the page is made, and its sums agree."""
    case = draw.draw(own.cases(partial=False))
    dag = case.dag()
    release = cbdp.ConstraintBased(dag, 50).simulate(np.arange(dag.universe.size) % 5, 1)
    data = Page(build(release)).data
    assert data["total"] == release.total
    for share in data["shares"]:
        assert all(sum(bars["count"]) <= release.total for bars in share["bars"])
        assert sum(share["bars"][0]["count"]) == release.total
        if len(share["bars"]) > 1:
            assert sum(sum(bars["count"]) for bars in share["bars"][1:]) == release.total


def test_days_stand_in_the_order_of_the_calendar():
    """Types of days and names of days, which an alphabet would mix up, in bars and in the rows of a matrix."""
    days = cbdp.days("2026-03-02", "2026-03-08")
    names = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    universe = cbdp.Universe(
        day=cbdp.Dimension(days.values, type=days.attributes["type"], name=names), time=["am", "pm"]
    )
    dag = cbdp.FeatureDag(
        universe, [cbdp.Feature("type", by=["day.type", "time"]), cbdp.Feature("name", by="day.name")]
    )
    made = chart_data(published_view(cbdp.ConstraintBased(dag, 1).simulate(np.arange(14) * 50, 1)))
    shown = {
        c["name"]: [c["labels"][i] for i in c["order"] or range(len(c["labels"]))] for c in made["shares"]
    }
    assert shown["day.type"] == ["weekday", "saturday", "sunday"]
    assert shown["day.name"] == names
    assert [series["label"] for series in made["demand"]["series"]] == ["weekday", "saturday", "sunday"]


def test_the_map_is_framed_by_where_trips_are():
    """A stop far away is counted and said, and does not move the middle of its zone."""
    stops = cbdp.Dimension([f"S{i}" for i in range(6)], zone=["n", "n", "n", "s", "s", "s"])
    dag = cbdp.FeatureDag(
        cbdp.Universe(origin=stops, destination=stops),
        [cbdp.Feature("zone", by=["origin.zone", "destination.zone"])],
    )
    lat, lon = (
        np.array([42.0, 42.1, 0.0, 42.2, 42.3, 42.25]),
        np.array([-83.0, -83.1, 0.0, -83.2, -83.1, -83.0]),
    )
    places = Stops(tuple(stops.values), tuple(stops.values), lat, lon)
    release = replace(cbdp.ConstraintBased(dag, 5).simulate(np.full(36, 20), 1), places=places)
    found = chart_data(published_view(release))["flows"]
    assert found["frame"] == [42.0, -83.2, 42.3, -83.0]
    assert found["outside"] == 1
    assert 0.1 < found["outside_share"] < 0.25
    assert found["zones"][0] == ["n", 42.05, -83.05]
    assert "1 stop lies far from most trips, outside this map" in Page(build(release)).text
