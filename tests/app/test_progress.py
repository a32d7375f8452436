"""Long work tells its stages to who watches, and to nobody else."""

from __future__ import annotations

import io

import pytest

from cbdp.datasets import ann_arbor
from cbdp.mechanisms import ConstraintBased
from cbdp.progress import in_quarters, on_terminal, shown, silent, tell, watched

CITY = ann_arbor(seed=0, hours=("08:00", "09:00"))


def test_a_release_tells_its_stages_in_order() -> None:
    """Measuring, expected counts from 0 to 1, solving, rounding: the same calls whatever the trips are."""
    heard: list[tuple[str, float]] = []
    for counts in (CITY.counts(), 0 * CITY.counts()):
        with watched(lambda stage, done: heard.append((stage, done))):
            ConstraintBased(CITY.features(), "1").simulate(counts, seed=1)
    full, empty = heard[: len(heard) // 2], heard[len(heard) // 2 :]
    assert full == empty
    stages = list(dict.fromkeys(stage for stage, _ in full))
    assert stages == ["measuring", "expected counts", "solving", "rounding"]
    shares = [done for stage, done in full if stage == "expected counts"]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_quarters_are_told_once_and_silence_is_kept_outside() -> None:
    """A watcher by quarters says the beginning and three quarters of a stage; after the block nobody listens."""
    said: list[str] = []
    with watched(in_quarters(said.append)):
        for step in range(101):
            tell("counting", step / 100)
        tell("rounding")
    tell("nobody hears this")
    assert said == [
        "  counting …",
        "  counting: 25 %",
        "  counting: 50 %",
        "  counting: 75 %",
        "  rounding …",
    ]


class Terminal(io.StringIO):
    """Where a person looks."""

    def isatty(self) -> bool:
        return True


def _work() -> None:
    for step in range(1, 11):
        tell("counting", step / 10)
    tell("rounding")


def test_a_terminal_gets_bars_and_a_log_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal each stage is a bar, and nothing is said in lines; the cursor stays, however the process ends."""
    monkeypatch.setenv("TERM", "xterm")
    said: list[str] = []
    screen = Terminal()
    with on_terminal(screen), shown(said.append):
        _work()
    assert said == []
    assert "counting" in screen.getvalue()
    assert "rounding" in screen.getvalue()
    assert "100%" in screen.getvalue()
    assert "\x1b[?25l" not in screen.getvalue()
    with on_terminal(io.StringIO()), shown(said.append):
        _work()
    assert said == [
        "  counting …",
        "  counting: 25 %",
        "  counting: 50 %",
        "  counting: 75 %",
        "  rounding …",
    ]


def test_a_library_is_silent_and_a_terminal_that_cannot_draw_gets_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody who watches gets no bar, and of stages that are not asked for there is none."""
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    with on_terminal(screen), shown(silent):
        _work()
    assert screen.getvalue() == ""
    with on_terminal(screen), shown(print, only=("rounding",)):
        _work()
    assert "counting" not in screen.getvalue()
    said: list[str] = []
    monkeypatch.setenv("TERM", "dumb")
    with on_terminal(screen), shown(said.append, only=("rounding",)):
        _work()
    assert said == ["  rounding …"]
