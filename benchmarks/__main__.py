"""python -m benchmarks NAME [options]: runs the benchmark NAME; without a name, lists them."""

from __future__ import annotations

import ast
import pkgutil
import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent


def available() -> dict[str, str]:
    """The modules and packages here that have a `main`, with the first line of what they say; none is imported."""
    found = {}
    for module in pkgutil.iter_modules([str(HERE)]):
        path = HERE / module.name / "__init__.py" if module.ispkg else HERE / f"{module.name}.py"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        if "main" in functions and not module.name.startswith("_"):
            found[module.name] = (ast.get_docstring(tree) or "").split("\n")[0]
    return found


def run(argv: list[str]) -> int:
    names = available()
    if not argv or argv[0] in ("-h", "--help"):
        print("python -m benchmarks NAME [options]\n")
        for name, line in names.items():
            print(f"  {name:<12} {line}")
        return 0
    name = argv[0].replace("-", "_")
    if name not in names:
        print(f"no benchmark is named {argv[0]!r}: there are {', '.join(names)}", file=sys.stderr)
        return 2
    done: int = import_module(f"benchmarks.{name}").main(argv[1:])
    return done


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
