"""Folders are the wall: from a file's folder one knows whether it may see a trip."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from house.graph import (
    ON_THE_WALL,
    PRIVATE,
    ROOT,
    Graph,
    build,
    cycle,
    importable,
    leaks,
    misplaced,
    place,
    right_of_the_wall,
    upward,
)

# Who right of the wall may import by a name that only running the module tells, and why this hides nothing.
COMPUTED = {
    "cbdp.lazy": "reads a table of lazy names; the texts in that table count as imports",
    "cbdp.parts": "reads a table of parts, whose texts count, and the entry points of other packages",
    "cbdp.release.export": "reads its table of formats, whose texts count",
    "cbdp.release.export.base": "loads libraries of others, if they are installed",
    "cbdp.transit.plugins": "loads plug-ins of others",
}


def test_every_module_stands_in_a_known_folder(graph: Graph) -> None:
    """Whoever adds a folder says on which side of the wall it stands."""
    assert not misplaced(graph), _lines(misplaced(graph))


def test_no_chain_of_imports_leads_from_right_of_the_wall_to_a_trip(graph: Graph) -> None:
    """Post-processing reaches neither a private folder nor what stands on the wall, lazily or for types only."""
    assert not leaks(graph), _lines(leaks(graph))


def test_folders_import_only_what_the_layout_allows(graph: Graph) -> None:
    """The facts import nothing but themselves, and everybody else only what comes before."""
    assert not upward(graph), _lines(upward(graph))


def test_folders_make_no_cycle(graph: Graph) -> None:
    """The graph of folders can be drawn from top to bottom."""
    places = graph.places()
    found = cycle(places)
    steps = [places[a][b][0] for a, b in pairwise(found)]
    assert not found, f"{' → '.join(found)}:{_lines(steps)}"


def test_no_import_hides_behind_a_computed_name(graph: Graph) -> None:
    """An import by a name that is put together cannot be followed, so right of the wall few may do it."""
    hidden = {m: n for m, n in graph.computed.items() if right_of_the_wall(m) and m not in COMPUTED}
    assert not hidden, (
        f"give import_module a literal name, or explain in COMPUTED why it hides nothing: {hidden}"
    )


def test_running_the_right_side_loads_nothing_private(graph: Graph) -> None:
    """The interpreter agrees with the graph: importing every module right of the wall loads no other one."""
    names = sorted(importable(m) for m in graph.imports if right_of_the_wall(m))
    closed = tuple(f"cbdp.{folder}" for folder in (*PRIVATE, *ON_THE_WALL))
    script = (
        f"import importlib, sys\nfor name in {names!r}:\n    importlib.import_module(name)\n"
        f"print([m for m in sys.modules if m.startswith({closed!r})])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


def _lines(found: list[str]) -> str:
    return "".join(f"\n  {line}" for line in found)


# --- mutants: each plants one forbidden thing into a copy of the package ------------------------------------------------

Mutant = Callable[[Path], None]


def _append(path: Path, text: str) -> None:
    path.write_text(path.read_text("utf-8") + text, "utf-8")


def _two_hops(package: Path) -> None:
    """An estimator imports a new module of features, which imports another, which imports trips."""
    _append(package / "estimation" / "compiler.py", "\nimport cbdp_features.one_hop\n")
    (package.parent / "features" / "cbdp_features" / "one_hop.py").write_text(
        "from cbdp_solvers import two_hops\n"
    )
    (package.parent / "solvers" / "cbdp_solvers" / "two_hops.py").write_text(
        "from cbdp.counting import Counts\n"
    )


def _in_a_package(package: Path) -> None:
    """What a module's package imports runs before the module itself."""
    fresh = package / "estimation" / "fresh"
    fresh.mkdir()
    (fresh / "__init__.py").write_text("from cbdp.counting import Counts\n")
    (fresh / "inner.py").write_text("")
    _append(package / "estimation" / "compiler.py", "\nimport cbdp.estimation.fresh.inner\n")


def _planted(text: str) -> Mutant:
    return lambda package: _append(package / "estimation" / "compiler.py", text)


LEAKING: dict[str, Mutant] = {
    "through two hops": _two_hops,
    "at the top": _planted("\nfrom cbdp.counting.counts import Counts\n"),
    "lazily in a function": _planted(
        "\ndef peek():\n    from cbdp.counting import count\n    return count\n"
    ),
    "in a method of a nested class": _planted(
        "\nclass A:\n    class B:\n        def c(self):\n            import cbdp.measuring.answers as d\n            return d\n"
    ),
    "for types only": _planted("\nif TYPE_CHECKING:\n    from cbdp.counting import Counts\n"),
    "by import_module": _planted("\nimport importlib\nimportlib.import_module('cbdp.counting')\n"),
    "by __import__": _planted("\n__import__('cbdp.counting')\n"),
    "by a relative import": _planted("\nfrom ..counting import count\n"),
    "by a relative import_module": _planted("\nimport_module('..counting', __package__)\n"),
    "by a public name": _planted("\nfrom cbdp import measure\n"),
    "by an attribute of the package": _planted(
        "\nimport cbdp\ndef peek(rows):\n    return cbdp.count(rows)\n"
    ),
    "by an attribute under another name": _planted("\nimport cbdp as c\ny = c.counting.counts.Counts\n"),
    "by everything": _planted("\nfrom cbdp import *\n"),
    "by a lazy table": _planted(
        "\n__getattr__, __dir__ = lazily(__name__, {'Counts': 'cbdp.counting.counts'})\n"
    ),
    "by a table of parts": _planted("\nP = Parts('kind', 'g', {'x': 'cbdp.counting.counts:Counts'}, fits)\n"),
    "by what stands on the wall": _planted("\ndef again():\n    from cbdp.mechanisms import Laplace\n"),
    "by the command line": _planted("\nfrom cbdp import __main__\n"),
    "by the foundation": lambda package: _append(
        package / "errors.py", "\ndef f():\n    import cbdp.datasets\n"
    ),
    "by the head of a package": _in_a_package,
}


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The package's sources, to be spoiled."""
    for name in ("features", "solvers", "cbdp"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "cbdp"


@pytest.mark.parametrize("name", LEAKING)
def test_a_planted_leak_is_found(name: str, graph: Graph, copied: Path) -> None:
    """Whichever way an estimator reaches for a trip, the chain is printed."""
    LEAKING[name](copied)
    new = set(leaks(build(copied.parent))) - set(leaks(graph))
    start = "cbdp.errors:" if name == "by the foundation" else "cbdp.estimation.compiler:"
    chains = [line for line in new if line.startswith(start)]
    assert chains, f"no chain among {new}"
    assert place(chains[0].split(" → ")[-1]) in (*PRIVATE, *ON_THE_WALL, "__main__")


def test_a_chain_names_every_module_on_the_way(copied: Path) -> None:
    """What is printed leads whoever mends it from the estimator to the trips."""
    _two_hops(copied)
    (chain,) = [c for c in leaks(build(copied.parent)) if c.startswith("cbdp.estimation.compiler:")]
    assert [step.partition(":")[0] for step in chain.split(" → ")] == [
        "cbdp.estimation.compiler",
        "cbdp.features.one_hop",
        "cbdp.solvers.two_hops",
        "cbdp.counting",
    ]


def test_a_chain_through_new_modules_breaks_the_order_of_folders_too(copied: Path) -> None:
    """Features may not import solvers, nor solvers trips."""
    _two_hops(copied)
    text = _lines(upward(build(copied.parent)))
    assert "cbdp.features.one_hop:1 → cbdp.solvers.two_hops" in text
    assert "cbdp.solvers.two_hops:1 → cbdp.counting" in text


@pytest.mark.parametrize("where", ["helpers/__init__.py", "helpers/deep/tools.py", "stray.py"])
def test_a_module_in_no_known_folder_is_found(where: str, copied: Path) -> None:
    """A new folder, and a new module beside the folders, must be placed before the suite passes."""
    (copied / where).parent.mkdir(parents=True, exist_ok=True)
    (copied / where).write_text("")
    name = ".".join(["cbdp", *Path(where).with_suffix("").parts]).removesuffix(".__init__")
    (told,) = [line for line in misplaced(build(copied.parent)) if line.startswith(f"{name} ")]
    assert "MAY_IMPORT" in told


def test_a_planted_cycle_is_found(copied: Path) -> None:
    """Two folders that import each other, one of them for types only."""
    _append(
        copied.parent / "features" / "cbdp_features" / "universe.py",
        "\nif TYPE_CHECKING:\n    import cbdp.privacy.unit\n",
    )
    _append(copied / "privacy" / "unit.py", "\nimport cbdp_features.universe\n")
    places = build(copied.parent).places()
    found = cycle(
        {a: [b for b in places[a] if b in ("features", "privacy")] for a in ("features", "privacy")}
    )
    assert set(found) == {"features", "privacy"}


def test_a_computed_import_is_found(copied: Path) -> None:
    """A name that is put together at run time is no way round."""
    _planted("\nimport_module(f'cbdp.{side}')\n")(copied)
    assert "cbdp.estimation.compiler" in build(copied.parent).computed
