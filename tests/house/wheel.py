"""Whether a built wheel and source archive hold the whole package: `PYTHONPATH=tests python -m house.wheel DIST`."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

from house.graph import ROOT


def files(root: Path = ROOT) -> set[str]:
    """Every file of the package, the linked folders included, as it is named in a wheel."""
    found = set()
    folders = [root / "cbdp"]
    while folders:
        inside = list(folders.pop().iterdir())
        folders += [p for p in inside if p.is_dir() and p.name != "__pycache__"]
        found |= {p.relative_to(root).as_posix() for p in inside if p.is_file()}
    return found


def complaints(dist: Path) -> list[str]:
    """What is wrong with the one wheel and the one source archive in a folder."""
    (wheel,), (archive,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    held = set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(archive) as opened:
        sources = {name.partition("/")[2] for name in opened.getnames()}
    strange = {name for name in held if not name.startswith("cbdp/") and ".dist-info/" not in name}
    return [
        *(f"{wheel.name} lacks {name}" for name in sorted(files() - held)),
        *(f"{wheel.name} holds {name}, which is no part of the package" for name in sorted(strange)),
        *(f"{archive.name} lacks {name}" for name in sorted(files() - sources)),
    ]


def main() -> int:
    found = complaints(Path(sys.argv[1]))
    print("\n".join(found) if found else f"{sys.argv[1]} holds all {len(files())} files of the package")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
