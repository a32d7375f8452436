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


def test_a_helper_that_cannot_start_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no process can be started, this one compiles all."""
    (tmp_path / "loops_without_help.py").write_text(LOOPS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    loops = importlib.import_module("loops_without_help")
    prepare(["loops_without_help"])
    assert len(loops.scale.signatures) == 1


def test_a_release_calls_loops_with_the_stated_arguments_only() -> None:
    """Else a loop is compiled twice, and the first release on a machine takes longer."""
    ended = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{RELEASE}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
