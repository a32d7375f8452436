"""One name for one thing, and nobody reaches for another module's private names."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from house.graph import ROOT, importable, modules, parsed
from house.measure import House

import cbdp


def test_no_two_public_classes_share_a_name(house: House) -> None:
    """Whoever reads a class's name knows which one is meant."""
    found = [f"\n  {name}: {', '.join(where)}" for name, where in house.collisions().items()]
    assert not found, f"rename all but one of each:{''.join(found)}"


def private_names(path: Path) -> list[str]:
    """Private names of our modules that a file imports, or uses as attributes of a module that it imported."""
    tree = parsed(path.read_text("utf-8"))
    ours: dict[str, str] = {}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            ours |= {a.asname or a.name: a.name for a in node.names if a.name.split(".")[0] in OURS}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OURS:
            ours |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
            found += [f"{node.module}.{a.name}:{node.lineno}" for a in node.names if _private(a.name)]
    known = {name for name, target in ours.items() if target in KNOWN}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _private(node.attr) and ast.unparse(node.value) in known:
            found.append(f"{ast.unparse(node)}:{node.lineno}")
    return found


OURS = ("cbdp", "cbdp_features", "cbdp_solvers", "benchmarks")
KNOWN = {
    *modules(ROOT),
    *map(importable, modules(ROOT)),
    *(".".join(p.relative_to(ROOT).with_suffix("").parts) for p in (ROOT / "benchmarks").rglob("*.py")),
}


def _private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def test_nobody_uses_private_names_of_another_module() -> None:
    """In the package and in the benchmarks, what a module needs of another one has a public name."""
    files = [*modules(ROOT).values(), *sorted((ROOT / "benchmarks").rglob("*.py"))]
    found = [f"{path.relative_to(ROOT)} uses {name}" for path in files for name in private_names(path)]
    assert not found, "".join(f"\n  {line}" for line in found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from cbdp_features.dag import _order", ["cbdp_features.dag._order:1"]),
        ("def f():\n    from cbdp_features.dag import _order as o", ["cbdp_features.dag._order:2"]),
        ("from cbdp_features import dag\ndag._order()", ["dag._order:2"]),
        ("import cbdp_features.dag\ncbdp_features.dag._order()", ["cbdp_features.dag._order:2"]),
        ("from cbdp import __version__\nfrom numpy import _core\nself._x = 1", []),
    ],
)
def test_private_names_are_found(text: str, found: list[str], tmp_path: Path) -> None:
    """Whichever way they are reached."""
    (tmp_path / "module.py").write_text(text)
    assert private_names(tmp_path / "module.py") == found


def test_every_public_name_exists() -> None:
    """What `__all__` promises can be had, and an unknown name is an AttributeError."""
    for name in cbdp.__all__:
        assert getattr(cbdp, name) is not None
    assert set(cbdp.__all__) <= set(dir(cbdp))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = cbdp.nonsense
