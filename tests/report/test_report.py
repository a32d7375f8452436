"""The report says what the release says, whatever is in it, and nothing else."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import math
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import strategies as own
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cbdp
from cbdp.app.internal import build_internal
from cbdp.errors import InputError
from cbdp.estimate.intervals import Interval
from cbdp.features import odmts, opal
from cbdp.features.places import Stops
from cbdp.measuring.samplers.geometric import GeometricSampler
from cbdp.release.loading import load
from cbdp.release.release import Release
from cbdp.report import build
from cbdp.report.charts import charts
from cbdp.report.markup import INTERNAL
from cbdp.report.published import publish
from cbdp.report.trust import CARE, EMPTY, NOISE, TRUST, judge

ROOT = Path(__file__).parents[2]
HOSTILE = "</script><script>alert(1)</script>\"'&<img src=x onerror=alert(2)>\u2028"


class Page(HTMLParser):
    """What a browser would find: elements with their attributes, and the text outside scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self._inside: str | None = None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in self.raw:
            self._inside = tag
            self.raw[tag].append("")

    def handle_endtag(self, tag):
        if tag == self._inside:
            self._inside = None

    def handle_data(self, data):
        if self._inside is None:
            self.words.append(data)
        else:
            self.raw[self._inside][-1] += data

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))

    @property
    def data(self):
        return json.loads(self.raw["script"][0])


def with_stops(city) -> Stops:
    s = city.stops
    return Stops(
        tuple(s["stop"].tolist()), tuple(s["stop"].tolist()), s["lat"], s["lon"], tuple(s["zone"].tolist())
    )


@pytest.fixture(scope="module")
def rush():
    """The built-in city's rush hour, a release of it with intervals, and its stops."""
    city = cbdp.datasets.ann_arbor(seed=0, hours=("08:00", "10:00"))
    made = cbdp.ConstraintBased(city.features(), epsilon=1).simulate(city.trips, 5).with_intervals()
    return city, replace(made, secure=True), with_stops(city)


def grouped(release: Release, by: list[str]) -> Counter:
    """The published trips by attributes, row by row from the table of trips."""
    universe, trips = release.features.universe, release.trips()
    names = list(universe.dimensions)
    found: Counter = Counter()
    for row in zip(*(trips[name] for name in names), trips["count"].tolist(), strict=True):
        code = [universe.dimension(n).values.index(v) for n, v in zip(names, row[:-1], strict=True)]
        key = []
        for name in by:
            a = universe.attribute(name)
            key.append(a.labels[a.codes[tuple(code[names.index(dim)] for dim in a.of)]])
        found[tuple(key)] += row[-1]
    return found


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


def test_intervals_are_the_published_ones_and_sums_say_they_are_ranges(rush):
    """Counts of a table have its intervals; sums over periods have added ends and do not claim to be intervals."""
    _, release, stops = rush
    page = Page(build(release, places=stops))
    data, dag = page.data, release.features
    assert data["demand"]["exact"]
    assert data["demand"]["series"][0]["low"] == release.intervals["time"].low.tolist()
    assert data["demand"]["series"][0]["high"] == release.intervals["time"].high.tolist()
    keys = dag.partition("mode").keys()
    low, high = Counter(), Counter()
    for mode, a, b in zip(
        keys["mode"], release.intervals["mode"].low, release.intervals["mode"].high, strict=True
    ):
        low[mode] += int(a)
        high[mode] += int(b)
    share = data["shares"][0]
    assert share["exact_each"]
    assert not share["exact"]
    assert share["bars"][0]["low"] == [low[m] for m in share["labels"]]
    assert share["bars"][0]["high"] == [high[m] for m in share["labels"]]
    best = max(range(4), key=lambda t: data["demand"]["series"][0]["count"][t])
    i = release.intervals["time"]
    assert f"(90 % interval {i.low[best]:,}–{i.high[best]:,})" in page.text


def test_other_confidence_is_stated(rush):
    """Intervals of 95 % are called that."""
    _, release, _ = rush
    text = Page(build(replace(release, confidence=0.95))).text
    assert "95 % interval" in text
    assert "90 %" not in text


@pytest.mark.parametrize(
    ("epsilon", "factor"), [("1/10", "1.11"), ("1", "2.7"), ("3", "20.1"), ("10", "22,026")]
)
def test_protection_in_words(epsilon: str, factor: str):
    """The bound is e to the ε, and the example is the belief that follows from even odds."""
    universe = cbdp.Universe(origin=["A", "B"], destination=["A", "B"])
    release = cbdp.ConstraintBased(cbdp.FeatureDag(universe, []), epsilon=epsilon).simulate(
        np.array([3, 1, 4, 1]), 1
    )
    text = Page(build(release)).text
    assert (
        f"changes the odds of any conclusion by at most a factor of e{'0.1' if '/' in epsilon else epsilon} = {factor}."
        in text
    )
    odds = math.exp(Fraction(epsilon))
    sure = float(re.search(r"can be at most ([\d.]+) % sure", text)[1])
    assert sure / 100 == pytest.approx(odds / (1 + odds), abs=0.005)
    assert "The unit is one trip" in text


def test_unit_delta_and_missing_promises_are_spoken_of():
    """A person as the unit, a replaced trip, a δ, no promise at all, and a simulation are each said in words."""
    dag = opal(
        cbdp.Universe(tap=["on", "off"], time=cbdp.periods("08:00", "09:00", "15min"), location=["M", "Q"])
    )
    counts = np.full(16, 40)
    person = cbdp.Person("card & co", 4)
    trips = {"tap": ["on"] * 3, "time": ["08:00"] * 3, "location": ["M"] * 3, "card & co": [1, 1, 2]}
    text = Page(build(cbdp.ConstraintBased(dag, 1, unit=person).simulate(trips, 1))).text
    assert "The unit is one person" in text
    assert "At most 4 trips of each (told apart by “card & co”)" in text
    assert "Simulation, not a release." in text
    text = Page(build(replace(cbdp.StabilityHistogram(dag, 2).simulate(counts, 1), secure=True))).text
    assert "Whether any one trip was this one or another" in text
    assert "may fail with a probability of at most δ = 5e-07" in text
    assert "Simulation" not in text
    text = Page(build(cbdp.ThresholdLaplace(dag, 2).simulate(counts, 1))).text
    assert "This release promises no differential privacy." in text
    assert "changes the odds" not in text


def test_labels_never_become_markup():
    """Stops, zones, modes, names and features that hold markup are shown as text: no element or attribute is theirs."""
    stops = [f"{HOSTILE}{i}" for i in range(3)]
    place = cbdp.Dimension(stops, zone=[f"z{HOSTILE}", f"y{HOSTILE}", f"y{HOSTILE}"])
    universe = cbdp.Universe(origin=place, destination=place, time=[f"am{HOSTILE}", f"pm{HOSTILE}"])
    universe = universe.with_attribute("mode", ("origin", "destination"), lambda a, b: f"{a == b}{HOSTILE}")
    name = HOSTILE.replace("/", "").strip()
    features = [cbdp.Feature(name, by="time"), *list(odmts(universe).features.values())[1:4]]
    dag = cbdp.FeatureDag(universe, features)
    release = cbdp.ConstraintBased(dag, 1, unit=cbdp.Person(HOSTILE, 2)).simulate(
        {
            "origin": stops * 9,
            "destination": stops[::-1] * 9,
            "time": [f"am{HOSTILE}"] * 27,
            HOSTILE: list(range(27)),
        },
        1,
    )
    places = Stops(tuple(stops), tuple(stops), np.array([1.0, 2, 3]), np.array([1.0, 2, 4]))
    public = build(release, places=places, manifest={HOSTILE: HOSTILE})
    truth = cbdp.count({"origin": stops, "destination": stops, "time": [f"am{HOSTILE}"] * 3}, universe)
    for html in (public, build_internal(release, truth)):
        page = Page(html)
        kinds = Counter(tag for tag, _ in page.elements)
        assert kinds["script"] == 2
        assert kinds["img"] == 0
        assert not any(key.startswith("on") for _, attributes in page.elements for key in attributes)
        assert not any("style" in attributes for _, attributes in page.elements)
        assert HOSTILE.replace("\u2028", " ")[:60] in page.text
        assert "\u2028" not in page.raw["script"][0]
    data = Page(public).data
    assert data["matrix"]["rows"] == [f"y{HOSTILE}", f"z{HOSTILE}"]
    assert data["flows"]["stops"][0][0] in stops


def test_page_can_ask_nothing_of_any_server(rush):
    """No address stands in it, and its policy allows only its own style and script, by their hashes."""
    city, release, stops = rush
    truth = cbdp.count(city.trips, city.universe)
    for html in (build(release, places=stops), build_internal(release, truth)):
        page = Page(html)
        links = [
            v
            for _, a in page.elements
            for k, v in a.items()
            if k in ("src", "href", "action", "srcset", "data")
        ]
        assert all(link.startswith("#") or link == "data:," for link in links)
        outside = re.sub(r"http://www\.w3\.org/2000/svg", "", html)
        assert not re.search(r"https?://|//cdn|@import|url\((?!#)", outside.split('id="data"')[0])
        policy = next(
            a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"
        )
        assert policy.startswith("default-src 'none'; ")
        for text in (page.raw["style"][0], page.raw["script"][1]):
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy


def test_same_release_same_bytes(rush):
    """Nothing of the day or the machine is in the page."""
    _, release, stops = rush
    first, again = (build(release, places=stops) for _ in range(2))
    assert first == again
    assert str(Path.home()) not in first.replace('"/"', "")
    assert sys.executable not in first


def test_loaded_release_gives_the_same_page(rush, tmp_path):
    """What was saved and read back is reported the same way, numbers, words and all but the manifest's files."""
    _, release, stops = rush
    replace(release, places=stops).save(tmp_path / "out")
    back = load(tmp_path / "out")
    assert build(back, manifest={}) == build(release, places=stops, manifest={})


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
    assert f"{release.total:,} trips" in page.text
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
    assert charts(publish(release))["matrix"]["cells"][0]["count"] == [-1, 0, 1, 2, -1, 3, 4, 5, -1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", ["ConstraintBased", "Laplace", "Hierarchical", "StabilityHistogram", "ThresholdLaplace"]
)
def test_every_mechanism(mechanism: str):
    """Each mechanism's release can be reported; tables that disagree say so, those that add up say so."""
    city = cbdp.datasets.ann_arbor(hours=("08:00", "08:30"))
    release = getattr(cbdp, mechanism)(city.features(), 4).simulate(city.trips, 2)
    page = Page(build(release, places=with_stops(city)))
    if release.tables:
        assert "The tables were noised one by one." in page.text
        assert page.data["demand"]["series"][0]["count"] == release.tables["time"].tolist()
    else:
        assert "they add up to each other exactly" in page.text
    build_internal(release, cbdp.count(city.trips, city.universe))


def test_disagreeing_tables_are_counted():
    """Of the pairs of tables that should add up, exactly those that do not are reported."""
    dag = opal(cbdp.Universe(tap=["on", "off"], time=["a", "b"], location=["M", "Q"]))
    release = cbdp.StabilityHistogram(dag, 2).simulate(np.full(8, 100), 1)
    agree = {"tap": np.array([4, 4]), "time": np.array([2, 2, 2, 2]), "location": np.array([1, 3, 3, 1])}
    assert "Of 2 pairs that should add up, 0 do not" in Page(build(replace(release, tables=agree))).text
    agree["location"] = np.array([1, 3, 3, 2])
    assert "Of 2 pairs that should add up, 1 do not" in Page(build(replace(release, tables=agree))).text


def test_rounding_violations_are_named(rush):
    """A release whose rounding could not keep a table says which; the others say that it could."""
    _, release, _ = rush
    assert "moved every count of every table of sums by less than one trip" in Page(build(release)).text
    text = Page(build(replace(release, violations={"mode": 3, "zone": 0}))).text
    assert "it moved 3 of mode by one trip or more, and no other count" in text


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


@pytest.mark.slow
def test_built_in_city_is_small():
    """The whole day of the built-in city fits into far less than two megabytes."""
    city = cbdp.datasets.ann_arbor()
    release = cbdp.ConstraintBased(city.features(), 1).simulate(city.trips, 1)
    flat = {
        n: Interval(np.maximum(release.counts(n) - 10, 0), release.counts(n) + 10)
        for n in ("time", "zone", "mode")
    }
    html = build(replace(release, intervals=flat), places=with_stops(city))
    assert 50_000 < len(html.encode()) < 500_000


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




def test_verdicts_follow_their_rule(rush):
    """A typical half width of at most 20 % of the count is trusted, up to 100 % used with care, and beyond it noise."""
    _, release, _ = rush
    counts = release.counts("zone")
    for wide, verdict in ((0.1, TRUST), (0.5, CARE), (1.5, NOISE)):
        half = np.round(wide * counts).astype(np.int64)
        made = {"zone": Interval(np.maximum(counts - half, 0), counts + half + np.maximum(half - counts, 0))}
        found = judge(publish(replace(release, intervals=made)), "zone")
        assert found.verdict == verdict
        assert found.sure == np.mean(made["zone"].low > 0)
        assert found.sure_trips == pytest.approx(counts[made["zone"].low > 0].sum() / counts.sum())
    alone = judge(publish(replace(release, intervals={})), "zone")
    assert alone.measured
    assert (alone.scale, alone.noise) == (pytest.approx(20 / 3), 15)  # a table gets 3/20 of ε
    assert alone.relative == pytest.approx(np.median(15 / counts[counts > 0]))
    empty = replace(release, index=release.index[:0], value=release.value[:0], intervals={})
    assert judge(publish(empty), "zone").verdict == EMPTY


def test_noise_of_a_tree_is_not_said_to_be_that_of_a_feature():
    """A hierarchical release measures levels: only those that are features themselves have a noise scale."""
    city = cbdp.datasets.ann_arbor(hours=("08:00", "08:30"))
    published = publish(cbdp.Hierarchical(city.features(), 1).simulate(city.trips, 1))
    assert published.law("time") is not None
    assert published.law("mode") is None
    assert judge(published, "mode").verdict == EMPTY


def test_budget_adds_up_in_the_page(rush):
    """Every feature's share is listed."""
    city, _, _ = rush
    budget = {"total": "1/10", "time": "1/10", "zone": "1/5", "mode": "1/5", "singleton": "2/5"}
    release = cbdp.ConstraintBased(city.features(), 1, budget=budget).simulate(city.trips, 1)
    text = Page(build(release)).text
    for name, share in (("total", "0.1 (10 %)"), ("zone", "0.2 (20 %)"), ("singleton", "0.4 (40 %)")):
        assert f"{name}ε {share}" in text


def test_manifest_is_folded_in(rush):
    """The release's own manifest is shown; another one only when it is given."""
    _, release, _ = rush
    assert release.manifest["universe"]["sha256"] in build(release)
    page = Page(build(release, manifest={"only": "this one"}))
    assert '"only": "this one"' in page.text
    assert release.manifest["universe"]["sha256"] not in page.text


def test_public_report_imports_nothing_private():
    """Making the public report loads no module left of the wall; only the internal one may."""
    script = "import sys, cbdp.report; print([m for m in ('cbdp.trips.count', 'cbdp.measuring.noise', 'cbdp.mechanisms', 'cbdp.measuring.dense') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    for path in (ROOT / "cbdp" / "report").glob("*.py"):
        names = {n.module for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.ImportFrom)}
        assert path.name == "internal.py" or not names & {
            "cbdp.trips.count",
            "cbdp.measuring.noise",
            "cbdp.mechanisms",
        }


def test_internal_report_measures_the_errors(rush, tmp_path, monkeypatch):
    """Errors, coverage and misses are those against the truth; it bears its banner, and writes no file."""
    city, release, _ = rush
    truth = cbdp.count(city.trips, city.universe)
    monkeypatch.chdir(tmp_path)
    page = Page(build_internal(release, truth))
    assert list(tmp_path.iterdir()) == []
    assert page.text.count(INTERNAL) == 2
    assert INTERNAL == "INTERNAL – reveals private data – do not publish"
    assert f"True trips: {len(city):,}. Published: {release.total:,}." in page.text
    error = release.counts("zone") - truth.of(release.features, "zone")
    rms, largest = np.sqrt(np.mean(error**2)), np.abs(error).max()
    inside = release.intervals["zone"]
    exact = truth.of(release.features, "zone")
    covered = np.mean((inside.low <= exact) & (exact <= inside.high))
    row = re.search(r"zone\s*64(.*?)mode", page.text)[1]
    assert row.startswith(f"{rms:.3g}")
    assert f"{largest:,}" in row
    assert f"{100 * covered:.0f} %" in row
    worst = int(np.argmax(np.abs(error)))
    keys = release.features.partition("zone").keys()
    name = " · ".join(str(column[worst]) for column in keys.values())
    assert f"{name}{release.counts('zone')[worst]:,}{exact[worst]:,}" in page.text
    assert INTERNAL not in build(release)


def test_internal_report_refuses_another_universe(rush):
    """Counts of other trip types are no truth of this release."""
    _, release, _ = rush
    other = cbdp.count(np.ones(2, dtype=np.int64), cbdp.Universe(origin=["A", "B"]))
    with pytest.raises(InputError, match="other trip types"):
        build_internal(release, other)


def test_internal_errors_of_types_count_the_zeros(rush):
    """Types that have neither published nor true trips are part of the mean."""
    city, release, _ = rush
    truth = cbdp.count(city.trips, city.universe)
    rms = np.sqrt(np.mean((release.counts("singleton") - truth.dense()) ** 2))
    assert f"singleton{67600:,}{rms:.3g}" in Page(build_internal(release, truth)).text
