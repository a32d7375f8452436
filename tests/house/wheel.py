"""Whether a built wheel and source archive hold the whole package: `PYTHONPATH=tests python -m house.wheel DIST`."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

from house.graph import ROOT

HOMES = {"cbdp": "cbdp", "cbdp_features": "features/cbdp_features", "cbdp_solvers": "solvers/cbdp_solvers"}


def files(root: Path = ROOT) -> dict[str, str]:
    """Every file of the package: its name in a wheel → its place in the tree."""
    return {
        f"{name}/{path.relative_to(root / home).as_posix()}": path.relative_to(root).as_posix()
        for name, home in HOMES.items()
        for path in sorted((root / home).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def complaints(dist: Path) -> list[str]:
    """What is wrong with the one wheel and the one source archive in a folder."""
    (wheel,), (archive,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    held = set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(archive) as opened:
        sources = {name.partition("/")[2] for name in opened.getnames()}
    strange = {name for name in held if name.split("/")[0] not in HOMES and ".dist-info/" not in name}
    return [
        *(f"{wheel.name} lacks {name}" for name in sorted(files().keys() - held)),
        *(f"{wheel.name} holds {name}, which is no part of the package" for name in sorted(strange)),
        *(f"{archive.name} lacks {name}" for name in sorted(set(files().values()) - sources)),
    ]


def main() -> int:
    found = complaints(Path(sys.argv[1]))
    print("\n".join(found) if found else f"{sys.argv[1]} holds all {len(files())} files of the package")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
