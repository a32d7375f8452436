"""Two releases compared: changes hold the truth as often as they say, and no change is seldom called one."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from functools import cache
from typing import Any

import numpy as np
import pytest
from released import city_features, counts_of, release_of

import cbdp
from cbdp.commands.releases import change_csv, change_json, change_text
from cbdp.errors import InputError
from cbdp.estimation.posterior import Posterior
from cbdp.release.about import About, Dates
from cbdp.release.comparison import CHANGED, NOISE, UNDETERMINED, ReleaseComparison, compare
from cbdp.report.comparison import build

TINY = city_features()
STOPS = cbdp.Dimension(
    [f"S{n}" for n in range(14)], zone=[("north", "east", "south", "west")[n % 4] for n in range(14)]
)
SMALL_UNIVERSE = cbdp.Universe(
    origin=STOPS, destination=STOPS, time=cbdp.periods("06:00", "12:00", "1h")
).without_equal("origin", "destination")
SMALL = cbdp.FeatureDag(
    SMALL_UNIVERSE,
    [cbdp.Feature("time", by="time"), cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"])],
)


def _trips(dag: cbdp.FeatureDag, seed: int = 1) -> np.ndarray:
    rate = np.random.default_rng(seed).lognormal(1.0, 1.2, dag.universe.size)
    return np.random.default_rng(seed + 1).poisson(rate)


@cache
def _pair(seed: int, epsilon: str = "1") -> tuple[cbdp.Release, cbdp.Release]:
    """Two releases of the small city, the second with twice the trips from one zone."""
    first = _trips(SMALL)
    second = np.where(
        SMALL.universe.unrank_codes(np.arange(SMALL.universe.size))[0] % 4 == 1, 2 * first, first
    )
    return (
        cbdp.ConstraintBased(SMALL, 1).simulate(first, 2 * seed),
        cbdp.ConstraintBased(SMALL, epsilon).simulate(second, 2 * seed + 1),
    )


@cache
def _true() -> tuple[cbdp.Release, ...]:
    """What would be published without noise."""
    first = _trips(SMALL)
    second = np.where(
        SMALL.universe.unrank_codes(np.arange(SMALL.universe.size))[0] % 4 == 1, 2 * first, first
    )
    release = _pair(0)[0]
    return tuple(replace(release, index=np.arange(len(t)), value=t, estimate=None) for t in (first, second))


def _true_change(by: Any, where: Any = None) -> np.ndarray:
    first, second = (release.ask(by, where)["count"] for release in _true())
    return np.asarray(second - first)


QUESTIONS: dict[str, tuple[Any, Any]] = {
    "all": ((), None),
    "zones": (["origin.zone", "destination.zone"], None),
    "zones by time": (["origin.zone", "destination.zone", "time"], None),
    "stops": ("origin", "time<09:00"),
    "types": (["origin", "destination", "time"], "time<07:00"),
}


def test_changes_hold_the_truth_as_often_as_they_say() -> None:
    """Over 6 pairs with different ε: totals, zones, stops and single types, at 90 %; published counts only widen them."""
    held: dict[str, list[bool]] = {name: [] for name in QUESTIONS}
    ratios: list[bool] = []
    for seed in range(6):
        for name, (by, where) in QUESTIONS.items():
            made, truth = compare(*_pair(seed, "1/2"), by, where), _true_change(by, where)
            held[name] += ((made.columns["low"] <= truth) & (truth <= made.columns["high"])).tolist()
            if name == "zones":
                ratios += _ratios_held(made, by)
    found = {name: float(np.mean(rows)) for name, rows in held.items()}
    assert found["all"] >= 4 / 6
    assert all(0.86 <= found[name] <= 0.98 for name in held if name != "all"), found
    assert 0.85 <= np.mean(ratios) <= 0.99


def _ratios_held(made: ReleaseComparison, by: Any) -> list[bool]:
    true = np.where(np.array(made.columns["origin.zone"]) == "east", 2.0, 1.0)
    low, high = np.asarray(made.columns["ratio_low"]), np.asarray(made.columns["ratio_high"])
    return ((low <= true) & (true <= high)).tolist()


def test_real_changes_stand_out() -> None:
    """Zones that doubled are found, and those that did not are not."""
    made = compare(*_pair(3), ["origin.zone", "time"], confidence=0.99)
    picked = {made.columns["origin.zone"][row] for row in made.standing_out()}
    assert picked == {"east"}
    assert made.many(CHANGED) == 6
    changes = [abs(made.columns["change"][row]) for row in made.standing_out()]
    assert changes == sorted(changes, reverse=True)
    assert "After the correction for many rows (Benjamini–Hochberg), 6 stand out" in made.headline[1]


def test_intervals_are_those_of_both_noises_together() -> None:
    """Variances add: clearly shorter than the sum of both intervals, and longer than either."""
    first, second = _pair(5)
    by = ["origin.zone", "destination.zone", "time"]
    made = compare(first, second, by)
    width = np.mean(made.columns["high"] - made.columns["low"])
    own = [np.mean(a["high"] - a["low"]) for a in (r.ask(by) for r in (first, second))]
    assert 1.2 * max(own) < width < 0.85 * sum(own)


def test_the_order_of_two_releases_only_turns_the_sign() -> None:
    """Changes, ends and chances are mirrored."""
    first, second = _pair(7)
    one, two = (compare(a, b, "time") for a, b in ((first, second), (second, first)))
    assert one.columns["change"].tolist() == (-two.columns["change"]).tolist()
    assert one.columns["low"].tolist() == (-two.columns["high"]).tolist()
    assert one.columns["chance"] == pytest.approx(two.columns["chance"])
    assert one.columns["verdict"] == two.columns["verdict"]
    assert one.columns["ratio_low"] == pytest.approx(1 / two.columns["ratio_high"], rel=0.1)


def test_weeks_are_sums_of_days() -> None:
    """Counts of a side add up, and errors grow like the root of the number of days."""
    mechanism = cbdp.ConstraintBased(TINY, 1)
    week, later = ([mechanism.simulate(counts_of(TINY), n + d) for d in range(4)] for n in (100, 200))
    made, day = compare(week, later, "origin.zone"), compare(week[0], later[0], "origin.zone")
    assert made.columns["first"].tolist() == sum(r.ask("origin.zone")["count"] for r in week).tolist()
    width = np.mean(made.columns["high"] - made.columns["low"]) / np.mean(
        day.columns["high"] - day.columns["low"]
    )
    assert 1.7 < width < 2.3
    assert set(made.columns["verdict"]) <= {NOISE, "could be chance among so many rows"}


def test_public_counts_change_without_doubt() -> None:
    """What is known in both releases has an interval of no width."""
    times = [counts_of(TINY).sum() // 2, counts_of(TINY).sum() - counts_of(TINY).sum() // 2]
    pair = [
        cbdp.ConstraintBased(TINY, 1, public={"time": t}).simulate(counts_of(TINY), seed)
        for seed, t in ((1, times), (2, [times[0] + 3, times[1]]))
    ]
    made = compare(*pair, "time")
    assert (
        made.columns["low"].tolist()
        == made.columns["high"].tolist()
        == made.columns["change"].tolist()
        == [3, 0]
    )
    assert made.columns["verdict"] == [CHANGED, NOISE]


def test_where_no_table_tells_there_is_no_verdict() -> None:
    """Universes too large to list: groups that no table adds up to have no interval and no verdict, and the headline says why."""
    pair = [
        cbdp.ConstraintBased(
            TINY, 1, sparse=True, estimator=Posterior(revealed=TINY.universe.size // 2)
        ).simulate(counts_of(TINY), seed)
        for seed in (1, 2)
    ]
    told, untold = compare(*pair, "time"), compare(*pair, "origin")
    assert UNDETERMINED not in told.columns["verdict"]
    assert set(untold.columns["verdict"]) == {UNDETERMINED}
    assert np.isnan(untold.columns["low"]).all()
    assert np.isnan(untold.columns["high"]).all()
    assert untold.columns["change"].sum() == told.columns["change"].sum()
    assert "no interval and no verdict: no measured table adds up to them" in untold.headline[-1]
    page = build(untold, None, compare(*pair))
    assert "no interval" in page
    assert "nan" not in page.lower().replace("finance", "")
    rows = json.loads(change_json(untold))["rows"]
    assert {(row["low"], row["high"]) for row in rows} == {(None, None)}
    assert "–" in change_text(untold)
    assert change_csv(untold).splitlines()[1].count(",,") >= 1


def test_differences_in_promise_and_period_are_said() -> None:
    """Another ε or unit is allowed and named; so is another number of days."""
    first, second = _pair(9, "1/2")
    about = [About(period=Dates(date(2026, 3, 1), date(2026, 3, n))) for n in (31, 7)]
    made = compare(*(replace(r, about=a) for r, a in zip((first, second), about, strict=True)))
    assert made.names == ("March 2026", "1–7 March 2026")
    assert any("ε = 1 in the first, ε = 0.5 in the second" in note for note in made.notes)
    assert any("31 days and the second 7" in note for note in made.notes)
    assert any("simulation" in note for note in made.notes)


def test_wrong_comparisons_are_refused() -> None:
    """Each error names what is wrong and the cure."""
    first, second = _pair(11)
    for wrong, says in (
        ((first, first), "the same release is on both sides"),
        ((first, []), "a side of the comparison has no release"),
        (([first, release_of("constraint-based")], second), "another universe"),
        ((first, second, "zone"), "unknown attribute 'zone'"),
        ((first, second, (), "time=25:00"), "time has no"),
        ((first, second, (), None, 90), "between 0 and 1"),
    ):
        with pytest.raises(InputError, match=says):
            compare(*wrong)


def test_tables_published_one_by_one_are_compared_for_themselves() -> None:
    """By their own groups only, and without a verdict: suppression is no noise of a known law."""
    first = release_of("stability-histogram")
    second = cbdp.StabilityHistogram(city_features(), 5, delta="1/1000").simulate(counts_of(TINY), 8)
    with pytest.raises(InputError, match="published one by one"):
        compare(first, second, "origin")
