"""Ctrl-C during a series: the release that was charged is finished, the next is not begun, and the next run goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from daily_city import write_daily_city

from cbdp.app import series
from cbdp.app.cli import main
from cbdp.commands.stopping import hear_again
from cbdp.ledger import Ledger


def events(folder: Path) -> list[str]:
    path = folder / "ledger.sqlite"
    if not Ledger.started(path):
        return []
    with Ledger.view(path) as ledger:
        ledger.verify()
        return [entry.event for entry in ledger.entries()]


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """A shell that starts tests in the background has them ignore Ctrl-C, and so would the programs that they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_series_stops_after_the_release_that_was_charged(tmp_path: Path, number: signal.Signals) -> None:
    """Nothing is lost: every charge has its release. The exit code says that it was stopped."""
    folder = write_daily_city(tmp_path, days=30)
    command = [
        sys.executable,
        "-m",
        "cbdp",
        "series",
        "run",
        str(folder / "cbdp.toml"),
        "--until",
        "2026-03-30",
    ]
    process = subprocess.Popen(
        [*command, "--create-ledger"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    end = time.monotonic() + 120
    while "reserved" not in events(folder) and time.monotonic() < end:
        time.sleep(0.02)
    process.send_signal(number)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    told = events(folder)
    assert told.count("reserved") == told.count("released") >= 1
    assert told.count("released") < 30
    made = sorted(path.name for path in (folder / "releases").iterdir())
    assert made == [f"2026-03-{n:02d}" for n in range(1, len(made) + 1)]
    again = f"2026-03-{len(made) + 1:02d}"
    assert main(["series", "run", str(folder / "cbdp.toml"), "--until", again]) == 0
    assert events(folder).count("released") == len(made) + 1


def test_a_program_gets_its_signals_back(tmp_path: Path) -> None:
    """After two releases in one run, Ctrl-C is heard by whoever heard it before."""
    folder = write_daily_city(tmp_path, days=2)
    before = signal.getsignal(signal.SIGINT)
    assert main(["series", "run", str(folder / "cbdp.toml"), "--until", "2026-03-02", "--create-ledger"]) == 0
    assert signal.getsignal(signal.SIGINT) is before


def test_what_stops_before_a_charge_does_not_deny_the_releases_before_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the second release is counted: one is made and paid for, and the line says so."""
    folder = write_daily_city(tmp_path, days=3)
    seen: list[object] = []

    def judged(*_: object, **__: object) -> object:
        def judge(*counted: object) -> None:
            seen.append(counted)
            if len(seen) == 2:
                signal.raise_signal(signal.SIGINT)

        return judge

    monkeypatch.setattr(series, "judge_series", judged)
    try:
        asked = ["series", "run", str(folder / "cbdp.toml"), "--until", "2026-03-03", "--create-ledger"]
        assert main(asked) == 130
    finally:
        hear_again()
    said = capsys.readouterr().err
    assert (
        "stopped after 1 release of this run, which stays as it is; nothing was charged for 2026-03-02"
        in said
    )
    assert "nothing was spent" not in said
    assert events(folder).count("released") == events(folder).count("reserved") == 1
