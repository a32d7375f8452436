"""`cbdp series run`, `status`, `page` and `compare`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress

from cbdp.app.cli import COMMANDS, UNUSUAL

STOPPED = 130


def main(argv: Sequence[str]) -> int:
    options = _parser().parse_args(argv)
    if options.action == "run":
        return _run(options)
    return {"status": _status, "page": _page, "compare": _compare}[options.action](options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cbdp series", description=COMMANDS["series"][1])
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    run = actions.add_parser(
        "run", help=(about := "make every release that is due and not yet made"), description=about
    )
    status = actions.add_parser(
        "status",
        help=(about := "say what is made, due and spent, and what it costs one person"),
        description=about,
    )
    page = actions.add_parser(
        "page", help=(about := "write a page with every release of the series"), description=about
    )
    page.add_argument("--out", metavar="FILE", required=True, help="the new HTML file")
    changed = actions.add_parser(
        "compare", help=(about := "say how counts changed between two spans of days"), description=about
    )
    for action in (run, status, page, changed):
        action.add_argument("config", help="configuration file with [series]")
        action.add_argument(
            "--until",
            metavar="DAY",
            help="make or show what is due at the end of this day (default: the last service day that is over)",
        )
    _add_spans(changed)
    run.add_argument(
        "--create-ledger",
        action="store_true",
        help="create the ledger: for the first release of these trips only",
    )
    run.add_argument("--verbose", action="store_true", help="also tell the stages of each release")
    run.add_argument(
        "--accept-dropped",
        action="store_true",
        help="release also if fewer than half of the rows count, or a period has no trips; see `cbdp inspect` first",
    )
    run.add_argument("--accept-unusual", action="store_true", help=UNUSUAL)
    return parser


def _add_spans(parser: argparse.ArgumentParser) -> None:
    from cbdp.app.compare import add_question

    parser.add_argument(
        "first", metavar="SPAN", help="2026-03-02, 2026-W10, 2026-03 or 2026-03-02..2026-03-08"
    )
    parser.add_argument("second", metavar="SPAN", help="the later one, likewise")
    add_question(parser)


def _page(options: argparse.Namespace) -> int:
    from cbdp.app.series.page import run_page

    return run_page(options, _say)


def _compare(options: argparse.Namespace) -> int:
    from cbdp.app.compare import check_places
    from cbdp.app.series.comparing import run_compare

    check_places(options)
    return run_compare(options)


def _run(options: argparse.Namespace) -> int:
    from cbdp.app.stopping import Interrupts

    with Interrupts(_say):  # before anything slow is loaded
        from cbdp.app.config import read
        from cbdp.app.inspecting.cause import counted
        from cbdp.app.series.running import run_series
        from cbdp.app.series.today import check_over, until_of

        config = read(options.config)
        until = until_of(config, options.until)
        check_over(config, until)
    ran = run_series(
        config,
        until,
        _say,
        create_ledger=options.create_ledger,
        watching=lambda: Interrupts(_say),
        accept_dropped=options.accept_dropped,
        accept_unusual=options.accept_unusual,
        **({"detail": _say} if options.verbose else {}),
    )
    left = ran.due - ran.found - len(ran.made)
    print(
        f"{counted(len(ran.made), 'release')} made now; {ran.due} {'is' if ran.due == 1 else 'are'} due by the end of {until}, "
        f"{left} of these {'is' if left == 1 else 'are'} missing"
    )
    if ran.stopped:
        print("stopped after a release: run the command again to go on", file=sys.stderr)
        return STOPPED
    return 0


def _status(options: argparse.Namespace) -> int:
    from cbdp.app.config import read
    from cbdp.app.series.status import status_of
    from cbdp.app.series.today import until_of

    config = read(options.config)
    print("\n".join(status_of(config, until_of(config, options.until)).lines()))
    return 0


def _say(text: str) -> None:
    with suppress(OSError, ValueError):  # a terminal that is gone must not end a release that was paid for
        print(text, file=sys.stderr, flush=True)
