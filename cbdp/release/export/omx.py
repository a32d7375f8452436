"""Open Matrix: an HDF5 file with a matrix of whole trips (as float64) per period, and the ids of its rows and columns.

The rows can be those of a list of zones that another program prescribes: in its order, also those without trips.
"""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.release.export.base import Format, optional_library, provenance_lines
from cbdp.release.export.flows import Flows, Period, flows_of, with_intervals
from cbdp.release.release import Release

if TYPE_CHECKING:
    import h5py

ZONE_COLUMN_NAMES = ("zone", "zone_id", "taz", "stop", "stop_id", "id", "no", "number")
MAX_PLACES = 2**14  # rows of a matrix: 2 GiB each, and the files are for programs that hold whole matrices
MAX_MATRICES = 10_000  # periods: programs list the matrices of a file
NUMBERS_PER_BLOCK = 2**24  # numbers of a matrix that are in memory at once


@dataclass(frozen=True)
class Omx(Format):
    name: ClassVar[str] = "omx"
    ending: ClassVar[str] = ".omx"
    about: ClassVar[str] = "Open Matrix: a matrix per period, and the ids of its rows and columns"
    package: ClassVar[str | None] = "h5py"
    install: ClassVar[str] = "pip install 'cbdp[omx]'"

    def write(
        self,
        release: Release,
        path: Path,
        *,
        level: str | None = None,
        zones: str | Path | None = None,
        intervals: float | None = None,
        origin: str | None = None,
        destination: str | None = None,
    ) -> None:
        """Write rows as origins and columns as destinations; the lookup (`stop`, or the level) has the id of each.

        `zones` is a file with the ids that another program has: the matrices get its order, and its zones without trips. With
        `intervals` (a confidence, say 0.9), each period also has the matrices `<period> low` and `<period> high`.
        """
        hdf5 = optional_library("h5py", "omx")
        flows = flows_of(release, level=level, origin=origin, destination=destination)
        flows = with_intervals(release, flows, intervals, zeros=True)
        flows = flows_between_zones(flows, zones)
        _check_size(flows)
        with hdf5.File(path, "w", libver="earliest") as out:
            out.attrs["OMX_VERSION"] = np.bytes_(b"0.2")
            out.attrs["SHAPE"] = np.array([len(flows.ids)] * 2, dtype=np.int32)
            for name, line in provenance_lines(release).items():
                out.attrs[name] = np.bytes_(line.encode())
            if intervals is not None:
                out.attrs["confidence"] = float(intervals)
            out.create_group("lookup").create_dataset(level or "stop", data=_ids(flows))
            matrices = out.create_group("data")
            for name, period, rows, values in _matrices(flows):
                matrix = _empty(matrices, name, len(flows.ids), values)
                matrix.attrs["begin"], matrix.attrs["end"] = period.begin, period.end
                _fill(matrix, flows, rows, values)


def _check_size(flows: Flows) -> None:
    size = len(flows.ids)
    if size > MAX_PLACES or len(flows.periods) > MAX_MATRICES:
        raise InputError(
            f"{len(flows.periods):,} matrices of {size:,} × {size:,} are too many or too large for Open Matrix: add stops up to "
            "zones with level='zone', or choose another format"
        )


def _matrices(flows: Flows) -> Iterator[tuple[str, Period, slice, Ints]]:
    """The name, period, rows and numbers of each matrix: counts first, so that programs which take the first few get those."""
    endings = {name: "" if name == "count" else f" {name}" for name in flows.numbers}
    names = _names(flows, list(endings.values()))
    for number, values in flows.numbers.items():
        for (period, rows), name in zip(flows.by_period(), names[endings[number]], strict=True):
            yield name, period, rows, values


def _empty(group: h5py.Group, name: str, size: int, values: Ints) -> h5py.Dataset:
    # AequilibraE assigns nothing but float64, and all others read it; whole numbers below 2⁵³ stay what they are
    kind = np.float64 if int(values.max(initial=0)) < 2**53 else np.int64
    return group.create_dataset(
        name,
        (size, size),
        kind,
        chunks=(max(1, min(size, 2**16 // size)), size),
        compression="gzip",
        compression_opts=4,
        fillvalue=0,
    )


def _fill(matrix: h5py.Dataset, flows: Flows, rows: slice, values: Ints) -> None:
    """Rows of a matrix by the block; those without trips stay as they were made, zero."""
    size = len(flows.ids)
    origin, destination, count = flows.origin[rows], flows.destination[rows], values[rows]
    step = max(1, NUMBERS_PER_BLOCK // size)
    for start in range(0, size, step):
        a, b = np.searchsorted(origin, [start, start + step])
        if b > a:
            block = np.zeros((min(step, size - start), size), dtype=np.int64)
            block[origin[a:b] - start, destination[a:b]] = count[a:b]
            matrix[start : start + len(block)] = block


def _ids(flows: Flows) -> npt.NDArray[np.int32 | np.int64 | np.bytes_]:
    """Ids as numbers where all are, for that is what programs expect of zones; else as text."""
    whole = [int(t) if t.removeprefix("-").isdecimal() and t.isascii() else None for t in flows.texts]
    if all(n is not None and str(n) == t for n, t in zip(whole, flows.texts, strict=True)):
        numbers = [n for n in whole if n is not None]
        if min(numbers) >= -(2**63) and max(numbers) < 2**63:
            return np.array(numbers, dtype=np.int32 if max(map(abs, numbers)) < 2**31 else np.int64)
    if any("\0" in t for t in flows.texts):
        raise InputError("an id holds a zero character, which Open Matrix cannot: rename it")
    return np.array([t.encode() for t in flows.texts])


def _names(flows: Flows, endings: Sequence[str]) -> dict[str, list[str]]:
    """The periods' names with each ending; a slash or a single dot would mean something else in a path."""
    named = {}
    for ending in endings:
        plain = [f"{p.name}{ending}" for p in flows.periods]
        names = [n.replace("%", "%25").replace("/", "%2F").replace("\0", "%00") for n in plain]
        named[ending] = ["%2E" if n == "." else n for n in names]
    every = list(itertools.chain(*named.values()))
    if len(set(every)) < len(every):
        raise InputError("two matrices would have the same name: rename a period")
    return named


# Flows over a prescribed list of zones


def flows_between_zones(flows: Flows, zones: str | Path | Sequence[str] | None) -> Flows:
    """The flows between these zones, in their order; None: as they are. Every place with trips must be listed."""
    if zones is None:
        return flows
    ids = (
        read_zones(zones) if isinstance(zones, str | Path) else _check_zones([str(z) for z in zones], "given")
    )
    at = {zone: p for p, zone in enumerate(ids)}
    place = np.array([at.get(text, -1) for text in flows.texts], dtype=np.int64)
    start, finish = place[flows.origin], place[flows.destination]
    most = flows.count if flows.high is None else np.maximum(flows.count, flows.high)
    lost = np.flatnonzero(((start < 0) | (finish < 0)) & (most > 0))
    if len(lost):
        end = flows.origin if start[lost[0]] < 0 else flows.destination
        has = "has trips" if flows.count[lost[0]] > 0 else f"may have trips (up to {most[lost[0]]:,})"
        raise InputError(
            f"the place {flows.texts[int(end[lost[0]])]!r} {has} and is not among the {len(ids):,} zones listed: add it to the "
            "list, or export with the level (say --level zone) that the list is of"
        )
    kept = np.flatnonzero((start >= 0) & (finish >= 0))
    order = kept[np.lexsort((finish[kept], start[kept], flows.period[kept]))]
    low, high = (None if ends is None else ends[order] for ends in (flows.low, flows.high))
    return replace(
        flows,
        ids=ids,
        period=flows.period[order],
        origin=start[order],
        destination=finish[order],
        count=flows.count[order],
        first=flows.first[order],
        low=low,
        high=high,
    )


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
    column = next((head.index(name) for name in ZONE_COLUMN_NAMES if name in head), None)
    if column is None and len(head) > 1:
        raise InputError(
            f"the list of zones {str(path)!r} has the columns {', '.join(rows[0])}: call the one with the ids zone"
        )
    ids = [
        row[column or 0] if len(row) > (column or 0) else "" for row in (rows if column is None else rows[1:])
    ]
    return _check_zones(ids, path)


def _check_zones(ids: Sequence[str], path: str | Path) -> tuple[str, ...]:
    twice = [zone for zone, n in Counter(ids).items() if n > 1]
    if "" in ids or not ids:
        raise InputError(
            f"a line of the list of zones {str(path)!r} has no id: write one, or leave the line out"
        )
    if twice:
        raise InputError(f"the zone {twice[0]!r} is in the list {str(path)!r} twice: leave one out")
    return tuple(ids)
