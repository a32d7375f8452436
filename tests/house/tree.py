"""The layout on the page of the architecture: the folders of the package in the order that data flows, as they are.

`make layout` writes it between the markers in docs/explanation/architecture.md.
"""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

from house.graph import FOUNDATION, ON_THE_WALL, PACKAGES, PRIVATE, PUBLIC, RIGHT, ROOT

PAGE = ROOT / "docs" / "explanation" / "architecture.md"
BEGIN, END = "<!-- layout: make layout -->", "<!-- /layout -->"
SIDES = {
    "public facts and promises; no data": PUBLIC,
    "PRIVATE: may see trips": PRIVATE,
    "right of the wall: sees measurements and never a trip; imports nothing PRIVATE, through any chain": RIGHT,
    "on the wall: may import both sides; nothing above imports these": ON_THE_WALL,
}
WIDTH = 96
TOP = {
    name.removeprefix("cbdp."): package for package, name in PACKAGES.items()
}  # folders at the top of the tree
INDENT = 18


def tree(root: Path = ROOT) -> str:
    """Every folder with its line, and below it what it holds."""
    lines = [f"{'cbdp/':{INDENT}}{', '.join(FOUNDATION)}: what every folder may import"]
    for side, folders in SIDES.items():
        lines += [f"── {side} {'─' * (WIDTH - len(side) - 4)}"]
        for name in folders:
            package = TOP.get(name)
            lines += _folder(root / name / package if package else root / "cbdp" / name, name)
    return "\n".join(lines)


def _folder(folder: Path, title: str) -> list[str]:
    about = (ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or "").splitlines()
    held = sorted(
        inner.stem if inner.is_file() else f"{inner.name}/"
        for inner in folder.iterdir()
        if (inner.suffix == ".py" and inner.stem != "__init__")
        or (
            inner.is_dir()
            and {p.name for p in inner.iterdir()} - {"__pycache__"}
            and inner.name != "__pycache__"
        )
    )
    head = textwrap.wrap(about[0] if about else "", WIDTH - INDENT)
    body = textwrap.wrap(" ".join(held), WIDTH - INDENT - 2, break_on_hyphens=False)
    name = f"├── {title}/"
    return [
        *(f"{name if not n else '│':{INDENT}}{line}" for n, line in enumerate(head)),
        *(f"{'│':{INDENT}}  {line}" for line in body),
    ]


def block(root: Path = ROOT) -> str:
    """What stands between the markers."""
    return f"\n```\n{tree(root)}\n```\n"


def printed(page: str) -> str | None:
    """What a page has between the markers, or None where it has none."""
    if BEGIN not in page or END not in page:
        return None
    return page.partition(BEGIN)[2].partition(END)[0]


def main() -> None:
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise SystemExit(f"{PAGE.name} has no layout section: put {BEGIN} and {END} where it belongs")
    PAGE.write_text(f"{before}{BEGIN}{block()}{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
