"""How the house stands: modules and lines in each folder, the longest modules and functions, names that are used twice.

`make house` prints it; `PYTHONPATH=tests python -m house.measure --old PATH` prints another tree first, to compare.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from house.graph import ROOT, modules

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Long:
    """Something with a length: a module, or a function with the line where it starts."""

    lines: int
    name: str


@dataclass(frozen=True)
class House:
    """The sources of the package below a root, parsed."""

    files: dict[str, Path]
    texts: dict[str, str]
    trees: dict[str, ast.Module]

    @classmethod
    def at(cls, root: Path = ROOT) -> House:
        files = modules(root)
        texts = {name: path.read_text("utf-8") for name, path in files.items()}
        return cls(files, texts, {name: ast.parse(text) for name, text in texts.items()})

    def folder(self, module: str) -> str:
        """The folder that a module's file is in, dotted: a package is in its own folder."""
        return module if self.files[module].name == "__init__.py" else module.rpartition(".")[0]

    def modules(self) -> list[Long]:
        """Every module, the longest first."""
        return _longest(Long(len(text.splitlines()), name) for name, text in self.texts.items())

    def functions(self) -> list[Long]:
        """Every function that Python runs, the longest first: compiled kernels are left out."""
        return _longest(
            Long(_lines(node), f"{module}:{node.lineno} {node.name}")
            for module, tree in self.trees.items()
            for node in _interpreted(tree)
        )

    def collisions(self) -> dict[str, list[str]]:
        """Names that two or more public classes share, and the modules that define them."""
        homes: dict[str, list[str]] = {}
        for module, tree in self.trees.items():
            for node in tree.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes.setdefault(node.name, []).append(module)
        return {name: where for name, where in sorted(homes.items()) if len(where) > 1}


def _longest(found: Iterator[Long]) -> list[Long]:
    return sorted(found, key=lambda long: (-long.lines, long.name))


def _lines(node: Function) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _interpreted(tree: ast.AST) -> Iterator[Function]:
    """Functions and methods, nested ones too, but for those that numba compiles and what is inside them."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            if any("njit" in ast.unparse(d) for d in node.decorator_list):
                continue
            yield node
        yield from _interpreted(node)


def report(house: House) -> str:
    """Everything above as a page of text."""
    count = Counter(house.folder(m) for m in house.files)
    lines = Counter(dict.fromkeys(count, 0))
    for module, text in house.texts.items():
        lines[house.folder(module)] += len(text.splitlines())
    table = [
        f"  {folder.replace('.', '/') + '/':32}{count[folder]:8}{lines[folder]:8}" for folder in sorted(count)
    ]
    collisions = [f"  {name}: {', '.join(where)}" for name, where in house.collisions().items()]
    return "\n".join(
        [
            f"  {'folder':32}{'modules':>8}{'lines':>8}",
            *table,
            f"  {'all':32}{count.total():8}{lines.total():8}",
            "",
            "longest modules",
            *_told(house.modules()[:10]),
            "",
            "longest functions (compiled kernels left out)",
            *_told(house.functions()[:10]),
            "",
            "public classes of the same name",
            *(collisions or ["  none"]),
        ]
    )


def _told(longs: list[Long]) -> list[str]:
    return [f"{long.lines:6}  {long.name}" for long in longs]


def main() -> None:
    parser = argparse.ArgumentParser(description="Modules, lines, lengths and names of the package.")
    parser.add_argument("--old", type=Path, metavar="PATH", help="another tree, printed first")
    old = parser.parse_args().old
    if old:
        print(f"before: {old}\n{report(House.at(old))}\n\nnow:")
    print(report(House.at()))


if __name__ == "__main__":
    main()
