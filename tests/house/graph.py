"""The import graph of the package, read from its sources, and where each module stands.

Every import counts, wherever it is written: at the top, inside a function, under TYPE_CHECKING, by `import_module("cbdp.x")`,
as `cbdp.x` after `import cbdp`, and as a text "cbdp.x" or "cbdp.x:Name" in a table of lazy names or of parts.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Modules that stand beside the folders: what everybody may import. The package itself and `python -m cbdp` come last.
FOUNDATION = (
    "arrays",
    "compiling",
    "errors",
    "lazy",
    "machine",
    "numbers",
    "parts",
    "progress",
    "text",
    "untrusted",
)

PUBLIC = ("features", "solvers", "privacy", "ledger")
PRIVATE = ("counting", "measuring")
RIGHT = ("estimation", "rounding", "release", "report", "audit", "transit", "config", "forecast", "commands")
ON_THE_WALL = ("mechanisms", "datasets", "app")

# What each folder may import beside itself and the foundation. A folder imports only folders that come before it here.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "features": (),
    "solvers": (),
    "privacy": ("features",),
    "ledger": ("features", "privacy"),
    "counting": PUBLIC,
    "measuring": (*PUBLIC, "counting"),
    "estimation": PUBLIC,
    "rounding": (*PUBLIC, "estimation"),
    "release": (*PUBLIC, "estimation", "rounding"),
    "report": (*PUBLIC, "estimation", "rounding", "release"),
    "audit": (*PUBLIC, "estimation", "rounding", "release", "report"),
    "transit": (*PUBLIC, "estimation", "rounding", "release", "report"),
    "config": (*PUBLIC, "estimation", "rounding", "release", "report", "transit"),
    "forecast": (*PUBLIC, "estimation", "rounding", "release", "report", "transit", "config"),
    "commands": (*PUBLIC, *RIGHT[:-1]),
    "mechanisms": (*PUBLIC, *PRIVATE, *RIGHT),
    "datasets": (*PUBLIC, *PRIVATE, *RIGHT, "mechanisms"),
    "app": (*PUBLIC, *PRIVATE, *RIGHT, "mechanisms", "datasets"),
}

# Folders at the top of the tree hold packages of their own, which a module of `cbdp` re-exports. Here both go by one name.
PACKAGES = {"cbdp_features": "cbdp.features", "cbdp_solvers": "cbdp.solvers"}

_NAMED = re.compile(r"(cbdp(?:_\w+)?(?:\.\w+)+)(?::\w+)?")

parsed = lru_cache(maxsize=1024)(ast.parse)  # by its text: several tests read every module


@dataclass(frozen=True)
class Graph:
    """Who imports whom: for every module, the modules it imports and the line that does it first."""

    files: Mapping[str, Path]
    imports: Mapping[str, Mapping[str, int]]
    computed: Mapping[str, int]  # modules that import by a name which only running them tells, and the line

    def chain(self, start: str, targets: Iterable[str]) -> list[str]:
        """The shortest chain of imports from a module to one of the targets; empty if there is none."""
        wanted = set(targets)
        before = {start: ""}
        queue = deque([start])
        while queue:
            module = queue.popleft()
            if module in wanted and module != start:
                return _walked(before, module)
            for target in self.imports[module]:
                if target not in before:
                    before[target] = module
                    queue.append(target)
        return []

    def told(self, chain: list[str]) -> str:
        """A chain for people: each module with the line that imports the next one."""
        lines = [f"{a}:{self.imports[a][b]}" for a, b in pairwise(chain)]
        return " → ".join([*lines, chain[-1]])

    def places(self) -> dict[str, dict[str, list[str]]]:
        """The graph of folders: from each place to each other one, the imports between them, for people."""
        found: dict[str, dict[str, list[str]]] = {}
        for module, targets in self.imports.items():
            for target in targets:
                here, there = place(module), place(target)
                if here != there and "" not in (here, there):
                    found.setdefault(here, {}).setdefault(there, []).append(self.told([module, target]))
        return found


def _walked(before: Mapping[str, str], last: str) -> list[str]:
    chain = [last]
    while before[chain[-1]]:
        chain.append(before[chain[-1]])
    return chain[::-1]


def place(module: str) -> str:
    """Where a module stands: its folder, or its own name for a module beside the folders; "" for the package itself.

    >>> place("cbdp.estimation.posterior.rate_model"), place("cbdp.errors"), place("cbdp")
    ('estimation', 'errors', '')
    """
    return module.split(".")[1] if "." in module else ""


def right_of_the_wall(module: str) -> bool:
    """Whether a module must never reach a trip: public facts, post-processing, and what everybody imports."""
    return place(module) in (*FOUNDATION, *PUBLIC, *RIGHT)


def misplaced(graph: Graph) -> list[str]:
    """Modules that stand nowhere, each with what to do."""
    known = (*FOUNDATION, *MAY_IMPORT)
    return [
        f"{module} ({graph.files[module]}) stands in no known folder: move it into one of {', '.join(MAY_IMPORT)}, "
        "or add the new folder to MAY_IMPORT and to its side of the wall in tests/house/graph.py"
        for module in graph.imports
        if place(module) not in (*known, "__main__", "")
        or (place(module) in FOUNDATION and graph.files[module].name == "__init__.py")
        or (
            place(module) in MAY_IMPORT
            and module.count(".") == 1
            and graph.files[module].name != "__init__.py"
        )
    ]


def leaks(graph: Graph) -> list[str]:
    """Every module right of the wall from which a chain of imports leads to a trip, with the chain."""
    closed = [m for m in graph.imports if place(m) in (*PRIVATE, *ON_THE_WALL, "__main__")]
    chains = [graph.chain(m, closed) for m in graph.imports if right_of_the_wall(m)]
    return [graph.told(chain) for chain in sorted(filter(None, chains), key=len)]


def upward(graph: Graph) -> list[str]:
    """Imports between folders that the layout does not allow."""
    found = []
    for here, targets in graph.places().items():
        allowed = {*FOUNDATION, *MAY_IMPORT.get(here, ())}
        allowed |= {"app"} if here == "__main__" else set()
        found += [line for there, lines in targets.items() if there not in allowed for line in lines]
    return found


def cycle(edges: Mapping[str, Iterable[str]]) -> list[str]:
    """Some cycle of a graph, first and last place the same; empty if there is none.

    >>> cycle({"a": ["b"], "b": ["c"], "c": ["b"]}), cycle({"a": ["b"]})
    (['b', 'c', 'b'], [])
    """
    done: set[str] = set()

    def visit(node: str, path: list[str]) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in done:
            return []
        for target in edges.get(node, ()):
            if found := visit(target, [*path, node]):
                return found
        done.add(node)
        return []

    return next((found for start in edges if (found := visit(start, []))), [])


def modules(root: Path) -> dict[str, Path]:
    """Every module of ours below `root`, by one name: that of `cbdp.features` and `cbdp.solvers` for what they re-export."""
    homes = {root / "cbdp": "cbdp"} | {
        root / name.removeprefix("cbdp.") / package: name for package, name in PACKAGES.items()
    }
    found = {}
    for home, name in homes.items():
        if not home.is_dir():  # of a tree that tests make up
            continue
        for path in sorted(path for folder in _folders(home) for path in folder.glob("*.py")):
            parts = path.relative_to(home).with_suffix("").parts
            found[".".join([name, *parts]).removesuffix(".__init__")] = path
    return found


def canonical(dotted: str) -> str:
    """The one name of a module, or of a name in it.

    >>> canonical("cbdp_features.dag"), canonical("cbdp.errors")
    ('cbdp.features.dag', 'cbdp.errors')
    """
    first, dot, rest = dotted.partition(".")
    return f"{PACKAGES.get(first, first)}{dot}{rest}"


def importable(module: str) -> str:
    """What a module is imported as.

    >>> importable("cbdp.features.dag"), importable("cbdp.errors")
    ('cbdp_features.dag', 'cbdp.errors')
    """
    for package, name in PACKAGES.items():
        if module == name or module.startswith(f"{name}."):
            return package + module.removeprefix(name)
    return module


def _folders(folder: Path) -> Iterator[Path]:
    yield folder
    for inner in sorted(folder.iterdir()):
        if inner.is_dir() and inner.name != "__pycache__":
            yield from _folders(inner)


def build(root: Path = ROOT) -> Graph:
    """The import graph of the package below `root`."""
    files = modules(root)
    homes = _homes(ast.parse(files["cbdp"].read_text("utf-8")))
    imports: dict[str, dict[str, int]] = {}
    computed = {}
    for name, path in files.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        read = _read(package, path.read_text("utf-8"))
        # the package itself names everything, lazily: what is imported *from* it counts where it lives
        imports[name] = {} if name == "cbdp" else _resolved(name, read.named, files, homes)
        if read.computed and name != "cbdp":
            computed[name] = read.computed[0]
    return Graph(files, imports, computed)


def _resolved(
    name: str, named: Iterable[tuple[str, int]], known: Container[str], homes: Mapping[str, str]
) -> dict[str, int]:
    """The modules behind dotted names: the longest one in each, and the packages above it, which run first."""
    found: dict[str, int] = {}
    for dotted, line in named:
        parts = dotted.split(".")
        if dotted == "cbdp.*":
            found |= _resolved(name, [(home, line) for home in homes.values()], known, {})
        if len(parts) > 1 and ".".join(parts[:2]) not in known and parts[1] in homes:
            parts = homes[parts[1]].split(".")
        for length in range(2, len(parts) + 1):
            module = ".".join(parts[:length])
            if module in known and module != name:
                found.setdefault(module, line)
    return found


def _homes(tree: ast.Module) -> dict[str, str]:
    """In which module each public name of the package lives: from its typing imports and its table of lazy names."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cbdp"):
            found |= {alias.asname or alias.name: canonical(str(node.module)) for alias in node.names}
        if isinstance(node, ast.Dict):
            pairs = [(_text(k), _text(v)) for k, v in zip(node.keys, node.values, strict=True)]
            found |= {k: v.partition(":")[0] for k, v in pairs if k and _NAMED.fullmatch(v)}
    return found


def _text(node: ast.AST | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _dotted(node: ast.AST) -> str:
    """`a.b.c` as it is written; an expression in it becomes "?"."""
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


@lru_cache(maxsize=1024)  # trees that differ in one module are compared
def _read(package: str, text: str) -> _Reader:
    reader = _Reader(package)
    reader.visit(parsed(text))
    return reader


class _Reader(ast.NodeVisitor):
    """Reads which dotted names of ours one module of a package imports, and on which lines."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.named: list[tuple[str, int]] = [(package, 1)]  # importing a module runs its package first
        self.computed: list[int] = []
        self.roots: set[str] = set()  # local names of the package itself

    def visit_Module(self, node: ast.Module) -> None:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Import):
                self.roots |= {a.asname or "cbdp" for a in inner.names if _is_root(a)}
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = self._absolute(node.level, node.module or "")
        for alias in node.names:
            self._add(f"{base}.{alias.name}", node.lineno)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        root, _, rest = _dotted(node).partition(".")
        if root in self.roots:
            self._add(f"cbdp.{rest}", node.lineno)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if named := _NAMED.fullmatch(_text(node)):
            self._add(named[1], node.lineno)

    def visit_Call(self, node: ast.Call) -> None:
        called = _dotted(node.func).rpartition(".")[2]
        if called in ("import_module", "__import__") and node.args:
            self._by_name(_text(node.args[0]), node.lineno)
        self.generic_visit(node)

    def _by_name(self, text: str, line: int) -> None:
        """An import by name: a text is read like any other, a relative one is made absolute, the rest cannot be read."""
        if text.startswith("."):
            self._add(self._absolute(len(text) - len(text.lstrip(".")), text.lstrip(".")), line)
        elif not text:
            self.computed.append(line)

    def _absolute(self, level: int, module: str) -> str:
        if not level:
            return module
        parts = self.package.split(".")
        return ".".join([*parts[: len(parts) - level + 1], *([module] if module else [])])

    def _add(self, dotted: str, line: int) -> None:
        dotted = canonical(dotted)
        if dotted.split(".", maxsplit=1)[0] == "cbdp":
            self.named.append((dotted, line))


def _is_root(alias: ast.alias) -> bool:
    """Whether an import binds a local name to the package itself."""
    return alias.name == "cbdp" or (alias.name.startswith("cbdp.") and alias.asname is None)
