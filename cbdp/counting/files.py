"""Files of trips, each counted once whatever names lead to it; and the private folder that an engine spills to.

A file is what the system says it is (device and inode), so that links, hard links, `data/../one.parquet` and patterns that overlap
are the same file. The files are looked at again when the count is done: what was written meanwhile is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard
from urllib.parse import parse_qsl, urlsplit

from cbdp.errors import InputError
from cbdp.machine import SPILL_PREFIX, locked_folder, owned
from cbdp.machine import sweep as sweep_abandoned

PARQUET_SUFFIX, TEXT_SUFFIXES = ".parquet", (".csv", ".csv.gz", ".txt")  # .txt as GTFS has it: CSV


@dataclass(frozen=True)
class FileIdentity:
    """What a file is, and the state it is in."""

    device: int
    inode: int
    size: int
    modified: int

    @property
    def file(self) -> tuple[int, int]:
        return self.device, self.inode


@dataclass(frozen=True)
class Files:
    """Distinct files in the order in which names lead to them, and the names that led to one of them again."""

    paths: tuple[Path, ...]
    again: tuple[str, ...]
    identities: tuple[FileIdentity, ...]

    @property
    def label(self) -> str:
        more = len(self.paths) - 1
        return repr(str(self.paths[0])) + (f" and {more} more file{'s' * (more > 1)}" if more else "")

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(f"{name!r} is a file that is there already: it is counted once" for name in self.again)

    def changed(self) -> tuple[str, ...]:
        """Files that are no longer what they were when they were found."""
        pairs = zip(self.paths, self.identities, strict=True)
        return tuple(str(path) for path, was in pairs if not path.is_file() or file_identity(path) != was)


def are_files(trips: object) -> TypeGuard[str | Path | Sequence[str | Path]]:
    """Whether trips are given as paths: one, or a list of them."""
    if isinstance(trips, str | Path):
        return "://" not in str(trips)
    return isinstance(trips, list | tuple) and bool(trips) and all(isinstance(t, str | Path) for t in trips)


def find_files(sources: str | Path | Sequence[str | Path]) -> Files:
    """The distinct files of a path, a pattern, a folder of Parquet, or a list of these."""
    listed = [sources] if isinstance(sources, str | Path) else list(sources)
    first: dict[tuple[int, int], Path] = {}
    again = []
    for path in (p for one in listed for p in _paths(Path(one))):
        who = file_identity(path).file
        if who in first:
            again.append(str(path))
        else:
            first[who] = path
    paths = tuple(first.values())
    _check_kinds(paths)
    return Files(paths, tuple(dict.fromkeys(again)), tuple(file_identity(p) for p in paths))


def file_identity(path: Path) -> FileIdentity:
    try:
        status = path.stat()
    except OSError as wrong:
        raise InputError(
            f"the file {str(path)!r} cannot be read ({wrong.strerror}): check its rights"
        ) from None
    return FileIdentity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def are_parquet(files: Files) -> bool:
    return files.paths[0].name.lower().endswith(PARQUET_SUFFIX)


def _check_kinds(paths: Sequence[Path]) -> None:
    parquet = [p for p in paths if p.name.lower().endswith(PARQUET_SUFFIX)]
    texts = [p for p in paths if p.name.lower().endswith(TEXT_SUFFIXES)]
    for path in paths:
        if path not in parquet and path not in texts:
            raise InputError(
                f"{str(path)!r}: trips are read from .parquet, .csv, .csv.gz or .txt; save a table as CSV"
            )
    if parquet and texts:
        raise InputError(f"{str(paths[0])!r} and others are Parquet and CSV together: give one kind")


def _paths(path: Path) -> list[Path]:
    """A file, the Parquet files of a folder, or what a pattern finds, in the order of their names."""
    if path.is_dir():
        return _folder(path)
    if path.is_file():
        return [path]
    try:
        matches = sorted(Path(path.anchor or ".").glob(str(path.relative_to(path.anchor))))
    except (ValueError, NotImplementedError):
        matches = []
    if not matches:
        raise InputError(f"there is no file {str(path)!r}")
    return [inner for p in matches for inner in (_folder(p) if p.is_dir() else [p])]


def _folder(folder: Path) -> list[Path]:
    """All Parquet files under a folder, as Spark and others write them; names with _ or . in front are their own books."""
    for book, what in (("_delta_log", "Delta"), (".hoodie", "Hudi"), ("metadata", "Iceberg")):
        for entry in sorted(folder.rglob(book)):
            if entry.is_dir() and (what != "Iceberg" or any(entry.glob("*.metadata.json"))):
                # it keeps the files of older versions: counting them all would count trips twice
                raise InputError(
                    f"{str(entry.parent)!r} is a {what} table: export its present version, or read it through Spark"
                )
    inside = [p for p in folder.rglob("*" + PARQUET_SUFFIX) if not _hidden(p.relative_to(folder))]
    nested = [p for p in inside if p.is_dir()]
    files = [p for p in inside if p not in nested]
    if not files:
        raise InputError(f"the folder {str(folder)!r} holds no .parquet file")
    return sorted(files)


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


# The state of a source: February's file under January's name is another one
#
# Files count by their real path, size and time of change, tables by URL and name. Whether a table of a server has other rows than it had cannot be seen
# from outside: there the data set's id must tell.


FILE_DATABASES = ("duckdb", "sqlite")
DATABASE_LOGS = ("", ".wal", "-wal")  # a database's file, and what was written and not yet moved into it
SECRET_OPTION = re.compile("pass|pwd|secret|token|key|user|uid|auth|credential", re.IGNORECASE)


def source_hash(trips: str | list[str]) -> str:
    """A hash of where the trips are and in what state. It tells nobody a path, a user or a password."""
    text = json.dumps(_source(trips), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _source(trips: str | list[str]) -> dict[str, object]:
    if are_files(trips):
        return {"files": sorted(_state(path) for path in find_files(trips).paths)}
    assert isinstance(trips, str)
    place, _, table = trips.rpartition("::")
    scheme, _, rest = place.partition("://")
    if scheme in FILE_DATABASES:
        here = [Path(f"{rest}{log}") for log in DATABASE_LOGS]
        return {"table": table, "files": [_state(path) for path in here if path.is_file()]}
    return {"table": table, "url": _open_part(place)}


def _state(path: Path) -> tuple[str, int, int]:
    who = file_identity(path)
    return str(path.resolve()), who.size, who.modified


def _open_part(url: str) -> list[object]:
    """A URL without user, password and tokens: those may change, and are nobody's business.

    >>> _open_part("postgres://me:secret@host:5432/city?schema=may&password=x")
    ['postgres', 'host:5432', '/city', [('schema', 'may')]]
    """
    parts = urlsplit(url)
    path, *options = parts.path.split(";")  # as Spark Connect has them
    kept = [option for option in options if not SECRET_OPTION.search(option.partition("=")[0])]
    asked = sorted(pair for pair in parse_qsl(parts.query) if not SECRET_OPTION.search(pair[0]))
    return [parts.scheme, parts.netloc.rpartition("@")[2], ";".join([path, *kept]), asked]


# Where an engine puts what does not fit in memory. The folder is readable by its owner alone, and removed when the work ends or fails. What a killed process left behind is swept when the next
# one starts (`cbdp.machine`).


@contextlib.contextmanager
def spill_folder() -> Iterator[Path]:
    """A private folder for the time of the work."""
    remove_stale_folders()
    folder = Path(tempfile.gettempdir()) / owned(SPILL_PREFIX)
    with locked_folder(folder, 0o700):
        yield folder


def remove_stale_folders() -> None:
    """Remove our folders whose process is gone."""
    sweep_abandoned(Path(tempfile.gettempdir()), re.escape(SPILL_PREFIX), "")
