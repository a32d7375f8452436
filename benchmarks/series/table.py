"""The errors of a series as lines, with what it costs one person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.series.data import DailyCase
from benchmarks.series.errors import SeriesErrors
from cbdp.app.audit.lower_bound import AsSeries
from cbdp.counting.plan import ServiceDays
from cbdp.mechanisms import Laplace
from cbdp.text import aligned


def lines_of(case: DailyCase, epsilon: float, found: Mapping[str, SeriesErrors]) -> Iterator[str]:
    trips = sum(int(counts.value.sum()) for counts in case.daily)
    yield ""
    yield (
        f"{case.name}: {len(case.daily)} days, {trips:,} trips, {case.features.universe.size:,} types; "
        f"ε = {epsilon:g} for {case.unit}"
    )
    yield "sum of all deviations as a share of the trips: of the mean day, of the last five days, of the month"
    names = list(case.features.features)
    rows = [("way", *(f"{name}{part}" for name in names for part in ("", " last", " month")))]
    for way, errors in found.items():
        figures = [
            value for name in names for value in (errors.day(name), errors.last(name), errors.month[name])
        ]
        rows.append((way, *("–" if value is None else f"{value:.4f}" for value in figures)))
    yield from aligned(rows, right=range(1, len(rows[0])))
    yield "what the daily releases cost one person:"
    series = AsSeries(
        Laplace(case.features, epsilon, case.unit), [ServiceDays(day, day) for day in case.days]
    )
    for worst in series.statement().windows:
        length = "all days together" if worst.days is None else f"any {worst.days} days"
        yield f"  {length}: ε {worst.amount}; ({worst.shown}, {float(worst.delta):.2g}) by accounting"
