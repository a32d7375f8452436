"""A page of headings, text, tables and figures, written once as Markdown and once as HTML that needs no other file."""

from __future__ import annotations

import base64
import html
import importlib.metadata
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.tables import Table

PACKAGES = ("numpy", "scipy", "numba", "pyarrow", "duckdb", "matplotlib", "opendp", "mbi", "jax")


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    """A paragraph, or a list where lines begin with a dash."""

    text: str


@dataclass(frozen=True)
class Picture:
    path: Path
    caption: str


Block = Heading | Text | Table | Picture


def as_markdown(blocks: Sequence[Block], folder: Path) -> str:
    """The page for a file in `folder`, which figures are linked from."""
    made = []
    for block in blocks:
        match block:
            case Heading(text, level):
                made.append(f"{'#' * level} {text}")
            case Text(text):
                made.append(text)
            case Table():
                made.append(block.markdown())
            case Picture(path, caption):
                made.append(f"![{caption}]({path.relative_to(folder).as_posix()})\n\n*{caption}*")
    return "\n\n".join(made) + "\n"


STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; margin: 2rem auto; max-width: 62rem;
  padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.875rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.75rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.words th, .words td { text-align: left; white-space: normal; }
thead th { border-bottom: 2px solid #555; }
figure { margin: 1.5rem 0; } img { max-width: 100%; height: auto; }
figcaption { font-size: 0.875rem; color: #444; }
code { background: #f2f2f2; padding: 0 0.2em; }
"""


def as_html(blocks: Sequence[Block], title: str) -> str:
    """The page in one file: figures are inside it."""
    body = "\n".join(_html(block) for block in blocks)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{html.escape(title)}</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _html(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{_inline(text)}</h{level}>"
        case Text(text) if text.startswith("- "):
            items = re.split(r"\n(?=- )", text)
            return "<ul>" + "".join(f"<li>{_inline(item[2:])}</li>" for item in items) + "</ul>"
        case Text(text):
            return f"<p>{_inline(text)}</p>"
        case Table(header, rows, words):
            head = "".join(f"<th>{_inline(h)}</th>" for h in header)
            lines = "".join(
                "<tr>" + "".join(f"<td>{_inline(c)}</td>" for c in row) + "</tr>\n" for row in rows
            )
            named = ' class="words"' if words else ""
            return f'<div class="wide"><table{named}><thead><tr>{head}</tr></thead><tbody>\n{lines}</tbody></table></div>'
        case Picture(path, caption):
            held = base64.b64encode(path.read_bytes()).decode()
            said = html.escape(caption, quote=True)
            return (
                f'<figure><img alt="{said}" src="data:image/png;base64,{held}">'
                f"<figcaption>{_inline(caption)}</figcaption></figure>"
            )


def _inline(text: str) -> str:
    """The little Markdown that the page's text uses: code, bold, links."""
    made = html.escape(text)
    made = re.sub(r"`([^`]+)`", r"<code>\1</code>", made)
    made = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", made)
    return re.sub(r"\[([^\]]+)\]\(([^)]+)\)", r'<a href="\2">\1</a>', made)


def machine() -> str:
    """The machine in a sentence."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB of memory, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}"
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    return found[1].strip() if found else platform.processor() or "an unnamed processor"


def versions() -> str:
    """The versions of the packages that are installed."""
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(found)
