"""The page of a series: every published period at a glance, and what all of them cost one person."""

from __future__ import annotations

from cbdp.report.series.build import build
from cbdp.report.series.facts import PeriodFacts, period_of

__all__ = ["PeriodFacts", "build", "period_of"]
