"""Flows over a list of zones that another program prescribes: in its order, also those without trips."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cbdp.errors import InputError
from cbdp.release.export.flows import Flows

HEADS = ("zone", "zone_id", "taz", "stop", "stop_id", "id", "no", "number")


def read_zones(path: str | Path) -> tuple[str, ...]:
    """The ids in a file: one on each line, or the column zone (zone_id, taz, stop, stop_id, id, no, number) of a CSV file."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            rows = [
                [cell.strip() for cell in row]
                for row in csv.reader(file)
                if any(cell.strip() for cell in row)
            ]
    except (OSError, UnicodeDecodeError, csv.Error):
        raise InputError(
            f"the list of zones {str(path)!r} cannot be read: give a text or CSV file in UTF-8"
        ) from None
    if not rows:
        raise InputError(f"the list of zones {str(path)!r} is empty: write one id on each line")
    head = [cell.lower() for cell in rows[0]]
    column = next((head.index(name) for name in HEADS if name in head), None)
    if column is None and len(head) > 1:
        raise InputError(
            f"the list of zones {str(path)!r} has the columns {', '.join(rows[0])}: call the one with the ids zone"
        )
    ids = [
        row[column or 0] if len(row) > (column or 0) else "" for row in (rows if column is None else rows[1:])
    ]
    return _checked(ids, path)


def _checked(ids: Sequence[str], path: str | Path) -> tuple[str, ...]:
    twice = [zone for zone, n in Counter(ids).items() if n > 1]
    if "" in ids or not ids:
        raise InputError(
            f"a line of the list of zones {str(path)!r} has no id: write one, or leave the line out"
        )
    if twice:
        raise InputError(f"the zone {twice[0]!r} is in the list {str(path)!r} twice: leave one out")
    return tuple(ids)


def padded(made: Flows, zones: str | Path | Sequence[str] | None) -> Flows:
    """The flows between these zones, in their order; None: as they are. Every place with trips must be listed."""
    if zones is None:
        return made
    ids = read_zones(zones) if isinstance(zones, str | Path) else _checked([str(z) for z in zones], "given")
    at = {zone: p for p, zone in enumerate(ids)}
    place = np.array([at.get(text, -1) for text in made.texts], dtype=np.int64)
    start, finish = place[made.origin], place[made.destination]
    lost = np.flatnonzero(((start < 0) | (finish < 0)) & (made.count > 0))
    if len(lost):
        end = made.origin if start[lost[0]] < 0 else made.destination
        raise InputError(
            f"the place {made.texts[int(end[lost[0]])]!r} has trips and is not among the {len(ids):,} zones listed: add it to the "
            "list, or export with the level (say --level zone) that the list is of"
        )
    kept = np.flatnonzero((start >= 0) & (finish >= 0))
    order = kept[np.lexsort((finish[kept], start[kept], made.period[kept]))]
    ends: dict[str, Any] = {"origin": start[order], "destination": finish[order]}
    for name in ("period", "count", "first", "low", "high"):
        values = getattr(made, name)
        ends[name] = None if values is None else values[order]
    return replace(made, ids=ids, **ends)
