"""Files that a command writes: nothing is overwritten, and nothing internal lands in a release or under an innocent name."""

from __future__ import annotations

import os
from pathlib import Path

from cbdp.errors import InputError
from cbdp.untrusted import read_json

MARK = "internal"  # in the name of every file that was made with real trips


def check_new(path: Path, *, internal: bool) -> None:
    """Refuse a place before the work begins: one that is taken or has no folder.

    What was made with real trips is `internal`: it must bear that word in its name, and may lie in no release.
    """
    folder = path.absolute().parent
    if os.path.lexists(path):
        raise InputError(_taken(path))
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r}: create it first")
    if internal:
        _check_internal(path)


def write_new(path: Path, text: str, *, internal: bool = False) -> None:
    """Write a file that does not exist yet; `internal` is checked once more, for the work before may have taken long."""
    if internal:
        _check_internal(path)
    try:
        with path.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise InputError(_taken(path)) from None
    except OSError as wrong:
        raise InputError(
            f"{str(path)!r} cannot be written ({wrong.strerror}): choose another place"
        ) from None


def release_around(path: Path) -> Path | None:
    """The release folder that a path lies in, at any depth, as it is written or once links are followed."""
    folder = path.absolute().parent
    for start in (Path(os.path.normpath(folder)), folder.resolve()):
        for place in (start, *start.parents):
            if _is_release(place):
                return place
    return None


def _is_release(folder: Path) -> bool:
    """Whether a folder holds a manifest of ours. One that cannot be read may be ours."""
    from cbdp.release.files import MANIFEST
    from cbdp.release.manifest import FORMAT

    try:
        document = read_json(folder / MANIFEST)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return isinstance(document, dict) and document.get("format") == FORMAT


def _check_internal(path: Path) -> None:
    around = release_around(path)
    if around is not None:
        raise InputError(
            f"{str(path)!r} lies in the release {str(around)!r}, but would show private data: choose a place outside"
        )
    if MARK not in path.name.lower():
        proposed = path.with_name(f"{path.stem}-{MARK}{path.suffix}")
        raise InputError(
            f"{str(path)!r} would show private data, so its name must contain {MARK!r}: use {str(proposed)!r}"
        )


def _taken(path: Path) -> str:
    return f"{str(path)!r} exists already and is not overwritten: choose another place"
