"""Loops are compiled before they are called, for the kinds of arguments that are stated, by several processes."""

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cbdp.compiling import help_prepare, prepare

LOOPS = """
from cbdp.compiling import compiled_ahead, kernel

@compiled_ahead("f8[::1], i8")
@kernel
def scale(values, factor):
    for u in range(len(values)):
        values[u] *= factor

@compiled_ahead("f8[::1]", "i8[::1]")
@kernel
def total(values):
    total = 0.0
    for u in range(len(values)):
        total += values[u]
    return total
"""

RELEASE = """
import cbdp
from cbdp.app.publish import loops_of
from cbdp.compiling import _stated_kernels, prepare

city = cbdp.datasets.ann_arbor(seed=0, hours=("08:00", "09:00"))
features = cbdp.features.odmts(city.universe)
mechanism = cbdp.ConstraintBased(features, epsilon=1)
prepare(loops_of(mechanism))
mechanism.simulate(city.trips, seed=0)
stated = {}
for one in _stated_kernels(loops_of(mechanism)):
    stated.setdefault(one.kernel, []).append(one.signature)
assert len(stated) > 30, len(stated)
beyond = {f"{k.__module__}.{k.__name__}": k.signatures for k, signatures in stated.items() if len(k.signatures) > len(signatures)}
assert not beyond, beyond
"""


def test_what_others_have_claimed_is_left_to_them_and_nothing_is_missing_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A helper compiles what nobody has claimed; `prepare` leaves no kernel without its stated kinds of arguments."""
    (tmp_path / "loops_to_compile.py").write_text(LOOPS)
    monkeypatch.syspath_prepend(tmp_path)
    loops = importlib.import_module("loops_to_compile")
    claims = tmp_path / "claims"
    claims.mkdir()
    (claims / "0").touch()
    help_prepare(str(claims), ["loops_to_compile"])
    assert not loops.scale.signatures
    assert len(loops.total.signatures) == 2
    prepare(["loops_to_compile"])
    assert len(loops.scale.signatures) == 1
    values = np.arange(3.0)
    loops.scale(values, 2)
    assert loops.total(values) == 6
    assert len(loops.scale.signatures) == 1, "the stated kinds of arguments are those it is called with"


@pytest.mark.parametrize("executable", ["python-that-is-not-there", "office", "", None])
def test_a_helper_that_cannot_start_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executable: str | None
) -> None:
    """Where no process can be started, and in a program that has Python inside, this one compiles all."""
    module = f"loops_without_{(executable or str(executable)).replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(LOOPS)
    office = tmp_path / "office"
    office.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    office.chmod(0o755)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "executable", executable and str(tmp_path / executable))
    loops = importlib.import_module(module)
    prepare([module])
    assert len(loops.scale.signatures) == 1
    assert not (tmp_path / "started").exists()


def test_a_helper_ends_with_the_process_that_asked_for_it(tmp_path: Path) -> None:
    """Nothing goes on compiling, and no folder is left, when a run is killed."""
    claims = tmp_path / "claims"
    claims.mkdir()
    code = f"import time, cbdp.compiling as c; c.end_with_parent({str(claims)!r}); print('ready', flush=True); time.sleep(300)"
    with subprocess.Popen(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{code}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as helper:
        assert helper.stdin
        assert helper.stdout
        assert helper.stdout.readline() == b"ready\n"
        assert claims.exists()
        helper.stdin.close()  # as the system does for a process that has ended
        assert helper.wait(timeout=60) == 0
    assert not claims.exists()


def test_a_release_calls_loops_with_the_stated_arguments_only() -> None:
    """Else a loop is compiled twice, and the first release on a machine takes longer."""
    ended = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{RELEASE}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
