"""How the house stands: modules and lines in each folder, the longest modules and functions, names that are used twice, and how far a
reader has to go: modules that one other imports, vague names, lines with `Any`, lines on the wall, modules within two calls of a command.

`make house` prints it; `PYTHONPATH=tests python -m house.measure --old PATH` prints another tree first, to compare.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from house.graph import ON_THE_WALL, ROOT, build, canonical, modules, parsed, place

Function = ast.FunctionDef | ast.AsyncFunctionDef

# Names that say that something was made or found, and not what it is.
VAGUE_NAMES = frozenset({"found", "given", "held", "known", "made", "own", "said", "told", "wanted"})
# Functions that a user's command calls first: (module prefix, function).
ENTRY_POINTS = {
    "publish": ("cbdp.app.publish", "publish"),
    "plan": ("cbdp.app.plan", "plan"),
    "ask": ("cbdp.release.ask", "ask"),
    "save": ("cbdp.release.files", "save"),
    "run_series": ("cbdp.app.series", "run_series"),
    "audit": ("cbdp.app.audit", "audit_release"),
    "report": ("cbdp.report.page", "build"),
}


@dataclass(frozen=True)
class Long:
    """Something with a length: a module, or a function with the line where it starts."""

    lines: int
    name: str


@dataclass(frozen=True, eq=False)
class House:
    """The sources of the package below a root, parsed."""

    root: Path
    files: dict[str, Path]
    texts: dict[str, str]
    trees: dict[str, ast.Module]

    @classmethod
    def at(cls, root: Path = ROOT) -> House:
        files = modules(root)
        texts = {name: path.read_text("utf-8") for name, path in files.items()}
        return cls(root, files, texts, {name: parsed(text) for name, text in texts.items()})

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

    @cached_property
    def single_importers(self) -> list[str]:
        """Modules that exactly one other module imports; packages and what only users or commands load aside."""
        graph = build(self.root)
        importers = Counter(
            target for module, targets in graph.imports.items() for target in targets if target != module
        )
        return sorted(m for m, path in self.files.items() if importers[m] == 1 and path.name != "__init__.py")

    @cached_property
    def vague_functions(self) -> tuple[int, int]:
        """How many functions bind a name of `VAGUE_NAMES`, as a variable or as a parameter, and how many there are."""
        functions = [n for tree in self.trees.values() for n in ast.walk(tree) if isinstance(n, Function)]
        return sum(not VAGUE_NAMES.isdisjoint(_bound(function)) for function in functions), len(functions)

    def lines_with_any(self) -> int:
        """Lines on which the type `Any` stands, imports of it aside."""
        return sum(
            bool(re.search(r"\bAny\b", line)) and "import" not in line
            for text in self.texts.values()
            for line in text.splitlines()
        )

    def comments(self) -> float:
        """Full-line comments for each 1,000 lines."""
        lines = [line.lstrip() for text in self.texts.values() for line in text.splitlines()]
        return 1000 * sum(line.startswith("#") for line in lines) / len(lines)

    def lines_on_the_wall(self) -> int:
        """Lines of folders that may import both sides; made-up data aside."""
        walls = set(ON_THE_WALL) - {"datasets"}
        return sum(len(text.splitlines()) for module, text in self.texts.items() if place(module) in walls)

    def reached(self, prefix: str, function: str) -> set[str]:
        """Modules of ours in which the functions and classes live that a function calls, and those that these call."""
        starts = {
            (m, function)
            for m, names in self._definitions.items()
            if m.startswith(prefix) and function in names
        }
        first = {target for start in starts for target in self._called(*start)}
        second = {target for found in first for target in self._called(*found)}
        return {module for module, _ in starts | first | second}

    @cached_property
    def _definitions(self) -> dict[str, dict[str, ast.AST]]:
        """Functions and classes at the top of each module."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return {m: {n.name: n for n in tree.body if isinstance(n, kinds)} for m, tree in self.trees.items()}

    @cached_property
    def _names(self) -> dict[str, dict[str, tuple[str, str]]]:
        """Which function or class of which module of ours each name of a module means, re-exports followed."""
        imported: dict[str, dict[str, tuple[str, str]]] = {}
        for module, tree in self.trees.items():
            here = {name: (module, name) for name in self._definitions[module]}
            for node in ast.walk(tree):
                if (
                    isinstance(node, ast.ImportFrom)
                    and not node.level
                    and (node.module or "").startswith("cbdp")
                ):
                    module_name = canonical(str(node.module))
                    here |= {a.asname or a.name: (module_name, a.name) for a in node.names}
            imported[module] = here
        return imported

    def _home(self, module: str, name: str) -> tuple[str, str] | None:
        for _ in range(5):  # a name that folders pass on
            if name in self._definitions.get(module, {}):
                return module, name
            target = self._names.get(module, {}).get(name)
            if target is None or target == (module, name):
                return None
            module, name = target
        return None

    def _called(self, module: str, name: str) -> set[tuple[str, str]]:
        calls = [n.func for n in ast.walk(self._definitions[module][name]) if isinstance(n, ast.Call)]
        called = {(module, f.id) for f in calls if isinstance(f, ast.Name)}
        for f in calls:  # functions of a module that was imported as such: `book.check(…)`
            if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name):
                parent, there = self._names[module].get(f.value.id, ("", ""))
                called.add((f"{parent}.{there}", f.attr))
        return {home for each in called if (home := self._home(*each))}

    def collisions(self) -> dict[str, list[str]]:
        """Names that two or more public classes share, and the modules that define them."""
        homes: dict[str, list[str]] = {}
        for module, tree in self.trees.items():
            for node in tree.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes.setdefault(node.name, []).append(module)
        return {name: where for name, where in sorted(homes.items()) if len(where) > 1}


def _bound(function: Function) -> set[str]:
    """Names of variables and parameters of a function."""
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    stored = (n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return {a.arg for a in arguments} | set(stored)


def _longest(found: Iterator[Long]) -> list[Long]:
    return sorted(found, key=lambda long: (-long.lines, long.name))


def _lines(node: Function) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


# decorators of `cbdp.compiling`, and what is beneath them
COMPILED = re.compile(r"njit|^(fast_)?kernel$|^inlined$")


def _interpreted(tree: ast.AST) -> Iterator[Function]:
    """Functions and methods, nested ones too, but for those that numba compiles and what is inside them."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            if any(COMPILED.search(ast.unparse(d)) for d in node.decorator_list):
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
            "",
            "how far a reader has to go",
            *_distances(house),
        ]
    )


def _distances(house: House) -> list[str]:
    vague, functions = house.vague_functions
    figures = {
        "modules": str(len(house.files)),
        "lines": str(sum(len(text.splitlines()) for text in house.texts.values())),
        "modules that one other imports": str(len(house.single_importers)),
        f"functions with a name of {', '.join(sorted(VAGUE_NAMES))}": f"{vague} of {functions} ({vague / functions:.1%})",
        "lines on the wall": str(house.lines_on_the_wall()),
        "lines with Any": str(house.lines_with_any()),
        "full-line comments per 1,000 lines": f"{house.comments():.1f}",
    }
    figures |= {
        f"modules within two calls of {name}": str(len(house.reached(*where)))
        for name, where in ENTRY_POINTS.items()
    }
    return [f"  {what:60}{figure:>20}" for what, figure in figures.items()]


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
