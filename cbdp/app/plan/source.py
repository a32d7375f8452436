"""Where the trips of a plan are, so that the same words do not stand for other trips: February's file under January's name.

Files count by their real path, size and time of change, tables by URL and name. Whether a table of a server has other rows
than it had cannot be seen from outside: there the data set's id must tell.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from cbdp.trips import files
from cbdp.trips.preparing import Prepared

LOCAL = ("duckdb", "sqlite")
LOGS = ("", ".wal", "-wal")  # a database's file, and what was written and not yet moved into it
SECRET = re.compile("pass|pwd|secret|token|key|user|uid|auth|credential", re.IGNORECASE)


def source_hash(trips: str | list[str] | Prepared) -> str:
    """A hash of where the trips are and in what state. It tells nobody a path, a user or a password."""
    raw = trips.trips if isinstance(trips, Prepared) else trips
    text = json.dumps(_source(raw), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _source(trips: str | list[str]) -> Any:
    if files.are_files(trips):
        return {"files": sorted(_state(path) for path in files.find(trips).paths)}
    assert isinstance(trips, str)
    place, _, table = trips.rpartition("::")
    scheme, _, rest = place.partition("://")
    if scheme in LOCAL:
        here = [Path(f"{rest}{log}") for log in LOGS]
        return {"table": table, "files": [_state(path) for path in here if path.is_file()]}
    return {"table": table, "url": _open_part(place)}


def _state(path: Path) -> tuple[str, int, int]:
    who = files.identity(path)
    return str(path.resolve()), who.size, who.modified


def _open_part(url: str) -> list[Any]:
    """A URL without user, password and tokens: those may change, and are nobody's business.

    >>> _open_part("postgres://me:secret@host:5432/city?schema=may&password=x")
    ['postgres', 'host:5432', '/city', [('schema', 'may')]]
    """
    parts = urlsplit(url)
    path, *options = parts.path.split(";")  # as Spark Connect has them
    kept = [option for option in options if not SECRET.search(option.partition("=")[0])]
    asked = sorted(pair for pair in parse_qsl(parts.query) if not SECRET.search(pair[0]))
    return [parts.scheme, parts.netloc.rpartition("@")[2], ";".join([path, *kept]), asked]
