"""Saving a release: all or nothing, never over anything, the same bytes everywhere."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from released import bytes_of, city_features, made_by, release_of, simulated_city

import cbdp
from cbdp.errors import InputError
from cbdp.release.files import leftovers, load
from cbdp_features.places import Stops


def test_a_seeded_release_is_refused_or_marked(tmp_path: Path) -> None:
    """A simulation is saved only when asked for, and its manifest says what it is."""
    seeded = made_by(cbdp.ConstraintBased(city_features(), 1), secure=False)
    with pytest.raises(InputError, match="simulation=True"):
        seeded.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    made = seeded.save(tmp_path / "out", simulation=True).manifest
    assert (made["status"], made["secure"]) == ("simulation, not a release", False)
    assert load(tmp_path / "out").secure is False


def test_a_folder_that_exists_is_never_touched(tmp_path: Path) -> None:
    """A file, a folder, an empty one and a dangling link are refused, and nothing is left behind."""
    release = release_of("laplace")
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    before = sorted(p.name for p in tmp_path.iterdir())
    for name in before:
        with pytest.raises(InputError, match="exists already"):
            release.save(tmp_path / name)
    with pytest.raises(InputError, match="no folder"):
        release.save(tmp_path / "none" / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_a_save_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """An error while files are written, after the first of them, removes them all."""
    wrong = Stops(("A",), (7,), np.zeros(1), np.zeros(1))  # type: ignore[arg-type]  # a name that is no text
    with pytest.raises(Exception, match="int"):
        replace(release_of("laplace"), places=wrong).save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_further_files_are_hashed_and_plainly_named(tmp_path: Path) -> None:
    """A report stands beside the tables, in the manifest too; names that lead elsewhere are refused."""
    release = release_of("laplace")
    saved = release.save(tmp_path / "out", extra={"report.html": "<p>ä</p>"})
    assert saved.manifest["files"]["report.html"]["sha256"] == hashlib.sha256("<p>ä</p>".encode()).hexdigest()
    load(tmp_path / "out")
    for name in ("manifest.json", "features", "../x", "a/b", ".x", "trips.parquet", "a\\b", ""):
        with pytest.raises(InputError, match="plain name"):
            release.save(tmp_path / "other", extra={name: b""})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]


SCRIPT = """
import sys
sys.path[:0] = ["tests"]
from released import simulated_city
simulated_city().save(sys.argv[1], simulation=True)
"""


ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_bytes_depend_on_nothing_but_the_release(tmp_path: Path) -> None:
    """Another process, another hash seed, another folder and time zone: the same bytes, and no word of any of them."""
    simulated_city().save(tmp_path / "here", simulation=True)
    zone = "UTC" if time.timezone == -9 * 3600 else "Asia/Tokyo"
    seed = "5" if os.environ.get("PYTHONHASHSEED") != "5" else "6"
    env = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone}
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path / "there")], check=True, cwd=ROOT, env=env)
    assert bytes_of(tmp_path / "here") == bytes_of(tmp_path / "there")
    for content in bytes_of(tmp_path / "here").values():
        assert str(tmp_path).encode() not in content
        assert os.uname().nodename.encode() not in content


KILLED = """
import itertools, sys, numpy as np, cbdp
universe = cbdp.Universe(a=range(100), b=range(100))
mechanism = cbdp.Laplace(cbdp.FeatureDag(universe, [cbdp.Feature("a", by="a")]), 1)
release = mechanism.simulate(np.ones(10_000, dtype=int), 3)
for n in itertools.count():
    release.save(f"{sys.argv[1]}/out{n}", simulation=True)
    print("saved", flush=True)
"""


@pytest.mark.slow
def test_a_killed_save_leaves_all_or_nothing(tmp_path: Path) -> None:
    """SIGKILL while saves follow each other: every folder is whole, and what was under way is known as leftovers."""
    for attempt in range(3):
        place = tmp_path / str(attempt)
        place.mkdir()
        command = [sys.executable, "-c", KILLED, str(place)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
            assert process.stdout is not None
            said_so = [process.stdout.readline() for _ in range(2 + attempt)]
            time.sleep(0.003 * attempt)
            process.send_signal(signal.SIGKILL)
            said_so += process.stdout.readlines()
        whole = [p for p in place.iterdir() if not p.name.startswith(".")]
        assert len(whole) >= len(said_so)
        assert all(load(folder).total > 0 for folder in whole)
        broken = [p for p in place.iterdir() if p.name.startswith(".")]
        assert len(broken) <= 1
        assert broken == leftovers(place / f"out{len(whole)}")


UNDER_WAY = """
import sys
from pathlib import Path
from cbdp import machine
with machine.locked_folder(Path(sys.argv[1]) / machine.partial_name(sys.argv[2])) as work:
    (work / "trips.parquet").write_bytes(b"x")
    print(work, flush=True)
    sys.stdin.read()
"""


def _under_way(place: Path, name: str) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", UNDER_WAY, str(place), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_the_next_save_sweeps_what_killed_ones_left_and_nothing_else(tmp_path: Path) -> None:
    """Folders of dead processes go, whatever release they were for; those of the living, of other computers and of others stay."""
    release = release_of("laplace")
    living, kept = _under_way(tmp_path, "out")
    killed, left = _under_way(tmp_path, "another")
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    pid, given_out_again = (
        str(killed.pid),
        tmp_path / left.name.replace(f"-{killed.pid}-", f"-{os.getpid()}-"),
    )
    given_out_again.mkdir()  # a process id that somebody else has now: nobody holds the lock
    others = [
        tmp_path / name
        for name in (
            left.name.replace(left.name.split(".")[2].split("-")[0], "0" * 8),  # of another computer
            f".out.{'0' * 16}.partial",  # of version 0.2, which may still be at work
            ".out.partial",
            f"x{left.name}",
            f"{left.name}.new".replace(f"-{pid}-", f"-{living.pid}-"),  # about to be locked
        )
    ]
    for folder in others:
        folder.mkdir()
    precious = tmp_path / "precious"
    precious.mkdir()
    link = tmp_path / left.name.replace(f"-{pid}-", "-999999999-")
    link.symlink_to(precious)
    assert leftovers(tmp_path / "another") == sorted([left, given_out_again])
    assert leftovers(tmp_path / "out") == []
    release.save(tmp_path / "out", simulation=True)
    assert not left.exists()
    assert not given_out_again.exists()
    assert kept.is_dir()
    assert (link.is_symlink(), precious.is_dir(), all(f.is_dir() for f in others)) == (True, True, True)
    for folder in others[:2]:  # after a day nobody is at work in them
        os.utime(folder, (1e9, 1e9))
    assert leftovers(tmp_path / "out") == [others[1]]
    living.communicate()
    assert not kept.exists()
    release.save(tmp_path / "out2", simulation=True)
    assert not others[0].exists()
    assert not others[1].exists()
