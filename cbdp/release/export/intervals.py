"""Flows with the intervals of their counts: what `release.ask` answers, in the order of flows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.features.places import Stops
from cbdp.release.ask import why_none
from cbdp.release.export.flows import Flows, coordinates, flows
from cbdp.release.release import Release


def drawn_flows(
    release: Release, places: Stops | None, level: str | None, confidence: float | None, ends: tuple[str, str]
) -> tuple[Flows, Floats, Floats]:
    """What formats that draw lines need: the flows, with intervals if wanted, and the longitude and latitude of each place."""
    made = flows(release, level=level, origin=ends[0], destination=ends[1])
    made = with_intervals(release, made, confidence)
    return made, *coordinates(release, made, places)


def with_intervals(release: Release, made: Flows, confidence: float | None, *, zeros: bool = False) -> Flows:
    """The flows with the ends of their intervals; with `zeros`, also those that have no published trips. None: as they are."""
    if confidence is None:
        return made
    if release.tables:
        raise InputError(
            "the tables of this release were published one by one and do not add up, so flows have no intervals: export without"
        )
    dimensions = release.features.universe.dimensions
    others = [n for n in dimensions if n not in (made.ends.origin, made.ends.destination)]
    ends = made.ends.attributes
    asked = release.ask(by=[*ends, *others], confidence=confidence)
    answer: dict[str, Any] = dict(asked)
    missing = int(np.isnan(answer["low"]).sum())
    if missing:
        why = why_none(release, missing, len(answer["low"]))
        raise InputError(f"{why} Export without intervals, or at a level that was measured.")
    start, finish = (_codes(answer[end], made.ids) for end in ends)
    period = np.zeros(len(start), dtype=np.int64)
    for name in others:
        period = period * len(dimensions[name]) + _codes(answer[name], dimensions[name].values)
    kept = np.flatnonzero((answer["count"] > 0) | zeros)
    order = kept[np.lexsort((finish[kept], start[kept], period[kept]))]
    columns = (period, start, finish, answer["count"], answer["low"], answer["high"])
    number, o, d, count, low, high = (np.asarray(c, dtype=np.int64)[order] for c in columns)
    return replace(
        made,
        period=number,
        origin=o,
        destination=d,
        count=count,
        low=low,
        high=high,
        first=np.full(len(order), -1),
    )


def _codes(labels: Sequence[Hashable], listed: Sequence[Hashable]) -> Ints:
    place = {label: p for p, label in enumerate(listed)}
    return np.array([place[label] for label in labels], dtype=np.int64)
