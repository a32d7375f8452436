"""Files that a command writes beside a release: nothing is overwritten, and nothing internal lands in a release."""

from __future__ import annotations

from pathlib import Path

from cbdp.errors import InputError
from cbdp.release.saving import MANIFEST


def check_new(path: Path, *, internal: bool) -> None:
    """Refuse a place before the work begins: one that is taken, has no folder or, for real trips, lies in a release."""
    folder = path.absolute().parent
    if path.exists():
        raise InputError(_taken(path))
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r}: make it first")
    if internal and any((f / MANIFEST).exists() for f in (folder, *folder.parents)):
        raise InputError(
            f"{str(path)!r} lies in a release, but would show what was made with real trips: choose another place"
        )


def write_new(path: Path, text: str) -> None:
    """Write a file that does not exist yet."""
    try:
        with path.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise InputError(_taken(path)) from None
    except OSError as wrong:
        raise InputError(
            f"{str(path)!r} cannot be written ({wrong.strerror}): choose another place"
        ) from None


def _taken(path: Path) -> str:
    return f"{str(path)!r} exists already and is not overwritten: choose another place"
