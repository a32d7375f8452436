"""Killed at any instant: never noise without a charge, never half a release, and the next run ends it."""

from __future__ import annotations

import inspect
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from publishing import entries, events, planned, warm

from cbdp.app import publish as publishing_package
from cbdp.app.publish import publish
from cbdp.counting.counts import Counts
from cbdp.errors import InputError
from cbdp.ledger import Ledger
from cbdp.machine import partial_name
from cbdp.mechanisms.base import Mechanism
from cbdp.release.files import leftovers, load, save

KILLS = int(os.environ.get("CBDP_KILLS", "8"))  # 200 for the long run
# where a run may die: the modules that publish and save, and every module of the ledger
WATCHED = (
    str(Path(inspect.getfile(publishing_package)).parent) + os.sep,
    inspect.getfile(save),
    str(Path(inspect.getfile(Ledger)).parent) + os.sep,
)


def run_and_die(folder: Path, at: int | None) -> int:
    """Publish in a child that kills itself after so many lines of the watched modules; lines run if it survived."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child:
        os.close(write_end)
        with os.fdopen(read_end) as pipe:
            lines = pipe.read()
        os.waitpid(child, 0)
        return int(lines or -1)
    lines = itertools.count(1)
    seen = [0]
    watched: dict[str, bool] = {}  # by file, so that each of the many calls elsewhere costs a look-up

    def trace(frame, event, _):
        file = frame.f_code.co_filename
        if file not in watched:
            watched[file] = file.startswith(WATCHED)
        if not watched[file]:
            return None
        if event == "line":
            seen[0] = next(lines)
            if seen[0] == at:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    draw = Mechanism.release

    def noted(self, *args, **kwargs):
        with (folder / "draws").open("a") as out:
            out.write("noise\n")
            out.flush()
            os.fsync(out.fileno())
        return draw(self, *args, **kwargs)

    Mechanism.release = noted  # type: ignore[method-assign]
    code = 1
    try:
        sys.settrace(trace)
        publish(planned(folder), create_ledger=True)
        sys.settrace(None)
        os.write(write_end, str(seen[0]).encode())
        code = 0
    finally:
        os._exit(code)


def draws(folder: Path) -> int:
    return (folder / "draws").read_text().count("noise") if (folder / "draws").exists() else 0


@pytest.mark.slow
@pytest.mark.forks
@pytest.mark.timeout(240 + 20 * KILLS)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_killed_at_any_instant(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Never noise without a charge, never two releases for one, never half a release; the next run ends it."""
    warm(tmp_path_factory.mktemp("warm"))
    lines = run_and_die(folder, None)
    assert lines > 200
    assert draws(folder) == 1
    rng = random.Random(7)
    for kill in range(KILLS):
        for name in ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm", "draws"):
            (folder / name).unlink(missing_ok=True)
        shutil.rmtree(folder / "release", ignore_errors=True)
        at = rng.randrange(1, lines) if kill else lines - 1
        deaths = 1 + (kill % 3 == 0)  # sometimes the next run dies too
        for _ in range(deaths):
            run_and_die(folder, at)
            assert draws(folder) <= events(folder).count("reserved")
            if (folder / "release").exists():
                load(folder / "release")  # whole, its hashes right
        run_and_die(folder, None)
        told = events(folder)
        assert told.count("released") == 1, (at, told)
        assert told.count("reserved") <= deaths + 1
        assert draws(folder) <= told.count("reserved")
        head = load(folder / "release").manifest["ledger"]["head"]
        with Ledger.view(folder / "ledger.sqlite") as ledger:
            assert ledger.contains(head)
        assert not leftovers(folder / "release")


@pytest.mark.slow
def test_killed_from_outside(folder: Path) -> None:
    """The command itself, killed at the start, and a moment after it said a few things; then run to its end."""
    command = [sys.executable, "-m", "cbdp", "release", str(folder / "cbdp.toml"), "--create-ledger"]
    for said in (0, 1, 6):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            for _ in range(said):
                process.stderr.readline()  # type: ignore[union-attr]
            time.sleep(0.02 * said)
            process.kill()
        entries(folder)
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert events(folder).count("released") == 1
    load(folder / "release")


def test_what_a_run_left_that_died_before_its_ledger_is_swept_at_the_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was killed while it rehearsed, with no ledger yet: its folder is gone before the next run counts a trip."""
    left = folder / partial_name("release").replace(
        f"-{os.getpid()}-", "-4194305-"
    )  # no process has this number
    left.mkdir()

    def counted(_: publishing_package.Run) -> Counts:
        raise InputError("left" if left.exists() else "swept")

    monkeypatch.setattr(publishing_package, "counted", counted)
    with pytest.raises(InputError, match="swept"):
        publish(planned(folder), create_ledger=True)
