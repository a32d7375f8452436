"""Attacks on whole series: what seven days of releases prove of one person stays below the statement, and finds what is forgotten."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from benchmarks.harness.attacked_series import AsSeries, daily
from cbdp.app.audit.lower_bound import TrialParts, epsilon_lower_bound, rho_lower_bound
from cbdp.audit.lower_bound import EpsilonBound
from cbdp.counting.counts import Counts, count
from cbdp.counting.plan import ServiceDays
from cbdp.mechanisms import Laplace
from cbdp.privacy.unit import Person
from cbdp.release.release import Release

FIRST = dt.date(2026, 3, 2)
WEEK = daily(FIRST, 7)
NAMES = [str(day.first) for day in WEEK]
PARTS = TrialParts(50_000, {"stop": ["A", "B"]}, person="card")
UNIT = Person("card", 1, per="day")


def trips(*rows: tuple[str, str, str]) -> dict[str, list[str]]:
    return {name: [row[n] for row in rows] for n, name in enumerate(("stop", "day", "card"))}


OTHERS = [("B", NAMES[2], "y")]
WITHOUT = trips(*OTHERS)
ALL_WEEK = trips(*OTHERS, *(("A", day, "x") for day in NAMES))
ONE_DAY = trips(*OTHERS, ("A", NAMES[3], "x"), ("A", NAMES[3], "x"))  # of two trips one is counted


def series(kind: type[AsSeries] = AsSeries) -> AsSeries:
    return kind(Laplace(PARTS.features, 1, UNIT, law="geometric"), WEEK)


def noisy(published: Sequence[Release]) -> Any:
    """The noisy count of stop A on each of the seven days, for every part."""
    days = [
        np.asarray(release.measurements[-1].values).reshape(PARTS.number, 2)[:, 0] for release in published
    ]
    return np.stack(days, axis=1)


def attack(given: AsSeries, one: Any, trials: int, claim: float) -> EpsilonBound:
    """An attacker who says that the person was there if enough of the noisy counts are at least 1."""
    events = {
        f"{least} days": lambda columns, least=least: sum(column >= 1 for column in columns.values()) >= least
        for least in (4, 6, 7)
    }
    events |= {"no day": lambda columns: sum(column >= 1 for column in columns.values()) == 0}
    events |= {"the fourth day": lambda columns: columns["x[3]"] >= 1}
    return epsilon_lower_bound(
        given, one, WITHOUT, trials=trials, parts=PARTS, claim=claim, view=noisy, events=events
    )


def test_the_statement_for_the_week_is_seven_days() -> None:
    """As the ledger would state it: 1 for a day, 7 for the week."""
    found = series().statement()
    assert [float(found.window(days).amount.epsilon) for days in (1, 7, 30)] == [1, 7, 7]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_week_leaks_less_than_stated_and_more_than_six_days() -> None:
    """The attack reaches beyond 6: whoever forgets a day in the account is refuted, and the true account is not."""
    claim = float(series().statement().window(7).amount.epsilon)
    found = attack(series(), ALL_WEEK, 350_000, claim)
    assert 6 < found.epsilon <= claim == 7
    assert not found.exceeds
    forgetful = replace(found, claim=claim - 1)  # a mutant whose ledger misses one of the seven charges
    assert forgetful.exceeds


@dataclass(frozen=True)
class EveryRow(AsSeries):
    """A mutant that forgets to restrict a release to its day: each of them counts what a person did on any day."""

    def counts(self, trips: Any, period: ServiceDays, seed: int) -> Counts:
        return count(trips, self.mechanism.features.universe, columns=self.columns, unit=self.mechanism.unit)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_one_day_of_a_person_is_in_one_release() -> None:
    """What a person does on one day costs one release; a mutant whose releases look at all rows is found."""
    claim = float(series().statement().window(1).amount.epsilon)
    found = attack(series(), ONE_DAY, 50_000, claim)
    assert 0.8 < found.epsilon <= claim == 1
    assert attack(series(EveryRow), ONE_DAY, 50_000, claim).exceeds


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_week_of_gaussian_noise_leaks_less_rho_than_stated() -> None:
    """One event shows at most 2/π of ρ: more than three days of seven, and never more than the seven that are stated."""
    week = AsSeries(Laplace(PARTS.features, None, UNIT, law="gaussian", rho="0.1"), WEEK)
    claim = float(week.statement().window(7).amount.rho)
    events = {
        f"sum at least {least}": lambda columns, least=least: sum(columns.values()) >= least
        for least in (2, 4, 6, 8)
    }
    found = rho_lower_bound(
        week, ALL_WEEK, WITHOUT, trials=100_000, parts=PARTS, claim=claim, view=noisy, events=events
    )
    assert 0.3 < found.rho <= claim == pytest.approx(0.7)
    assert not found.exceeds
    assert replace(found, claim=0.3).exceeds  # a mutant that forgets four of the seven days
