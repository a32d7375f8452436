"""What the commands that run the harness share: options, set-up, the runs themselves, and the end of a page."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

from benchmarks.harness.keep import keepable
from benchmarks.harness.page import Block, Heading, Text
from benchmarks.harness.registry import MECHANISMS, ROOT, Setup
from benchmarks.harness.runner import run
from benchmarks.harness.specs import Limits, Spec
from benchmarks.harness.store import Row, Store
from benchmarks.harness.tables import Group, Summary, Table, failures
from cbdp.errors import InputError


def parser_of(name: str, about: str | None, *, runs: int, seconds: float) -> argparse.ArgumentParser:
    """A parser with the options of every such command; `runs` and `seconds` are what it takes without them."""
    parser = argparse.ArgumentParser(
        prog=f"benchmarks {name}", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--runs", type=int, default=runs, help=f"runs of each mechanism at each ε ({runs})")
    add("--jobs", type=int, default=os.cpu_count(), help="processes at once (one per core)")
    add(
        "--out",
        type=Path,
        default=Path("docs/results"),
        help="folder of the page and its figures (docs/results)",
    )
    add("--store", type=Path, default=ROOT / "benchmarks" / "results", help="folder of the results")
    add("--with", nargs="*", default=[], dest="plugins", help="Python files that register more")
    add(
        "--keep",
        action="store_true",
        help="take results of earlier versions of mechanisms that are not ours, after repeating one run of each",
    )
    add("--seconds", type=float, default=seconds, help=f"limit of one run ({seconds:g})")
    add("--memory", type=float, default=4.0, help="limit of one run in GiB (4)")
    return parser


def add_folder(parser: argparse.ArgumentParser, option: str) -> None:
    """The option that names the folder of real data."""
    parser.add_argument(
        option, dest="folder", help="folder of real data (CBDP_DATA, or ../shared/data beside the project)"
    )


def answered(name: str, work: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """The exit code of a command; what is wrong with its options is told in a line."""
    try:
        return work(options)
    except InputError as wrong:
        print(f"benchmarks {name}: {wrong}", file=sys.stderr)
        return 2


def folder_of(options: argparse.Namespace) -> str:
    """The folder of real data."""
    return str(Path(options.folder or os.environ.get("CBDP_DATA") or Setup.folder).absolute())


def absolute(files: Iterable[str]) -> tuple[str, ...]:
    return tuple(str(Path(f).absolute()) for f in files)


def listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


def check_known(names: Iterable[str], known: Collection[str], what: str) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"unknown {what} {name!r}: there are {', '.join(known)}")


def check_numbers(options: argparse.Namespace) -> None:
    if options.runs < 1 or (options.jobs or 1) < 1:
        raise InputError(f"--runs {options.runs} --jobs {options.jobs}: both are at least 1")


def run_missing(
    specs: Collection[Spec], setup: Setup, options: argparse.Namespace
) -> tuple[list[Row], dict[str, str], dict[str, str]]:
    """Every result, from the store where it is there; what is absent and why; whose earlier results were kept and why."""
    limits = Limits(options.seconds, int(options.memory * 2**30))
    store = Store(options.store)
    kept = keepable(specs, store, setup, limits, options.jobs) if options.keep else {}
    rows, absent = run(specs, store, setup, limits, options.jobs, kept)
    return rows, absent, kept


def mechanisms_table(names: Iterable[str]) -> list[Block]:
    return [
        Heading("The mechanisms"),
        Table(["mechanism", "what it is"], [[m, MECHANISMS[m].what] for m in names], words=True),
    ]


def what_is_missing(found: Mapping[Group, Summary], absent: Mapping[str, str]) -> list[Block]:
    """The runs that failed, and the data and mechanisms that were left out; nothing if there are none."""
    said: list[Block] = []
    wrong = failures(found)
    if wrong.rows:
        said += [Heading("Runs that did not end well"), wrong]
    if absent:
        lines = "\n".join(f"- {name}: {why}" for name, why in absent.items())
        said += [Heading("Left out"), Text(lines)]
    return said
