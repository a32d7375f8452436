"""Pages of the documentation as programs: their blocks are run in order, in an empty folder, and what they show is compared.

- A block ```` ```console ```` holds commands behind `$ ` and what each prints. With title="exit code 1" the last one fails so.
- A block ```` ```python ```` is run; all of a page share one namespace. A block ```` ```text ```` right behind it is what it prints.
- A block with title="NAME" is written to that file. With title="NAME, changed lines" every `key = value` in it replaces the line of
  that key, which may be a comment until then, and so does `[table]`.
- `<!-- run: COMMAND -->` is run and not shown. `<!-- not run: REASON -->` before a block leaves it out.

With title="your numbers will differ" every number stands for any. In what is shown, `…` stands for anything in a line, and a line of its own for any lines. Runs of spaces count as one.
`python tests/page_running.py PAGE` prints what every step really says.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^(?P<indent> *)(?P<mark>`{3,})(?P<info>[^`]*)$")
COMMENT = re.compile(r"^ *<!-- (?P<what>run|not run): (?P<text>.*?) -->$")
TITLE = re.compile(r'title="([^"]*)"')
EXIT = re.compile(r"exit code (\d+)")
CHANGED = ", changed lines"
NOISY = "your numbers will differ"
NUMBER = re.compile(r"[-+]?\d[\d,.]*")
SHELL = set("|<>;&$*?`(")
ANYTHING = "…"


@dataclass(frozen=True)
class Block:
    """A step of a page."""

    kind: str  # console, python, text, another language, or run
    title: str
    text: str
    line: int
    run: bool = True


@dataclass
class Said:
    """What a step was to say, and what it said."""

    line: int
    step: str
    shown: str | None
    said: str
    code: int = 0
    wanted: int = 0
    noisy: bool = False

    @property
    def right(self) -> bool:
        if self.shown is None:
            return self.code == self.wanted
        shown, said = ((NUMBER.sub("#", t) if self.noisy else t) for t in (self.shown, self.said))
        return self.code == self.wanted and agrees(shown, said)


@dataclass
class Running:
    """A page while it runs."""

    folder: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__page__"})
    said: list[Said] = field(default_factory=list)


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a page, in order; those in tabs and lists as well."""
    lines = iter(enumerate(text.splitlines(), 1))
    left_out = False
    for number, line in lines:
        comment, fence = COMMENT.match(line), FENCE.match(line)
        if comment is not None and comment["what"] == "run":
            yield Block("run", "", comment["text"], number)
        elif comment is not None:
            left_out = True
        elif fence is not None:
            inside = []
            for _, inner in lines:
                if inner.strip() == fence["mark"]:
                    break
                inside.append(inner.removeprefix(fence["indent"]))
            title = TITLE.search(fence["info"])
            kind = fence["info"].split(" ", 1)[0].strip()
            yield Block(kind, title[1] if title else "", "\n".join(inside), number, not left_out)
            left_out = False


def run_page(page: Path, folder: Path) -> list[Said]:
    """Run a page in a folder; what each step said."""
    running = Running(folder)
    before = None
    for block in blocks(page.read_text("utf-8")):
        if block.run:
            _step(running, block, before)
        before = block
    return running.said


def agrees(shown: str, said: str) -> bool:
    """Whether what a page shows is what was said.

    >>> agrees("total  …\\n…\\nend", "total 12\\nmore\\nand more\\nend"), agrees("a", "b")
    (True, False)
    """
    pattern = ""
    for line in _plain(shown):
        if line == ANYTHING:
            pattern += r"(?:[^\n]*\n)*"
        else:
            pattern += ".*".join(re.escape(part) for part in line.split(ANYTHING)) + r"\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _plain(said))) is not None


def _plain(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.strip().splitlines()]


def _step(running: Running, block: Block, before: Block | None) -> None:
    if block.kind == "run":
        code, said = _command(running, block.text)
        running.said.append(Said(block.line, block.text, None, said, code))
    elif block.kind == "console":
        _console(running, block)
    elif block.title.endswith(CHANGED):
        _change(running.folder / block.title.removesuffix(CHANGED), block)
    elif block.title and block.title != NOISY:
        path = running.folder / block.title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text + "\n", "utf-8")
    elif block.kind == "python":
        running.said.append(Said(block.line, block.text, None, _python(running, block)))
    elif block.kind == "text" and before is not None and before.kind == "python" and before.run:
        running.said[-1].shown = block.text
        running.said[-1].noisy = block.title == NOISY


def _console(running: Running, block: Block) -> None:
    wanted = EXIT.search(block.title)
    steps: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], []))
        elif steps and steps[-1][0].endswith("\\") and not steps[-1][1]:
            steps[-1] = (steps[-1][0][:-1] + line.strip(), [])
        else:
            assert steps, f"line {block.line}: a console block begins with a command behind '$ '"
            steps[-1][1].append(line)
    for n, (step, shown) in enumerate(steps):
        code, said = _command(running, step)
        last = int(wanted[1]) if wanted and n == len(steps) - 1 else 0
        running.said.append(Said(block.line, step, "\n".join(shown), said, code, last, block.title == NOISY))


def _change(path: Path, block: Block) -> None:
    """Put every line in the place of the one with the same key."""
    lines = path.read_text("utf-8").splitlines()
    for line in block.text.splitlines():
        key = line.partition("=")[0].strip("# ")
        ends = "$" if line.startswith("[") else " *="
        fits = [n for n, old in enumerate(lines) if re.match(rf"(# *)?{re.escape(key)}{ends}", old)]
        assert fits, f"line {block.line}: {path.name} has no line {key!r} to change"
        lines[next((n for n in fits if not lines[n].startswith("#")), fits[0])] = line
    path.write_text("\n".join(lines) + "\n", "utf-8")


def _command(running: Running, line: str) -> tuple[int, str]:
    """Run a line: our own command in this process, which has everything loaded, and others in a shell."""
    if line.startswith("cbdp ") and not SHELL & set(line):
        return _ours(running.folder, shlex.split(line)[1:])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=running.folder,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def _ours(folder: Path, words: Sequence[str]) -> tuple[int, str]:
    from cbdp.app.cli import main

    out = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = main(list(words))
        except SystemExit as stopped:  # of the parser of arguments
            code = int(stopped.code or 0)
    return code, out.getvalue()


def _python(running: Running, block: Block) -> str:
    out = io.StringIO()
    sys.path.insert(0, str(running.folder))
    try:
        with contextlib.chdir(running.folder), contextlib.redirect_stdout(out):
            exec(compile("\n" * block.line + block.text, "page", "exec"), running.names)  # noqa: S102
    finally:
        sys.path.remove(str(running.folder))
    return out.getvalue()


def _main(pages: Sequence[str]) -> None:
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            for said in run_page(Path(page), Path(folder)):
                mark = "" if said.right else f"   <<< NOT AS SHOWN (exit code {said.code})"
                print(f"--- {page}:{said.line}{mark}\n$ {said.step}\n{said.said.rstrip()}")


if __name__ == "__main__":
    _main(sys.argv[1:])
