"""When the trips of a release were made, as far as it says: by its dimensions, or in the publisher's words."""

from __future__ import annotations

import datetime as dt

from cbdp.features import Dimension, Universe
from cbdp.release.about import Dates
from cbdp.release.release import Release

DAY = "day"  # a dimension of this name holds dates or types of days


def days_in(dimension: Dimension) -> list[dt.date] | None:
    """The values as dates, where all of them are."""
    try:
        return [v if type(v) is dt.date else dt.date.fromisoformat(v) for v in dimension.values]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def dates_of(universe: Universe) -> Dates | None:
    """The first and the last date that a trip may have, where a dimension holds dates."""
    for dimension in universe.dimensions.values():
        days = days_in(dimension)
        if days is not None and all(type(v) is dt.date or "-" in str(v) for v in dimension.values):
            return Dates(min(days), max(days))
    return None


def period_of(release: Release) -> str | None:
    """The period that the trips are from, in words: as the publisher says, or by the dates that were counted."""
    if release.about is not None and release.about.period is not None:
        return str(release.about.period)
    dates = dates_of(release.features.universe)
    return None if dates is None else str(dates)


def of_one_day(release: Release) -> bool:
    """Whether nothing says that the trips are from several days. Otherwise nobody may write of "the day"."""
    universe, about = release.features.universe, release.about
    dates = dates_of(universe)
    if dates is not None and dates.first != dates.last:
        return False
    if DAY in universe.dimensions and len(universe.dimensions[DAY]) > 1:
        return False
    period = None if about is None else about.period
    return period is None or (isinstance(period, Dates) and period.first == period.last)
