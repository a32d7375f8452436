"""`cbdp inspect` and time zones: local times that a stated zone has moved are noticed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cbdp import config
from cbdp.app import init
from cbdp.app.inspecting import reading_of
from cbdp.counting.diagnosis import causes_of
from cbdp.counting.reading import look
from cbdp.datasets import practice


@pytest.fixture
def town(tmp_path: Path) -> Path:
    """The practice files with a configuration; times are those of the clock on the wall."""
    for name, text in practice.practice_files().items():
        (tmp_path / name).write_text(text, "utf-8")
    init.write(tmp_path / "cbdp.toml", tmp_path / "trips.csv", tmp_path / "stops.csv")
    return tmp_path


@pytest.mark.parametrize(
    ("zone", "moved"), [(None, False), ("America/Detroit", True), ("Europe/London", False)]
)
def test_local_times_that_a_zone_has_moved_are_noticed(zone: str | None, moved: bool, town: Path) -> None:
    """The town is quiet at night. Five hours earlier that is in the evening; in London nothing has moved in March."""
    path = town / "cbdp.toml"
    if zone is not None:
        path.write_text(
            path.read_text("utf-8").replace("[data]\n", f'[data]\ntimezone = "{zone}"\n'), "utf-8"
        )
    reading = reading_of(config.read(path))
    said = [cause for cause in causes_of(reading, look(reading)) if "quietest hours" in cause.what]
    assert bool(said) is moved
    assert all("leave timezone out" in cause.cure for cause in said)


def test_a_reader_who_has_gone_is_no_error(town: Path) -> None:
    """After `| head` there is no message, and the exit code that shells expect."""
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run(
        [sys.executable, "-m", "cbdp", "inspect", "cbdp.toml"],
        cwd=town,
        stdout=writes,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writes)
    said = [line for line in done.stderr.splitlines() if "still working" not in line]  # on a busy machine
    assert (done.returncode, said) == (141, [])
