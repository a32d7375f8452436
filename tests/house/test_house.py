"""The house rules: who may import whom, and what loading the package costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import cbdp

ROOT = Path(__file__).parents[2]
BASE = {
    "cbdp.errors",
    "cbdp.solvers.problem",
    "cbdp.solvers.solution",
    "cbdp.solvers.passes",
    "cbdp.privacy.measurement",
}
HEAVY = ["osqp", "cvxpy", "piqp", "highspy", "duckdb", "matplotlib", "numba", "scipy", "pyarrow", "opendp"]


def _modules() -> dict[str, Path]:
    """Module names of the package, found through the links."""
    found = {}
    for folder in (ROOT / "cbdp", ROOT / "cbdp" / "features", ROOT / "cbdp" / "solvers"):
        for path in sorted(folder.rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            found[name] = path
    return found


def _imports(path: Path) -> set[str]:
    """Our own modules that a file imports, wherever in it, type checking aside."""
    tree = ast.parse(path.read_text())
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    names: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            names |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{a.name}" for a in node.names}
    known = set(_modules())
    return {n for n in names if n in known and n != "cbdp"}


@pytest.mark.parametrize("module", sorted(_modules()))
def test_import_rule(module: str) -> None:
    """Base modules import only each other's errors; features and solvers only the base and themselves."""
    imported = _imports(_modules()[module])
    if module in BASE:
        allowed = {"cbdp.errors", "cbdp.solvers.passes"}
    elif module.startswith("cbdp.features"):
        allowed = BASE | {m for m in _modules() if m.startswith("cbdp.features")}
    elif module.startswith("cbdp.solvers"):
        allowed = BASE | {m for m in _modules() if m.startswith("cbdp.solvers")}
    else:
        return
    assert imported <= allowed, f"{module} may not import {sorted(imported - allowed)}"


@pytest.mark.parametrize("module", sorted(_modules()))
def test_nothing_right_of_the_wall_imports_what_is_left_of_it(module: str) -> None:
    """Post-processing never sees a module that touches private data."""
    # cbdp.estimate.intervals runs a mechanism again, with published counts in the place of private ones
    right = {
        "cbdp.estimate.compiler",
        "cbdp.estimate.engine",
        "cbdp.rounding.nearest",
        "cbdp.release.release",
        *BASE,
    }
    left = {
        "cbdp.trips.count",
        "cbdp.measuring.noise",
        "cbdp.measuring.dense",
        "cbdp.measuring.sparse",
        "cbdp.mechanisms",
        "cbdp.app.publish",
        "cbdp.trips.sources",
    }
    if module in right or module.startswith(("cbdp.features", "cbdp.solvers")):
        assert not _imports(_modules()[module]) & left


def test_benchmarks_and_command_line_use_only_the_public_api() -> None:
    """Neither reaches for a private name."""
    for path in [*(ROOT / "benchmarks").glob("*.py"), ROOT / "cbdp" / "cli.py"]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cbdp"):
                private = [a.name for a in node.names if a.name.startswith("_") and a.name != "__version__"]
                assert not private, f"{path.name} imports {private}"


@pytest.mark.parametrize("code", ["import cbdp", "import cbdp.app.cli; cbdp.app.cli._parser().format_help()"])
def test_loading_is_light(code: str) -> None:
    """Importing the package, or asking for help, loads no solver, no compiler, no data engine and no plotting."""
    script = f"import sys; {code}; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_post_process_loads_no_optional_solver() -> None:
    """The default path needs none of the generic backends."""
    script = (
        "import sys, cbdp; dag = cbdp.FeatureDag(cbdp.Universe(a=['x', 'y']), []);"
        "cbdp.post_process(dag, {'singleton': [1, 2], 'total': [3]});"
        "print([m for m in ['osqp', 'cvxpy', 'piqp', 'highspy', 'duckdb', 'matplotlib'] if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_exists() -> None:
    """What `__all__` promises can be had, and an unknown name is an AttributeError."""
    for name in cbdp.__all__:
        assert getattr(cbdp, name) is not None
    assert set(cbdp.__all__) <= set(dir(cbdp))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = cbdp.nonsense


def test_links_are_relative_and_lead_to_the_real_folders() -> None:
    """`cbdp/features` and `cbdp/solvers` are committed as relative links."""
    for name in ("features", "solvers"):
        link = ROOT / "cbdp" / name
        assert link.is_symlink()
        assert str(link.readlink()) == f"../{name}"
