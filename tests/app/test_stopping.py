"""Signals during a release: before the charge they stop it within two seconds, after it the release is finished.

Real signals to real processes, at random instants: CBDP_KILLS=200 sends as many.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from publishing import events, planned, warm, write_inputs

from cbdp import config
from cbdp.app import cli
from cbdp.app import publish as order
from cbdp.app.publish import publish
from cbdp.commands import stopping
from cbdp.commands.stopping import GRACE_SECONDS, STOPPED, TIDY_SECONDS, Interrupts, hear_again
from cbdp.errors import InputError
from cbdp.ledger import Ledger
from cbdp.release.files import leftovers, load

KILLS = max(24, int(os.environ.get("CBDP_KILLS", "24")))
PROMISED = 2.0  # seconds
SOON = PROMISED + 2.0  # and some for a machine that has other work
PATIENCE = 120.0  # seconds in which what must happen happens on any machine
NOTE = "; the release will be complete"

pytestmark = [
    pytest.mark.forks,
    pytest.mark.timeout(240 + 20 * KILLS),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def _warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Children shall not have to load and compile."""
    warm(tmp_path_factory.mktemp("warm"))


@pytest.fixture(autouse=True)
def _as_in_a_terminal() -> Iterator[None]:
    """A shell that starts the tests in the background may have told them to ignore signals."""
    usual = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
        signal.SIGHUP: signal.SIG_DFL,
    }
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with trips, stops and a configuration."""
    write_inputs(tmp_path)
    return tmp_path


@dataclass(frozen=True)
class Ended:
    """How a run ended."""

    code: int
    seconds: float  # since the first signal, without those for which it waited for a processor
    waited: float  # since then, by the clock on the wall
    said: str


class Clock:
    """Measures how long a child of this process takes to end."""

    def __init__(self, child: int) -> None:
        self._child, self._begun = child, time.monotonic()
        self._held = self._held_up()

    def _held_up(self) -> float:
        """Seconds for which others had the processors that it wanted; 0 where the system does not tell."""
        try:
            return int(Path(f"/proc/{self._child}/schedstat").read_text().split()[1]) / 1e9
        except (OSError, IndexError):
            return 0.0

    def ended(self) -> tuple[float, float]:
        """Wait for it, and leave it to be asked how it ended: the seconds without and with those."""
        os.waitid(os.P_PID, self._child, os.WEXITED | os.WNOWAIT)
        waited = time.monotonic() - self._begun
        return waited - max(0.0, self._held_up() - self._held), waited


def until(ready: Callable[[], bool], otherwise: Callable[[], str]) -> None:
    late = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < late, otherwise()
        time.sleep(0.01)


def nothing() -> None:
    """Prepare nothing."""


def command(folder: Path, prepare: Callable[[], None] = nothing) -> tuple[int, Path]:
    """Run `cbdp release` in a child; its id once it listens to signals, and the file that holds what it says."""
    said = folder / "said"
    ready, tell = os.pipe()
    child = os.fork()
    if child:
        os.close(tell)
        assert os.read(ready, 1) == b"!"
        os.close(ready)
        return child, said
    code = 99
    try:
        prepare()
        read = config.read

        def told(path: str) -> Any:
            os.write(tell, b"!")
            return read(path)

        config.read = told
        sys.stdout = sys.stderr = said.open("w", encoding="utf-8")
        sys.argv = ["cbdp", "release", str(folder / "cbdp.toml"), "--create-ledger"]
        code = cli.main()  # as the program does
        sys.stderr.flush()
    finally:
        os._exit(code)


def signalled(
    folder: Path,
    *when: tuple[float, int],
    prepare: Callable[[], None] = nothing,
    after: str = "",
    notes: bool = False,
) -> Ended:
    """The end of a release that gets signals after so many seconds each, from when it has said some words.

    With notes, each signal but the first is sent when the one before was answered by a note.
    """
    child, said = command(folder, prepare)

    def words() -> str:
        return said.read_text(encoding="utf-8")

    until(lambda: after in words(), lambda: f"not said: {words()}")
    clock = None
    for n, (seconds, number) in enumerate(when):
        time.sleep(seconds)
        if n and notes:
            until(lambda n=n: words().count(NOTE) >= n, lambda: f"not answered: {words()}")
        clock = clock or Clock(child)
        os.kill(child, number)  # a child that has ended is still known until it is waited for
    times = clock.ended() if clock else (0.0, 0.0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Ended(code, *times, words())


def answered(folder: Path, times: int) -> None:
    """In the child: go on when it has answered so many signals."""
    late = time.monotonic() + PATIENCE
    while (folder / "said").read_text(encoding="utf-8").count(NOTE) < times and time.monotonic() < late:
        time.sleep(0.01)


def nothing_spent(folder: Path, ended: Ended) -> None:
    """One line says so, and it is true."""
    assert ended.code == 130, ended
    assert ended.seconds < SOON
    assert ended.said.splitlines()[-1] == f"cbdp: {STOPPED}"
    assert "reserved" not in events(folder)
    assert not (folder / "release").exists()
    assert not leftovers(folder / "release")


def finished(folder: Path, ended: Ended) -> None:
    """Charged once, released once, and whole."""
    assert ended.code == 0, ended
    assert events(folder) == ["opened", "reserved", "released"]
    load(folder / "release")
    assert not leftovers(folder / "release")


def clear(folder: Path) -> None:
    for file in folder.glob("ledger.sqlite*"):
        file.unlink()
    shutil.rmtree(folder / "release", ignore_errors=True)


@pytest.mark.slow
def test_signals_at_any_instant(folder: Path) -> None:
    """SIGINT and SIGTERM, alone or one after the other, spread over the whole run."""
    chance, stopped, noted, n = random.Random(11), 0, 0, 0
    whole = undisturbed(folder)
    # as many as are asked for; more where the machine was so uneven that hardly any came before, or after, the charge
    while n < KILLS or (min(stopped, noted) < KILLS / 12 and n < 10 * KILLS):
        clear(folder)
        if n % KILLS == 0 and n:
            whole = undisturbed(folder)
            clear(folder)
        both = chance.sample((signal.SIGINT, signal.SIGTERM), 2)
        again = [(chance.uniform(0, 0.1), both[1])] if n % 3 == 0 else []
        ended = signalled(folder, ((n % KILLS + chance.random()) / KILLS * whole, both[0]), *again)
        if "reserved" in events(folder):
            finished(folder, ended)
            noted += NOTE in ended.said
        else:
            nothing_spent(folder, ended)
            stopped += 1
        n += 1
    assert stopped >= KILLS / 12
    assert noted >= KILLS / 12


def undisturbed(folder: Path) -> float:
    """How many seconds a release takes."""
    ended = signalled(folder, (0.0, signal.SIGCHLD))  # which nobody minds
    finished(folder, ended)
    return ended.waited


@pytest.mark.slow
def test_the_command_itself(folder: Path) -> None:
    """As a user starts it, with signals while it counts; then it is run to its end."""
    program = [sys.executable, "-m", "cbdp", "release", str(folder / "cbdp.toml"), "--create-ledger"]
    for number in (signal.SIGINT, signal.SIGTERM):
        clear(folder)
        with subprocess.Popen(
            program, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            heard = process.stderr.readline()  # type: ignore[union-attr]
            clock = Clock(process.pid)
            process.send_signal(number)
            rest = process.stderr.read()  # type: ignore[union-attr]
            times = clock.ended()
        ended = Ended(process.returncode, *times, heard + rest)
        if "reserved" in events(folder):
            finished(folder, ended)
        else:
            nothing_spent(folder, ended)
    clear(folder)
    assert subprocess.run(program, capture_output=True, check=False).returncode == 0


def busy(*_: object, **__: object) -> None:
    """Compiled code that never returns and never looks at signals."""
    print("at work", file=sys.stderr, flush=True)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"
    sqlite3.connect(":memory:").execute(endless).fetchall()


def stubborn(*_: object, **__: object) -> None:
    """Code that catches whatever is thrown at it."""
    print("at work", file=sys.stderr, flush=True)
    while True:
        try:
            while True:
                time.sleep(0.01)
        except BaseException:  # noqa: BLE001, S112
            continue


@pytest.mark.slow
@pytest.mark.parametrize("work", [busy, stubborn])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whoever_does_not_stop_is_stopped(folder: Path, work: Callable[..., None], number: int) -> None:
    """While compiled code counts, or Python swallows the interruption."""
    ended = signalled(folder, (0.1, number), prepare=lambda: setattr(order, "counted", work), after="at work")
    nothing_spent(folder, ended)
    assert ended.waited > 1


@pytest.mark.slow
def test_temporary_folders_are_removed_when_the_process_is_ended(folder: Path) -> None:
    """A rehearsal that hangs leaves nothing beside the output, and no engine's folder either."""
    from cbdp.counting import files

    def prepare() -> None:
        def hang(run: order.Run) -> None:
            with (
                run.interrupts.temporary(folder / f".release.{'0' * 16}.partial"),
                files.spill_folder() as place,
            ):
                (folder / "spilled").write_text(str(place))
                busy()

        order.rehearse = hang

    ended = signalled(folder, (0.1, signal.SIGTERM), prepare=prepare, after="at work")
    nothing_spent(folder, ended)
    assert not Path((folder / "spilled").read_text()).exists()


def test_a_temporary_folder_goes_when_its_removal_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the middle of tidying up leaves nothing behind."""
    remove = shutil.rmtree
    work = tmp_path / ".release.partial"
    calls: list[Path] = []

    def interrupted(path: Path, **options: bool) -> None:
        calls.append(path)
        if path == work and calls.count(work) == 1:
            raise KeyboardInterrupt
        remove(path, **options)

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt, match=STOPPED), Interrupts() as interrupts:  # noqa: SIM117
        with interrupts.temporary(work) as folder:
            (folder / "trips").write_text("1")
    assert work in calls
    assert not list(tmp_path.iterdir())


def test_what_is_promised_is_what_the_process_allows_itself() -> None:
    """The time to stop by itself and the time to tidy up are two seconds at most."""
    assert GRACE_SECONDS + TIDY_SECONDS <= PROMISED


def test_an_engine_may_answer_an_interruption_with_any_error(folder: Path) -> None:
    """It is the interruption that is told, not what it led to, and the run stops by itself."""

    def prepare() -> None:
        stopping.GRACE_SECONDS = 2 * PATIENCE  # nobody ends it

        def count(_: object) -> None:
            print("at work", file=sys.stderr, flush=True)
            try:
                time.sleep(60)
            except KeyboardInterrupt:
                raise InputError("the trips cannot be read") from None

        order.counted = count

    ended = signalled(folder, (0.1, signal.SIGINT), prepare=prepare, after="at work")
    nothing_spent(folder, ended)


@pytest.mark.slow
def test_after_the_charge_every_signal_waits(folder: Path) -> None:
    """However many come: each is answered with what is left to do, and the release is complete."""

    def prepare() -> None:
        measured = order.measured

        def slow(*given: Any) -> Any:
            answered(folder, 4)
            return measured(*given)

        order.measured = slow

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    ended = signalled(folder, *((0.05, n) for n in numbers), prepare=prepare, after="charged", notes=True)
    finished(folder, ended)
    assert ended.said.count("charged: finishing, 4 stages left; the release will be complete") == 4


def test_an_engine_may_have_taken_the_signals(folder: Path) -> None:
    """A handler that a library installs while it counts does not end a release that was paid for."""

    def prepare() -> None:
        rehearse, measured = order.rehearse, order.measured

        def taking(run: order.Run) -> None:
            rehearse(run)
            signal.signal(signal.SIGINT, signal.default_int_handler)

        def slow(*given: Any) -> Any:
            answered(folder, 1)
            return measured(*given)

        order.rehearse, order.measured = taking, slow

    ended = signalled(folder, (0.1, signal.SIGINT), prepare=prepare, after="charged")
    finished(folder, ended)
    assert NOTE in ended.said


@pytest.mark.parametrize("first", [True, False], ids=["just before", "just after"])
def test_at_the_moment_of_the_charge(folder: Path, first: bool) -> None:
    """The signal comes right before the point of no return, or between it and the charge: one or the other, never half."""

    def prepare() -> None:
        def after_a_signal(function: Callable[..., Any]) -> Callable[..., Any]:
            def inner(*given: Any, **options: Any) -> Any:
                os.kill(os.getpid(), signal.SIGTERM)
                return function(*given, **options)

            return inner

        if first:
            Interrupts.no_return = after_a_signal(Interrupts.no_return)
        else:
            Ledger.reserve = after_a_signal(Ledger.reserve)

    ended = signalled(folder, prepare=prepare)
    if first:
        nothing_spent(folder, ended)
    else:
        finished(folder, ended)


def test_what_was_asked_in_vain_is_asked_again_at_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interruption that some library swallowed is not forgotten: the point of no return raises it."""
    monkeypatch.setattr(
        stopping, "GRACE_SECONDS", PATIENCE
    )  # this process is not to be ended, however slow it is

    def run() -> None:
        with Interrupts() as interrupts:
            with contextlib.suppress(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(1)
            interrupts.no_return(1)

    with pytest.raises(KeyboardInterrupt, match="nothing was spent"):
        run()
    os.kill(os.getpid(), signal.SIGTERM)  # does not change any more how it ends
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    hear_again()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_library_leaves_signals_alone(folder: Path) -> None:
    """Only a command catches them, and only while it runs; a handler that ignores is left in place."""
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    seen = set()

    def say(_: str) -> None:
        seen.add(tuple(map(signal.getsignal, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))))
        seen.add(threading.active_count())

    publish(planned(folder), say, create_ledger=True)
    assert tuple(before) in seen
    assert len({s for s in seen if isinstance(s, tuple)}) == 1
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under nohup
    try:
        with Interrupts():
            assert signal.getsignal(signal.SIGINT) is not before[0]
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before[2])
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before
    assert signal.set_wakeup_fd(-1) == -1
