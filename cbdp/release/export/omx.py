"""Open Matrix: an HDF5 file with a matrix of whole trips per period, and the ids of its rows and columns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InputError
from cbdp.release.export.base import Format
from cbdp.release.export.beside import texts
from cbdp.release.export.flows import Flows, flows
from cbdp.release.export.writing import needs
from cbdp.release.release import Release

LARGEST = 2**14  # places: the files are for programs that hold whole matrices
MATRICES = 10_000
BLOCK = 2**24  # numbers of a matrix that are in memory at once


@dataclass(frozen=True)
class Omx(Format):
    name: ClassVar[str] = "omx"
    about: ClassVar[str] = "Open Matrix: a matrix per period, and the ids of its rows and columns"
    package: ClassVar[str | None] = "h5py"
    install: ClassVar[str] = "pip install 'cbdp[omx]'"

    def write(
        self,
        release: Release,
        path: Path,
        *,
        level: str | None = None,
        origin: str = "origin",
        destination: str = "destination",
    ) -> None:
        """Write rows as origins and columns as destinations; the lookup (`stop`, or the level) has the id of each."""
        h5py = needs("h5py", "omx")
        made = flows(release, level=level, origin=origin, destination=destination)
        size = len(made.ids)
        if size > LARGEST or len(made.periods) > MATRICES:
            raise InputError(
                f"{len(made.periods):,} matrices of {size:,} × {size:,} are too many or too large for Open Matrix: add stops up to "
                "zones with level='zone', or choose another format"
            )
        small = int(made.count.max(initial=0)) < 2**31
        with h5py.File(path, "w", libver="earliest") as out:
            out.attrs["OMX_VERSION"] = np.bytes_(b"0.2")
            out.attrs["SHAPE"] = np.array([size, size], dtype=np.int32)
            for name, said in texts(release).items():
                out.attrs[name] = np.bytes_(said.encode())
            out.create_group("lookup").create_dataset(level or "stop", data=_ids(made))
            matrices = out.create_group("data")
            for (period, rows), name in zip(made.by_period(), _names(made), strict=True):
                chunk = (max(1, min(size, 2**16 // size)), size)
                kind = np.int32 if small else np.int64
                matrix = matrices.create_dataset(
                    name,
                    (size, size),
                    kind,
                    chunks=chunk,
                    compression="gzip",
                    compression_opts=4,
                    fillvalue=0,
                )
                matrix.attrs["begin"], matrix.attrs["end"] = period.begin, period.end
                _fill(matrix, made, rows, size)


def _fill(matrix: Any, made: Flows, rows: slice, size: int) -> None:
    """Rows of a matrix by the block; those without trips stay as they were made, zero."""
    origin, destination, count = made.origin[rows], made.destination[rows], made.count[rows]
    step = max(1, BLOCK // size)
    for start in range(0, size, step):
        a, b = np.searchsorted(origin, [start, start + step])
        if b > a:
            block = np.zeros((min(step, size - start), size), dtype=np.int64)
            block[origin[a:b] - start, destination[a:b]] = count[a:b]
            matrix[start : start + len(block)] = block


def _ids(made: Flows) -> NDArray[Any]:
    """Ids as numbers where all are, for that is what programs expect of zones; else as text."""
    whole = [int(t) if t.removeprefix("-").isdecimal() and t.isascii() else None for t in made.texts]
    if all(n is not None and str(n) == t for n, t in zip(whole, made.texts, strict=True)):
        numbers = [n for n in whole if n is not None]
        if min(numbers) >= -(2**63) and max(numbers) < 2**63:
            return np.array(numbers, dtype=np.int32 if max(map(abs, numbers)) < 2**31 else np.int64)
    if any("\0" in t for t in made.texts):
        raise InputError("an id holds a zero character, which Open Matrix cannot: rename it")
    return np.array([t.encode() for t in made.texts])


def _names(made: Flows) -> list[str]:
    """The periods' names; a slash or a single dot would mean something else in a path."""
    names = [p.name.replace("%", "%25").replace("/", "%2F").replace("\0", "%00") for p in made.periods]
    names = ["%2E" if n == "." else n for n in names]
    if len(set(names)) < len(names):
        raise InputError("two periods would have the same name: rename one")
    return names
