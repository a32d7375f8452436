"""Flows from place to place: between zones where there are any, or between stops; the largest first, with intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cbdp.errors import InputError
from cbdp.release.published import LISTED, Published
from cbdp.release.roles import roles

LEVELS = ("zones", "stops")


@dataclass(frozen=True)
class DrawnFlow:
    """Trips from one place to another; the places by their codes and by their names."""

    start: int
    end: int
    names: tuple[str, str]
    count: int
    low: int | None
    high: int | None


@dataclass(frozen=True)
class DrawnFlows:
    level: str
    by: tuple[str, str]
    flows: tuple[DrawnFlow, ...]
    exact: bool  # the intervals are of these very counts


def largest(published: Published, most: int, level: str | None) -> DrawnFlows:
    """The largest flows that have any trip; places with a flow to themselves are among them."""
    if most < 1:
        raise InputError(f"most is {most}: draw at least one flow")
    level, by = _level(published, level)
    grouped = published.grouped(*by)
    counts = grouped.counts.reshape(-1)
    order = np.argsort(-counts, kind="stable")[:most]
    labels = [_names(published, name, level) for name in by]
    flows = []
    for place in order[counts[order] > 0].tolist():
        start, end = divmod(place, grouped.counts.shape[1])
        ends = (
            (int(grouped.low[start, end]), int(grouped.high[start, end]))
            if grouped.low is not None and grouped.high is not None
            else (None, None)
        )
        flows.append(DrawnFlow(start, end, (labels[0][start], labels[1][end]), int(counts[place]), *ends))
    return DrawnFlows(level, by, tuple(flows), grouped.exact)


def _level(published: Published, level: str | None) -> tuple[str, tuple[str, str]]:
    parts = roles(published.dag)
    known = {"zones": parts.zones, "stops": parts.ends}
    if parts.ends is None:
        raise InputError(
            "the release has no trips from place to place: it has no origin and destination to draw flows by"
        )
    if level is None:
        level = "stops" if parts.zones is None else "zones"
    if level not in LEVELS or known[level] is None:
        some = " or ".join(repr(name) for name, by in known.items() if by is not None)
        raise InputError(f"level is {level!r}: this release has {some}")
    by = known[level]
    assert by is not None
    if published.many(by[0]) * published.many(by[1]) > LISTED:
        raise InputError(
            f"{published.many(by[0]):,} × {published.many(by[1]):,} {level} are too many to draw: use release.ask"
        )
    return level, by


def _names(published: Published, attribute: str, level: str) -> list[str]:
    """Labels; of stops their names, where no two stops have the same."""
    labels, places = published.labels(attribute), published.places
    if level == "zones" or places is None:
        return labels
    known = dict(zip(map(str, places.ids), places.names, strict=True))
    named = [known.get(label, label) for label in labels]
    return named if len(set(named)) == len(labels) else labels
