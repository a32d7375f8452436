"""The command line.

Exit code 0: done; 1: a check or an audit failed, or a release after its charge; 2: bad usage or input, nothing was spent;
130: interrupted.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

from cbdp import __version__
from cbdp.errors import CbdpError

REFUSED, INTERRUPTED = 2, 130  # 130 is what shells expect after Ctrl-C

# command → where it is, and a line about it; nothing of it is loaded until it is asked for
COMMANDS: Mapping[str, tuple[str, str]] = {
    "demo": ("cbdp.app.commands:demo", "do the whole job on a built-in synthetic city"),
    "init": ("cbdp.app.commands:init", "write a commented configuration for your files"),
    "check": ("cbdp.app.commands:check", "explain what would be released; spends nothing, reads no trip"),
    "inspect": ("cbdp.app.inspecting.command:main", "show the curator how trips are read, what counts and why not; private"),
    "choose": ("cbdp.app.choosing:main", "buy a public max_trips, as privacy.unit asks for it"),
    "release": ("cbdp.app.commands:release", "publish: count, charge the ledger, measure, solve, round, write"),
    "series": ("cbdp.app.series.command:main", "make the releases of a series that are due, or show what is made, due and spent"),
    "report": ("cbdp.app.commands:report", "write the report of a release, or one for the curator's eyes only"),
    "ask": ("cbdp.app.ask:main", "count a release by any attributes, with intervals and shares; spends nothing"),
    "compare": ("cbdp.app.compare:main", "say how counts changed between releases, and what noise can explain; spends nothing"),
    "ledger": ("cbdp.app.ledger:main", "create a ledger, or show what was spent and verify it; exit 1 if it is broken"),
    "export": ("cbdp.app.commands:export", "write a release in the format of another program"),
    "fleet": ("cbdp.app.fleet:main", "size shuttle fleets on a release, compare with the real trips"),
    "audit": ("cbdp.app.audit.command:main", "attack a release before others do; exit 1 if it is not what it claims"),
    "parts": ("cbdp.app.commands:parts", "list solvers, mechanisms and all other parts, also of installed packages"),
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; our own errors become one line on standard error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without an ε shows a question mark
    parser = _parser()
    options = parser.parse_args(argv)
    if options.command is None:
        parser.print_help()
        return REFUSED
    try:
        return _run(options)
    finally:
        if argv is not None:
            _hear_again()


def _hear_again() -> None:
    """A caller that goes on wants its signals back; the program itself is about to end."""
    if "cbdp.app.stopping" in sys.modules:
        sys.modules["cbdp.app.stopping"].hear_again()


def _run(options: argparse.Namespace) -> int:
    try:
        return _command(options.command)(options.rest)
    except CbdpError as error:
        return _stopped(str(error), getattr(error, "exit_code", REFUSED))
    except KeyboardInterrupt as stopped:
        return _stopped(str(stopped) or "interrupted", INTERRUPTED)
    except OSError as error:
        return _stopped(f"{error.filename or 'a file'}: {error.strerror or error}", REFUSED)


def _parser() -> argparse.ArgumentParser:
    """All commands with a line each; a command's own parser reads the rest of the line, options too."""
    parser = argparse.ArgumentParser(
        prog="cbdp",
        description="Publish origin–destination demand with differential privacy: consistent, non-negative, integer.",
        epilog="Exit code 0: done. 1: a check or an audit failed, or a release after its charge. 2: bad usage or input, "
        "nothing was spent. 130: interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"cbdp {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for name, (_, about) in COMMANDS.items():
        commands.add_parser(name, help=about, add_help=False, prefix_chars="\0").add_argument(
            "rest", nargs="*"
        )
    return parser


def _command(name: str) -> Callable[[Sequence[str]], int]:
    module, _, function = COMMANDS[name][0].partition(":")
    found: Callable[[Sequence[str]], int] = getattr(import_module(module), function)
    return found


def _stopped(why: str, code: int) -> int:
    print(f"cbdp: {' '.join(why.split())}", file=sys.stderr)
    return code
