"""The commands that the how-to page on databases shows for servers, run on a server of the tests."""

from __future__ import annotations

import contextlib
import io
import shlex
from pathlib import Path

from page_running import blocks

from cbdp.app.cli import main
from cbdp.datasets import practice

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "databases.md"
ROWS = 300  # are enough to see that they are read


def trips() -> list[dict[str, str]]:
    """Some rows of the practice trips."""
    header, *lines = practice.practice_files()["trips.csv"].splitlines()[: ROWS + 1]
    return [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]


def follow(shown: str, real: str, folder: Path) -> str:
    """Run the page's `cbdp init` with this URL in place of the one that is shown, then look at the rows; what was said."""
    lines = [line for b in blocks(PAGE.read_text("utf-8")) for line in b.text.splitlines()]
    (command,) = [line for line in lines if line.startswith("$ cbdp init") and f"'{shown}'" in line]
    words = [real if word == shown else word for word in shlex.split(command)[2:]]
    (folder / "stops.csv").write_text(practice.practice_files()["stops.csv"], "utf-8")
    out = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out):
        assert main(words) == 0
        assert main(["inspect", "cbdp.toml"]) == 0
        Path("cbdp.toml").unlink()
    return out.getvalue()


def assert_read(said: str) -> None:
    """Columns were found, and all rows count."""
    columns = "origin is 'from_stop', destination is 'to_stop', time is 'start_time', person is 'card_id'"
    assert columns in said
    assert f"{ROWS} rows read, {ROWS} counted (100.0 %), 0 dropped" in said
