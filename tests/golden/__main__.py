"""`python -m golden write FOLDER`, `compare A B`, `expect`: see the package."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from golden.cases import CASES, write
from golden.comparing import differences, note_writer
from golden.expecting import write_expected

STAGE = Path(tempfile.gettempdir()).resolve() / "cbdp-golden"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m golden", description="What the same seeds publish, before and after."
    )
    actions = parser.add_subparsers(dest="action", required=True)
    writing = actions.add_parser("write", help="write every configuration into a new folder")
    writing.add_argument("folder", type=Path)
    writing.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES), metavar="CASE")
    comparing = actions.add_parser(
        "compare", help="name every difference of two such folders; exit 1 if there is any"
    )
    comparing.add_argument("a", type=Path)
    comparing.add_argument("b", type=Path)
    actions.add_parser("expect", help="write expected.json, which the suite compares with")
    options = parser.parse_args()
    if options.action == "compare":
        lines = differences(options.a, options.b)
        print("\n".join(lines) if lines else "no differences")
        return int(bool(lines))
    if options.action == "write":
        write_all(options.folder, options.only)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        write_all(Path(folder) / "golden", list(CASES))
        write_expected(Path(folder) / "golden")
    return 0


def write_all(folder: Path, names: list[str]) -> None:
    """In one place, and then moved: requests in ledgers and names of private files are hashes in which the place has a part."""
    if folder.exists():
        raise SystemExit(f"{folder} exists already")
    try:
        STAGE.mkdir()
    except FileExistsError:
        raise SystemExit(f"{STAGE} exists: another write is at work; or one died, then remove it") from None
    try:
        note_writer(STAGE)
        for name in names:
            begun = time.process_time()
            write(name, STAGE)
            print(f"{name}: {time.process_time() - begun:.1f} CPU s", flush=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(STAGE, folder)
    finally:
        shutil.rmtree(STAGE, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
