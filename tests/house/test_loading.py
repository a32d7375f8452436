"""What loading the package costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = [
    "osqp",
    "cvxpy",
    "piqp",
    "highspy",
    "duckdb",
    "matplotlib",
    "numba",
    "scipy",
    "pyarrow",
    "opendp",
    "rich",
]


@pytest.mark.parametrize("code", ["import cbdp", "import cbdp.app.cli; cbdp.app.cli.main([])"])
def test_loading_is_light(code: str) -> None:
    """Importing the package, or asking for help, loads no solver, no compiler, no data engine and no plotting."""
    script = f"import sys; {code}; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_post_process_loads_no_optional_solver() -> None:
    """The default path needs none of the generic backends."""
    script = (
        "import sys, cbdp; dag = cbdp.FeatureDag(cbdp.Universe(a=['x', 'y']), []);"
        "cbdp.post_process(dag, {'singleton': [1, 2], 'total': [3]});"
        "print([m for m in ['osqp', 'cvxpy', 'piqp', 'highspy', 'duckdb', 'matplotlib'] if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
