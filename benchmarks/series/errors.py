"""How far what a series publishes is from the truth, per day and for the month."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from benchmarks.series.data import DailyCase
from benchmarks.series.ways import PublishedSeries, Tables
from cbdp.counting import Counts
from cbdp.features import FeatureDag


@dataclass(frozen=True)
class SeriesErrors:
    """By table: the sum of all deviations of its counts as a share of the trips; of every day, and of the month."""

    daily: Mapping[str, tuple[float, ...]] = field(repr=False)  # empty where no days are published
    month: Mapping[str, float]

    def day(self, feature: str) -> float | None:
        """Of the mean day."""
        found = self.daily.get(feature)
        return float(np.mean(found)) if found else None

    def last(self, feature: str, days: int = 5) -> float | None:
        """Of the mean of the last days, where what was learned from earlier ones shows."""
        found = self.daily.get(feature)
        return float(np.mean(found[-days:])) if found else None


def errors_of(case: DailyCase, published: PublishedSeries) -> SeriesErrors:
    names = list(case.features.features)
    daily = {
        name: tuple(
            _error(case.features, counts, tables, name)
            for counts, tables in zip(case.daily, published.daily, strict=True)
        )
        for name in (names if published.daily else ())
    }
    month = case.month()
    return SeriesErrors(daily, {name: _error(case.features, month, published.month, name) for name in names})


def _error(features: FeatureDag, truth: Counts, tables: Tables, name: str) -> float:
    true = truth.of(features, name)
    return float(np.abs(tables[name] - true).sum() / max(1, true.sum()))
