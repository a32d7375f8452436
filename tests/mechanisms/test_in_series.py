"""Releases that follow running totals: what is published adds up to them, days are as good as before, and intervals are honest."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import cbdp
from cbdp.counting import Counts
from cbdp.errors import InputError
from cbdp.estimation.continual import gls_total
from cbdp.mechanisms.continual import History, release_in_series
from cbdp.privacy.continual import STRATEGIES, Span, cost_of_redraw, square_root, table_noise_costs
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.release import Release

UNIVERSE = cbdp.Universe(origin=list("ABCD"), destination=list("ABCD"), time=["am", "pm"])
DAG = cbdp.FeatureDag(UNIVERSE, [cbdp.Feature("zone", by=["origin", "time"])])
TABLES = ("total", "zone")


def mechanism() -> cbdp.ConstraintBased:
    return cbdp.ConstraintBased(DAG, rho=Fraction(1, 8), law="gaussian", budget="uniform")


def span_of(made: cbdp.ConstraintBased, periods: int, strategy: str = "square root") -> Span:
    own = {a.feature: a.share for a in made.answers()}
    paid = table_noise_costs(made, {name: own[name] for name in TABLES}, STRATEGIES[strategy](periods))
    return Span(dt.date(2026, 1, 1), periods, strategy, "r", paid)


def days_of(periods: int, seed: int, mean: float = 8.0) -> list[Counts]:
    rng = np.random.default_rng(seed)
    rate = rng.gamma(0.7, 1, UNIVERSE.size)
    found = []
    for _ in range(periods):
        trips = rng.poisson(mean * rate / rate.mean())
        index = np.flatnonzero(trips).astype(np.int64)
        found.append(
            Counts(
                UNIVERSE,
                index,
                trips[index].astype(np.int64),
                cbdp.ConstraintBased(DAG, 1).unit,
                secure=False,
            )
        )
    return found


def series(days: list[Counts], seed: int, strategy: str = "square root") -> list[Release]:
    made, releases = mechanism(), []
    span = span_of(made, len(days), strategy)
    history = {name: History() for name in TABLES}
    for n, counts in enumerate(days):
        release = release_in_series(made, counts, span, history, InsecureSeededEntropy(1000 * seed + n))
        own = {m.feature: m for m in release.measurements}
        assert release.running is not None
        for name in TABLES:
            sums = release.running.tables[name].answers
            history[name].add(counts.of(DAG, name), sums, own[name], release.counts(name))
        releases.append(release)
    return releases


def sigma(name: str) -> float:
    return float({a.feature: a.law for a in mechanism().answers()}[name].variance() ** 0.5)


def test_published_days_follow_the_running_total() -> None:
    """Thirty days, twice: every total of days is as near to the truth as is stated, far nearer than days added up, and no day is worse for it."""
    zone, by_day, total = [], [], []
    for seed in (1, 2):
        days = days_of(30, seed)
        true, made = np.array([d.of(DAG, "zone") for d in days]), series(days, seed)
        zone.append((np.array([r.counts("zone") for r in made]) - true) / sigma("zone"))
        total.append(np.cumsum([r.total - int(d.value.sum()) for r, d in zip(made, days, strict=True)]))
        alone = [mechanism().simulate(d, seed=7000 * seed + n).counts("zone") for n, d in enumerate(days)]
        by_day.append((np.array(alone) - true) / sigma("zone"))
    longest = square_root(30)
    stated = gls_total(longest, float((longest.rows**2).sum(axis=0).max()), [1.0] * 30).variance ** 0.5
    last, summed = (np.sqrt(np.mean(np.sum(e, axis=1) ** 2)) for e in (zone, by_day))
    assert stated < 2
    assert last < 1.3 * stated
    assert summed > 2 * last
    assert np.sqrt(np.mean(np.square(zone))) < 1.1 * np.sqrt(np.mean(np.square(by_day)))
    assert np.abs(total).max() < 4 * stated * sigma("total")


def test_days_are_whole_trips_and_add_up() -> None:
    """The published total before a day is what the days before it publish; no count is negative; totals never fall."""
    releases = series(days_of(6, 3, mean=0.4), 3, "binary tree")
    before = {name: np.zeros(DAG.size(name), dtype=np.int64) for name in TABLES}
    for release in releases:
        assert release.value.min(initial=0) >= 0
        assert release.running is not None
        for name in TABLES:
            assert (release.running.tables[name].before == before[name]).all()
            before[name] = before[name] + release.counts(name)
        assert release.counts("zone").sum() == release.counts("total")[0]


def test_whoever_has_the_answers_makes_the_same_release() -> None:
    """`finish` is pure: own answers and what is held of the running totals are all it needs."""
    made = series(days_of(3, 4), 4)[-1]
    assert made.running is not None
    again = replace(mechanism(), running=made.running.steered).finish(made.measurements)
    assert (again.index.tolist(), again.value.tolist()) == (made.index.tolist(), made.value.tolist())


def test_intervals_hold_where_the_series_is_noisier_than_a_day() -> None:
    """With the binary tree, days that end a long sum correct much at once; the 80 % intervals of their tables hold all the same."""
    inside = []
    for seed in (5, 6, 7, 8):
        days = days_of(8, seed)
        last = series(days, seed, "binary tree")[-1]
        assert last.running is not None
        assert last.running.tables["zone"].steered.variance > 1.5 * sigma("zone") ** 2
        found = last.interval("zone", 0.8)
        true = days[-1].of(DAG, "zone")
        inside.append((found.low <= true) & (true <= found.high))
    assert np.mean(inside) > 0.7


def test_one_more_draw_costs_no_less_than_any_day_of_it() -> None:
    """For a unit of any day of the span, its share of the row is at most the price of the row."""
    made = mechanism()
    for strategy in STRATEGIES:
        span = span_of(made, 6, strategy)
        for number in range(1, 7):
            price = cost_of_redraw(span, number)
            for day in range(6):
                entries = span.sums.rows_ending_in(number - 1)[:, day].tolist()
                cost = sum(
                    Fraction(made.change(name).l2_squared * c * c) / (2 * Fraction(paid.law.scale) ** 2)
                    for name, paid in span.tables.items()
                    for c in entries
                )
                assert cost <= price


def test_a_release_outside_a_series_cannot_use_them() -> None:
    """The sums of a history are of that history: noise drawn for other trips does not go with them."""
    made = series(days_of(2, 9), 9)[-1]
    assert made.running is not None
    steering = replace(mechanism(), running=made.running.steered)
    with pytest.raises(InputError, match="cbdp series run"):
        steering.release(replace(days_of(1, 9)[0], secure=True))
