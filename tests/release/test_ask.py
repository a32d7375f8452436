"""Any question to a release: sums are those of its trips, intervals hold the truth, shares lie between 0 and 1."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from released import release_of

import cbdp
from cbdp.errors import InputError
from cbdp.release import load
from cbdp.release.ask import ask, conditions
from cbdp_features.queries import Grouping

STOPS = cbdp.Dimension(["A", "B", "C", "D", "E", "F"], zone=["n", "n", "s", "s", "w", "w"])
TIMES = cbdp.periods("08:00", "10:00", "30min")
UNIVERSE = (
    cbdp.Universe(origin=STOPS, destination=STOPS, time=TIMES)
    .without_equal("origin", "destination")
    .with_attribute("mode", ("origin", "destination"), lambda o, d: "bus" if (o, d) < ("C", "E") else "tram")
)
DAG = cbdp.FeatureDag(
    UNIVERSE,
    [
        cbdp.Feature("time", by="time"),
        cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"]),
    ],
)
TRUTH = np.random.default_rng(2).poisson(np.random.default_rng(1).lognormal(1.5, 1.2, UNIVERSE.size))
RELEASE = cbdp.ConstraintBased(DAG, 1).simulate(TRUTH, 3)
PAIRS = [("A", "C"), ("C", "E")]


def _value(attribute: str, codes: list[int]) -> Any:
    found = UNIVERSE.attribute(attribute)
    place = dict(zip(UNIVERSE.dimensions, codes, strict=True))
    return found.labels[found.codes[tuple(place[d] for d in found.of)]]


def _by_hand(index: Any, value: Any, by: list[str], meets: Any) -> Counter[tuple[Any, ...]]:
    """Trips added up one type at a time."""
    made: Counter[tuple[Any, ...]] = Counter()
    for i, n in zip(index, value, strict=True):
        codes = [int(c[0]) for c in UNIVERSE.unrank_codes(np.array([i]))]
        if meets(codes):
            made[tuple(_value(a, codes) for a in by)] += n
    return made


def _keys(answer: dict[str, Any], by: list[str]) -> list[tuple[Any, ...]]:
    return list(zip(*(answer[a] for a in by), strict=True)) if by else [()]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_labels_and_sums_are_those_of_the_trips(data: st.DataObject) -> None:
    """Whatever is asked: every group that exists is listed once, with the trips that belong to it."""
    names = list(UNIVERSE.attributes)
    by = data.draw(st.lists(st.sampled_from(names), unique=True, max_size=3))
    filtered = data.draw(st.lists(st.sampled_from(names), unique=True, max_size=2))
    where = {
        a: data.draw(st.lists(st.sampled_from(UNIVERSE.attribute(a).labels), min_size=1, unique=True))
        for a in filtered
    }

    def meets(codes: list[int]) -> bool:
        return all(_value(a, codes) in labels for a, labels in where.items())

    every = _by_hand(np.arange(UNIVERSE.size), np.ones(UNIVERSE.size, int), by, meets)
    if not every:
        with pytest.raises(InputError, match="no trip type meets all conditions"):
            ask(RELEASE, by, where)
        return
    answer = ask(RELEASE, by, where, share_of=by[:1])
    keys = _keys(answer, by)
    assert sorted(keys) == sorted(every)
    counts = _by_hand(RELEASE.index, RELEASE.value, by, meets)
    assert [counts[key] for key in keys] == answer["count"].tolist()
    index, value = RELEASE.estimate.trips()
    estimate = _by_hand(index, value, by, meets)
    assert answer["estimate"] == pytest.approx([estimate[key] for key in keys])
    assert (answer["low"] <= answer["count"]).all()
    assert (answer["count"] <= answer["high"]).all()
    assert (answer["low"] >= 0).all()
    assert (answer["share_low"] >= 0).all()
    assert (answer["share_low"] <= answer["share"]).all()
    assert (answer["share"] <= answer["share_high"]).all()
    assert (answer["share_high"] <= 1).all()
    grouping = Grouping(UNIVERSE, tuple(by))
    assert grouping.types.sum() == UNIVERSE.size


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("time<09:00", {"time": ["08:00", "08:30"]}),
        ("time >= 9:00", {"time": ["09:00", "09:30"]}),
        ("time=08:00,08:30", {"time": ["08:00", "08:30"]}),
        ("time=8:00,8:30", {"time": ["08:00", "08:30"]}),
        ("origin=A, B", {"origin": ["A", "B"]}),
        ("mode!=bus", {"mode": "tram"}),
        ("origin+destination=A+C,C+E", {("origin", "destination"): PAIRS}),
        (["origin=A", "time>09:00"], {"origin": "A", "time": "09:30"}),
    ],
)
def test_conditions_as_text(text: Any, same: dict[Any, Any]) -> None:
    """Text says the same as labels."""
    first, second = RELEASE.ask("destination", text), RELEASE.ask("destination", same)
    assert first["destination"] == second["destination"]
    assert first["count"].tolist() == second["count"].tolist()
    assert 0 < first["count"].sum() < RELEASE.total


def test_a_corridor_is_a_list_of_pairs() -> None:
    """Its trips are those of its pairs alone, whatever time they are at."""
    corridor = RELEASE.ask((), {("origin", "destination"): PAIRS})
    pairs = RELEASE.ask(["origin", "destination"], {("origin", "destination"): PAIRS})
    assert list(zip(pairs["origin"], pairs["destination"], strict=True)) == PAIRS
    assert corridor["count"].tolist() == [pairs["count"].sum()]


def test_all_day_pairs_are_as_sure_as_the_noise_of_the_periods_together() -> None:
    """No interval is much wider than four independent noises reach together."""
    answer = RELEASE.ask(["origin.zone", "destination.zone"])
    noise = next(m for m in RELEASE.measurements if m.feature == "zone").variance[0]
    together = 2 * 1.645 * np.sqrt(4 * noise)
    assert (answer["high"] - answer["low"] <= 1.15 * together).all()
    ends = RELEASE.interval("zone")
    assert (answer["high"] - answer["low"]).sum() < 0.7 * (ends.high - ends.low).sum()


def test_shares_add_up_and_a_whole_is_certain() -> None:
    """Shares of one whole add up to 1; a group that is its own whole has the share 1 without doubt."""
    made = RELEASE.ask(["origin.zone", "mode"], share_of="origin.zone")
    sums = Counter()
    for zone, share in zip(made["origin.zone"], made["share"], strict=True):
        sums[zone] += share
    assert list(sums.values()) == pytest.approx([1.0] * 3)
    own = RELEASE.ask("origin.zone", share_of="origin.zone")
    assert own["share"].tolist() == own["share_low"].tolist() == own["share_high"].tolist() == [1.0] * 3


def test_public_counts_are_known() -> None:
    """Their sums have intervals of no width; a share of them is as sure as its part."""
    times = cbdp.count(TRUTH, UNIVERSE).of(DAG, "time").tolist()
    release = cbdp.ConstraintBased(DAG, 1, public={"time": times}).simulate(TRUTH, 3)
    early = release.ask((), "time<09:00")
    assert early["count"].tolist() == early["low"].tolist() == early["high"].tolist() == [sum(times[:2])]
    unknown = release.ask("origin", "time<09:00")
    assert (unknown["high"] > unknown["low"]).all()


QUESTIONS: list[tuple[Any, Any, Any]] = [
    (["origin.zone", "destination.zone"], None, None),
    ("origin", "time<09:00", ()),
    ((), {("origin", "destination"): PAIRS}, None),
]


@pytest.mark.parametrize("preset", ["best", "paper"])
def test_a_loaded_folder_answers_as_the_fresh_release(tmp_path: Path, preset: str) -> None:
    """Measurements, estimate and recipe are all that answers are made of."""
    fresh = cbdp.ConstraintBased(DAG, 1, preset=preset).simulate(TRUTH, 5)
    fresh.save(tmp_path / "out", simulation=True)
    back = cbdp.load(tmp_path / "out")
    for by, where, share_of in QUESTIONS:
        one, other = (r.ask(by, where, share_of=share_of, sharp=True) for r in (fresh, back))
        assert list(one.keys()) == list(other.keys())
        for name in one.keys():  # noqa: SIM118 - it iterates over rows
            assert (
                one[name] == other[name]
                if isinstance(one[name], list)
                else one[name] == pytest.approx(other[name])
            )


def test_runs_are_made_once_for_a_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a question that is told to be sharp takes runs, and the second makes no more."""
    made = []
    run = cbdp.ConstraintBased.simulate
    release = cbdp.ConstraintBased(DAG, 1).simulate(TRUTH, 7)
    monkeypatch.setattr(
        cbdp.ConstraintBased, "simulate", lambda *given, **more: made.append(1) or run(*given, **more)
    )
    release.ask("origin")
    assert not made
    first = release.ask("origin", sharp=True)
    runs = len(made)
    assert runs
    assert release.ask("origin", sharp=True)["low"].tolist() == first["low"].tolist()
    release.ask("destination", "time<09:00", sharp=True)
    assert len(made) == runs


@pytest.mark.parametrize("preset", ["best", "paper"])
def test_a_folder_answers_without_its_mechanism(tmp_path: Path, preset: str) -> None:
    """What was measured tells every interval: the same ones, from the folder alone."""
    release = cbdp.ConstraintBased(DAG, 1, preset=preset).simulate(TRUTH, 5)
    release.save(tmp_path / preset, simulation=True)
    answer = load(tmp_path / preset).ask("origin")
    for end in ("low", "high"):
        assert answer[end].tolist() == release.ask("origin")[end].tolist()


EVERY = cbdp.count(TRUTH, UNIVERSE)
WHOLE = replace(RELEASE, index=EVERY.index, value=EVERY.value, estimate=None)  # says what is true


def _held(release: cbdp.Release, by: Any, where: Any, share_of: Any) -> dict[str, Any]:
    """Whether intervals hold the true counts, and the true shares."""
    answer = release.ask(by, where, share_of=share_of)
    truth = WHOLE.ask(by, where, share_of=share_of)
    held = {"count": (answer["low"] <= truth["count"]) & (truth["count"] <= answer["high"])}
    if share_of is not None:
        low, share, high = answer["share_low"], truth["share"], answer["share_high"]
        held["share"] = (low - 1e-9 <= share) & (share <= high + 1e-9)
    return held


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Over 20 releases: all-day pairs, stops, a corridor, single types and shares, at 90 %."""
    mechanism = cbdp.ConstraintBased(DAG, 1)
    questions: dict[str, tuple[Any, Any, Any]] = {
        "pairs": (["origin.zone", "destination.zone"], None, None),
        "stops": ("origin", None, ()),
        "corridors": ("time", {("origin", "destination"): PAIRS}, None),
        "types": (["origin", "destination", "time"], "time<09:00", None),
        "modes": (["origin.zone", "mode"], None, ["origin.zone"]),
    }
    held: dict[str, list[Any]] = {}
    for seed in range(20):
        release = mechanism.simulate(TRUTH, seed)
        for name, question in questions.items():
            for what, rows in _held(release, *question).items():
                held.setdefault(f"{name}, {what}", []).extend(rows)
    found = {name: float(np.mean(rows)) for name, rows in held.items()}
    assert all(0.84 <= share <= 0.97 for share in found.values()), found


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"by": "origins"}, "unknown attribute 'origins': did you mean 'origin'?"),
        ({"by": ["origin", "origin"]}, "twice"),
        ({"by": "origin", "where": "time~09:00"}, "is not a condition"),
        ({"by": "origin", "where": "time=09:15"}, "time has no '09:15'"),
        ({"by": "origin", "where": "time=9:15"}, "time has no '9:15'"),
        ({"by": "origin", "where": "time<9"}, "time < '9' cannot be told: write a time of day, like 09:00"),
        ({"by": "origin", "where": {"time": ["09:15"]}}, "time has no '09:15'"),
        ({"by": "origin", "where": "origin+destination=A"}, "give one each of origin, destination"),
        ({"by": "origin", "where": ["origin=A", "origin=B"]}, "no trip type meets all conditions"),
        ({"by": "origin", "share_of": "time"}, "'time', which is not in by"),
        ({"by": "origin", "confidence": 90}, "between 0 and 1"),
    ],
)
def test_wrong_questions_are_refused(asked: dict[str, Any], says: str) -> None:
    """Each error names the value and the cure."""
    with pytest.raises(InputError) as wrong:
        RELEASE.ask(**asked)
    assert says in str(wrong.value)


def test_more_than_a_million_groups_are_refused_unless_filtered() -> None:
    """A universe of any size can be asked, group by group."""
    stops = [f"s{i}" for i in range(1100)]
    universe = cbdp.Universe(origin=stops, destination=stops, time=["am", "pm"])
    dag = cbdp.FeatureDag(universe, [cbdp.Feature("time", by="time")])
    nothing = np.array([3, 70_000, 2_000_000])
    release = RELEASE.__class__(dag, RELEASE.recipe, RELEASE.claim, nothing, np.array([1, 2, 3]))
    with pytest.raises(InputError, match=r"1,210,000 groups.*filter with where"):
        release.ask(["origin", "destination"])
    grouping = Grouping(universe, ("origin", "destination"), conditions(universe, "origin=s1"))
    grouping.check_listed()
    assert grouping.size == 1100
    assert grouping.types.tolist() == [2] * 1100


def test_tables_published_one_by_one_answer_for_themselves() -> None:
    """They do not add up, so no other question has an answer."""
    release = release_of("stability-histogram")
    name = next(iter(release.tables))
    by = list(release.features.features[name].by)
    with pytest.raises(InputError, match="do not add up"):
        release.ask((), share_of=())
    with pytest.raises(InputError, match="do not add up"):
        release.ask(by, share_of=())


def test_groups_are_in_the_order_of_their_labels() -> None:
    """With a filter too, so that tables of two questions can be laid side by side."""
    answer = RELEASE.ask(["time", "origin"], "origin=C,A")
    expected = list(itertools.product(TIMES.values, ["A", "C"]))
    assert list(zip(answer["time"], answer["origin"], strict=True)) == expected
