"""The command line.

Exit code 0: done; 1: a check or an audit failed, or a release after its charge; 2: bad usage or input, nothing was spent;
130: interrupted.
"""

from __future__ import annotations

import argparse
import io
import os
import select
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from types import TracebackType
from typing import TextIO

from cbdp import __version__
from cbdp.errors import CbdpError
from cbdp.text import message, shown

REFUSED, INTERRUPTED = 2, 130  # 130 is what shells expect after Ctrl-C
FIRST_NOTICE_SECONDS, NOTICE_SECONDS = (
    5.0,
    60.0,
)  # seconds until a silent command says that it works, and until it says so again
COMMANDS_WITH_PROGRESS = ("demo", "release", "series")  # commands that tell all along what they do
BROKEN_PIPE_EXIT_CODE = 141  # and this where the reader of a pipe has gone

# command → where it is, and a line about it; nothing of it is loaded until it is asked for
COMMANDS: Mapping[str, tuple[str, str]] = {
    "demo": ("cbdp.app.commands:demo", "do the whole job on an invented city, or write files to practise with"),
    "init": ("cbdp.app.commands:init", "write a commented configuration for your files"),
    "check": ("cbdp.app.check:check_main", "explain what would be released; spends nothing, reads no trip"),
    "plan": ("cbdp.app.check:plan_main", "write a page to choose ε, units, shares, periods and zones with; spends nothing, reads no trip"),
    "inspect": ("cbdp.app.inspecting:inspect_main", "show you how your trips are read: which rows count, which do not and why; private"),
    "choose": ("cbdp.app.choosing:choose_main", "choose max_trips with noise, and charge it to the ledger, where privacy.unit asks for that"),
    "release": ("cbdp.app.commands:release", "publish: count, charge the ledger, measure, solve, round, write"),
    "series": ("cbdp.app.series.command:series_main", "make the releases of a series that are due, or show what is made, due and spent"),
    "report": ("cbdp.app.commands:report", "write the report of a release, or one for the curator's eyes only"),
    "ask": ("cbdp.app.answers:ask_main", "answer any question about a release, with intervals and shares; spends nothing"),
    "compare": ("cbdp.app.answers:compare_main", "say how counts changed between releases, and what noise can explain; spends nothing"),
    "ledger": ("cbdp.app.commands:ledger_main", "create a ledger, or show what was spent and verify it; exit 1 if it is broken"),
    "export": ("cbdp.app.answers:export_main", "write a release in the format of another program"),
    "fleet": ("cbdp.app.fleet:main", "size shuttle fleets on a release, compare with the real trips"),
    "audit": ("cbdp.app.audit.run:audit_main", "attack a release before others do; exit 1 if it is not what it claims"),
    "parts": ("cbdp.app.commands:parts", "list solvers, mechanisms and all other parts, also of installed packages"),
}  # fmt: skip

UNUSUAL = (
    "go on also if rows are repeated, days have none, trips are many more or fewer than data.expected_trips, or times are in UTC; "
    "see `cbdp inspect` first"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; our own errors become one line on standard error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without an ε shows a question mark
    if argv is None:
        sys.excepthook = _report_fault
    with redirect_stdout(_Shown(sys.stdout)), redirect_stderr(_Shown(sys.stderr)):
        return _main(argv)


def _report_fault(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """The traceback of a fault of this program, which may end in a report to others: without passwords too."""
    sys.stderr.write(shown("".join(traceback.format_exception(kind, error, trace))))


class _Shown(io.TextIOBase):
    """Where commands print to: whatever they write passes `cbdp.text`, so no name commands the terminal and no password is shown."""

    def __init__(self, out: TextIO) -> None:
        self.out = out

    def write(self, text: str) -> int:
        self.out.write("\n".join(map(shown, text.split("\n"))))
        return len(text)

    def flush(self) -> None:
        self.out.flush()

    def isatty(self) -> bool:
        return self.out.isatty()

    def fileno(self) -> int:
        return self.out.fileno()

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.out.encoding


def _main(argv: Sequence[str] | None) -> int:
    parser = _parser()
    options = parser.parse_args(argv)
    if options.command is None:
        parser.print_help()
        return REFUSED
    done = threading.Event()
    if argv is None and not _tells(options.command):
        threading.Thread(target=_patience, args=(options.command, done), daemon=True).start()
    try:
        return _run(options)
    finally:
        done.set()
        if argv is not None:
            _hear_again()


def _tells(command: str) -> bool:
    """Whether a command says by itself what it does."""
    return command in COMMANDS_WITH_PROGRESS or (command == "ask" and sys.stderr.isatty())


def _patience(
    command: str, done: threading.Event, wait: float = FIRST_NOTICE_SECONDS, again: float = NOTICE_SECONDS
) -> None:
    """Say that a command is still at work, where it takes long and says nothing of it: to whoever waits, or reads a log."""
    passed = wait
    while not done.wait(passed if passed == wait else again):
        with suppress(OSError, ValueError):
            print(f"cbdp {command}: still working, {passed:.0f} seconds so far", file=sys.stderr, flush=True)
        passed += again


def _hear_again() -> None:
    """A caller that goes on wants its signals back; the program itself is about to end."""
    if "cbdp.app.stopping" in sys.modules:
        sys.modules["cbdp.app.stopping"].hear_again()


def _run(options: argparse.Namespace) -> int:
    try:
        code = _command(options.command)(options.rest)
        sys.stdout.flush()  # here, where a reader who has gone is understood
    except CbdpError as error:
        return _stopped(str(error), getattr(error, "exit_code", REFUSED))
    except KeyboardInterrupt as stopped:
        return _stopped(str(stopped) or "interrupted", INTERRUPTED)
    except OSError as error:
        if isinstance(error, BrokenPipeError) and _unheard():
            return BROKEN_PIPE_EXIT_CODE
        return _stopped(f"{error.filename or 'a file'}: {error.strerror or error}", REFUSED)
    return code


def _unheard() -> bool:
    """Whether nobody reads the output any more, as after `| head`; then nothing is said of it."""
    stdout = sys.stdout.out if isinstance(sys.stdout, _Shown) else sys.stdout
    if not isinstance(stdout, io.TextIOWrapper) or not hasattr(select, "poll"):
        return False
    out, watched = stdout.fileno(), select.poll()
    watched.register(out, 0)
    if not any(event & select.POLLERR for _, event in watched.poll(0)):
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), out)  # what is left is not written at the end
    return True


def _parser() -> argparse.ArgumentParser:
    """All commands with a line each; a command's own parser reads the rest of the line, options too."""
    parser = argparse.ArgumentParser(
        prog="cbdp",
        description="Publish how many people travel from where to where and when, with noise that protects each of them "
        "(differential privacy). All tables add up; counts are whole and never negative.",
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
    main_function: Callable[[Sequence[str]], int] = getattr(import_module(module), function)
    return main_function


def _stopped(why: str, code: int) -> int:
    print(f"cbdp: {' '.join(message(why).split())}", file=sys.stderr)
    return code
