"""What does not fit in memory goes to a private folder that is gone afterwards, in any case."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cbdp
from cbdp.counting.engines.duckdb import DuckSource
from cbdp.counting.files import remove_stale_folders, spill_folder
from cbdp.errors import InputError
from cbdp.machine import SPILL_PREFIX

ROOT = Path(__file__).parents[2]


def _look(folder: Path) -> tuple[bool, int]:
    """Whether the folders in it are private, and how much lies there."""
    private = [f.stat().st_mode & 0o77 == 0 for f in folder.iterdir()]
    return bool(private) and all(private), sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())


@pytest.mark.slow
@pytest.mark.parametrize("most", [3, 10**6])
def test_what_does_not_fit_is_spilled_and_removed(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With little memory the engine works on disk, the counts are right and its private folder is gone."""
    monkeypatch.setenv("CBDP_MEMORY_MB", "40")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    n = 1_000_000
    rng = np.random.default_rng(4)
    table = pa.table({"stop": rng.integers(0, 51, n), "card": rng.integers(0, 10**12, n)})
    dealt, seen = DuckSource._dealt, []

    def watched(self: DuckSource, *given: Any) -> Any:
        made = dealt(self, *given)
        seen.append(_look(tmp_path))  # now the rows are there, for each turn to read its own
        return made

    monkeypatch.setattr(DuckSource, "_dealt", watched)
    counts = cbdp.count(table, cbdp.Universe(stop=list(range(50))), unit=cbdp.Person("card", most))
    assert counts.value.tolist() == np.bincount(table["stop"].to_numpy(), minlength=51)[:50].tolist()
    assert max(size for _, size in seen) > 10**6
    assert all(private for private, _ in seen)
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that can neither hold nor spill says so, in our words, and leaves nothing."""
    monkeypatch.setenv("CBDP_MEMORY_MB", "10")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    n = 1_000_000
    table = pa.table(
        {"stop": np.zeros(n, dtype=np.int64), "card": np.random.default_rng(5).integers(0, 10**12, n)}
    )
    with pytest.raises(InputError, match="counting needs more than the 10 MB of memory"):
        cbdp.count(table, cbdp.Universe(stop=[0]), unit=cbdp.Person("card", 1))
    assert list(tmp_path.iterdir()) == []


SCRIPT = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from cbdp.counting.files import spill_folder
with spill_folder() as folder:
    (folder / "private").write_text("x")
    print(folder, flush=True)
    sys.stdin.read()
"""


def _other(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    made = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert made.stdout is not None
    return made, Path(made.stdout.readline().strip())


def test_what_a_killed_process_left_is_swept_and_the_living_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process's folder stays while it lives, and goes when the next count begins after it was killed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    process, left = _other(tmp_path)
    assert str(process.pid) in left.name
    with spill_folder() as own:
        assert left.is_dir()
        remove_stale_folders()
        assert own.is_dir()
        assert left.is_dir()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert (left / "private").is_file()
        remove_stale_folders()
        assert not left.exists()
        assert own.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_nothing_of_others_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link by our name is not followed, and other folders are not ours."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    precious = tmp_path / "precious"
    precious.mkdir()
    (tmp_path / f"{SPILL_PREFIX}999999999-link").symlink_to(precious)
    (tmp_path / "cbdp-else").mkdir()
    (tmp_path / f"{SPILL_PREFIX}{os.getpid()}-own").mkdir()
    remove_stale_folders()
    assert len(list(tmp_path.iterdir())) == 4
