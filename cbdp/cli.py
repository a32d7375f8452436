"""The command line. Exit code 0: done; 1: a check or an audit failed; 2: bad usage or input."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from cbdp import __version__
from cbdp.errors import CbdpError


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; our own errors become one line on standard error."""
    parser = _parser()
    options = parser.parse_args(argv)
    if not hasattr(options, "run"):
        parser.print_help()
        return 2
    try:
        return int(options.run(options))
    except CbdpError as error:
        print(f"cbdp: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cbdp",
        description="Publish origin–destination demand with differential privacy: consistent, non-negative, integer.",
    )
    parser.add_argument("--version", action="version", version=f"cbdp {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    demo = commands.add_parser("demo", help="the whole job on a built-in synthetic city")
    demo.add_argument("--epsilon", default="1", help="privacy budget (default: 1)")
    demo.set_defaults(run=_demo)
    solvers = commands.add_parser(
        "solvers", help="list the solvers: installed or not, what each can do, how to get it"
    )
    solvers.set_defaults(run=_solvers)
    return parser


def _demo(options: argparse.Namespace) -> int:
    from cbdp.demo import demo

    return demo(options.epsilon)


def _solvers(options: argparse.Namespace) -> int:  # noqa: ARG001
    from cbdp.errors import SolverError
    from cbdp.solvers import get, known

    rows = [("solver", "installed", "exact counts", "warm start", "leaves", "what it is, or how to get it")]
    for name in known():
        try:
            solver = get(name)
        except SolverError as broken:
            rows.append((name, "broken", "", "", "", str(broken)))
            continue
        here = solver.installed()
        most = "any" if solver.largest is None else f"≤ {solver.largest:,}"
        yes = {True: "yes", False: "no"}
        about = solver.about if here else f"{solver.about} — {solver.install}"
        rows.append((name, yes[here], yes[solver.exact_values], yes[solver.warm], most, about))
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]) - 1)]
    for row in rows:
        print("  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[-1]]).rstrip())
    return 0
