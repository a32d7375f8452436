"""Attacks on series with running totals: what seven days of releases and sums prove of one person stays below the statement, and finds what is forgotten."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from benchmarks.harness.attacked_series import AsSeries, daily, running_span
from cbdp.app.audit.lower_bound import TrialParts, epsilon_lower_bound, rho_lower_bound
from cbdp.audit.lower_bound import EpsilonBound, RhoBound, numbers
from cbdp.mechanisms import ConstraintBased
from cbdp.privacy.continual import Span, TableNoiseCost
from cbdp.privacy.unit import Person
from cbdp.release.release import Release

FIRST = dt.date(2026, 3, 2)
WEEK = daily(FIRST, 7)
NAMES = [str(day.first) for day in WEEK]
PARTS = TrialParts(20_000, {"stop": ["A", "B"]}, person="card")
UNIT = Person("card", 1, per="day")
TRIALS = PARTS.number
RUNNING = Fraction(1, 20)  # ρ of the sums, for one day of a person


def trips(*rows: tuple[str, str, str]) -> dict[str, list[str]]:
    return {name: [row[n] for row in rows] for n, name in enumerate(("stop", "day", "card"))}


OTHERS = [("B", NAMES[2], "y")]
WITHOUT = trips(*OTHERS)
ALL_WEEK = trips(*OTHERS, *(("A", day, "x") for day in NAMES))
FIRST_DAY = trips(*OTHERS, ("A", NAMES[0], "x"), ("A", NAMES[0], "x"))  # of two trips one is counted


def gaussian(kind: type[AsSeries] = AsSeries) -> AsSeries:
    mechanism = ConstraintBased(
        PARTS.features, None, UNIT, law="gaussian", rho="0.005", estimator="projection"
    )
    return kind(mechanism, WEEK, span=running_span(mechanism, FIRST, 7, {"part": RUNNING}, "square root"))


def geometric() -> AsSeries:
    mechanism = ConstraintBased(PARTS.features, "0.1", UNIT, estimator="projection")
    return AsSeries(
        mechanism, WEEK, span=running_span(mechanism, FIRST, 7, {"part": Fraction(1)}, "binary tree")
    )


Answers = list[tuple[np.ndarray, float]]  # of all parts, and the scale of their noise


def published_of(series: AsSeries, published: Sequence[Release]) -> Answers:
    """Everything noisy that seven releases hold of a part: its own answers of each day, and the sums."""
    assert series.span is not None
    found: Answers = []
    for release in published[: len(WEEK)]:
        own = {m.feature: m for m in release.measurements}
        for name, shape in (("part", (PARTS.number, 1)), ("singleton", (PARTS.number, 2))):
            found.append((np.asarray(own[name].values).reshape(shape)[:, 0], _scale(series, name)))
    for release in published:  # sums that were drawn twice are here twice
        assert release.running is not None
        table = release.running.tables["part"]
        found += [(row, float(table.law.scale)) for row in table.answers]
    return found


def _scale(series: AsSeries, name: str) -> float:
    return float({a.feature: a.law.scale for a in series.mechanism.answers()}[name])


def meant(series: AsSeries, days: Sequence[int], draws: int = 1) -> list[int]:
    """What the person adds to each of these answers if they travel on these days."""
    assert series.span is not None
    there = np.array([n in days for n in range(7)], dtype=np.int64)
    return [int(d) for d in np.repeat(there, 2)] + (series.span.sums.rows @ there).tolist() * draws


def others(series: AsSeries, draws: int = 1) -> list[int]:
    """What everybody else adds: one trip in each part, at the other stop."""
    assert series.span is not None
    there = np.array([n == 2 for n in range(7)], dtype=np.int64)
    return [int(d) for one in there for d in (one, 0)] + (series.span.sums.rows @ there).tolist() * draws


def likelihood(
    series: AsSeries, days: Sequence[int], power: int, draws: int = 1
) -> Callable[[Sequence[Release]], Any]:
    """The best that an attacker can look at: how much likelier the answers are with the person than without."""

    def view(published: Sequence[Release]) -> Any:
        told = 0.0
        every = zip(
            published_of(series, published), meant(series, days, draws), others(series, draws), strict=True
        )
        for (values, scale), change, known in every:
            noise = np.abs(values - known), np.abs(values - known - change)
            told = told + (noise[0] ** power - noise[1] ** power) / (2 * scale**2 if power == 2 else scale)
        return np.asarray(told)

    return view


def below(*limits: float) -> dict[str, Any]:
    """The events that the likelihood is below a limit: then the attacker says that the person was not there."""
    return {f"below {limit}": lambda columns, limit=limit: columns["x"] <= limit for limit in limits}


def attacked(series: AsSeries, claim: float, draws: int = 1) -> RhoBound:
    seen = likelihood(series, range(7), 2, draws)
    return rho_lower_bound(
        series, ALL_WEEK, WITHOUT, trials=TRIALS, parts=PARTS, claim=claim, view=seen, events=below(-1.5, -1)
    )


def claimed(series: AsSeries, days: int) -> float:
    return float(series.statement().window(days).amount.value)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_week_of_days_and_sums_leaks_less_rho_than_stated() -> None:
    """Most of what one event can show. A mutant whose ledger prices the sums like seven releases apart is refuted, and one that misses a day."""
    claim = claimed(gaussian(), 7)
    found = attacked(gaussian(), claim)
    assert not found.exceeds
    assert 0.45 * claim < found.rho <= claim
    one_by_one = 7 * (
        0.005 + float(RUNNING)
    )  # each day's change is taken to be in the sums that end on it, and in no later one
    assert replace(found, claim=one_by_one).exceeds


@dataclass(frozen=True)
class DrawnTwice(AsSeries):
    """A mutant: runs that died have published sums, and the next ones draw them anew without paying for it."""

    def simulate(self, trips: Any, seed: int) -> list[Release]:
        first, second = (super(DrawnTwice, self).simulate(trips, seed + n) for n in range(2))
        return [*first, *second]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_sums_that_are_drawn_again_unpaid_are_found() -> None:
    """Two draws under one charge exceed the statement."""
    assert attacked(gaussian(DrawnTwice), claimed(gaussian(), 7), draws=2).exceeds


def _forgetful(span: Span) -> Span:
    """A mutant of the span: a day's change is counted in one sum alone, as if no later sum held it."""
    most = max(int(span.sums.rows[:, d].sum()) for d in range(span.periods))
    tables = {n: TableNoiseCost(type(p.law)(p.law.scale / most), p.amount) for n, p in span.tables.items()}
    return replace(span, tables=tables)


def in_one_day(series: AsSeries, claim: float) -> EpsilonBound:
    seen = likelihood(series, [0], 1)
    return epsilon_lower_bound(
        series, FIRST_DAY, WITHOUT, trials=TRIALS, parts=PARTS, claim=claim, view=seen, events=below(-1, -2.5)
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_one_day_leaks_less_epsilon_than_stated() -> None:
    """Through its own release and all later sums that hold it. A mutant whose noise forgets that later sums hold a day is found."""
    series = geometric()
    claim = claimed(series, 1)
    found = in_one_day(series, claim)
    assert 0.6 < found.epsilon <= claim == pytest.approx(1.1)
    assert not found.exceeds
    assert series.span is not None
    assert in_one_day(replace(series, span=_forgetful(series.span)), claim).exceeds


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_week_leaks_less_epsilon_than_stated() -> None:
    """And more than a mutant says who takes the one charge of a span for the price of everything that a person does in it."""
    series = geometric()
    claim = claimed(series, 7)
    assert claim == pytest.approx(7 * 0.1 + 17 / 3)
    seen = likelihood(series, range(7), 1)
    found = epsilon_lower_bound(
        series, ALL_WEEK, WITHOUT, trials=TRIALS, parts=PARTS, claim=claim, view=seen, events=below(-3)
    )
    assert not found.exceeds
    assert found.epsilon <= claim
    assert replace(found, claim=7 * 0.1 + 1).exceeds


def test_whoever_looks_at_releases_sees_their_sums() -> None:
    """The view of an attacker who is told nothing holds the sums of running totals too."""
    small = TrialParts(4, {"stop": ["A", "B"]}, person="card")
    mechanism = ConstraintBased(small.features, "0.3", UNIT, estimator="projection")
    span = running_span(mechanism, FIRST, 7, {"part": Fraction(1)}, "binary tree")
    made = AsSeries(mechanism, WEEK, span=span).simulate(small.mix(ALL_WEEK, WITHOUT, np.ones(4, bool)), 3)
    seen = numbers(made, small.number)
    assert {"4: sum 1 of part", "4: sum 2 of part", "4: sum 3 of part"} <= seen.keys()
