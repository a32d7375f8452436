"""The command line. Exit code 0: done; 1: a check or an audit failed; 2: bad usage or input."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbdp import __version__
from cbdp.errors import CbdpError

if TYPE_CHECKING:
    from cbdp.privacy.ledger import Ledger
    from cbdp.trips.count import Counts


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; our own errors become one line on standard error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without an ε shows a question mark
    parser = _parser()
    options = parser.parse_args(argv)
    if not hasattr(options, "run"):
        parser.print_help()
        return 2
    try:
        return int(options.run(options))
    except CbdpError as error:
        return _refused(str(error))
    except KeyboardInterrupt:
        return _refused(
            "stopped. If a charge was made it stays made: see cbdp ledger. The next run finds or clears the rest"
        )
    except OSError as error:
        return _refused(f"{error.filename or 'a file'}: {error.strerror or error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cbdp",
        description="Publish origin–destination demand with differential privacy: consistent, non-negative, integer.",
    )
    parser.add_argument("--version", action="version", version=f"cbdp {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    demo = commands.add_parser("demo", help="the whole job on a built-in synthetic city")
    demo.add_argument("--epsilon", default="1", help="privacy budget (default: 1)")
    demo.add_argument("--out", default="cbdp-demo", help="folder for its files (default: cbdp-demo)")
    demo.set_defaults(run=_demo)
    init = commands.add_parser("init", help="write a commented configuration for your files")
    init.add_argument("trips", nargs="+", help="Parquet or CSV file of trips; only its column names are read")
    init.add_argument("--stops", help="public file of stops: CSV, GTFS stops.txt or GeoJSON")
    init.add_argument("--out", default="cbdp.toml", help="where to write it (default: cbdp.toml)")
    init.set_defaults(run=_init)
    check = commands.add_parser("check", help="explain what would be released; spends nothing, reads no trip")
    check.add_argument("config", help="configuration file")
    check.add_argument(
        "--within", metavar="FEATURE=PERCENT", action="append", help="which ε makes a feature so precise"
    )
    check.set_defaults(run=_check)
    release = commands.add_parser(
        "release", help="publish: count, charge the ledger, measure, solve, round, write"
    )
    release.add_argument("config", help="configuration file")
    release.set_defaults(run=_release)
    report = commands.add_parser(
        "report", help="write the report of a release, or one for the curator's eyes only"
    )
    report.add_argument("release", help="folder of a release")
    report.add_argument("--out", help="where to write it (default: beside the release)")
    report.add_argument(
        "--internal", metavar="CONFIG", help="compare with the trips: never publish the result"
    )
    report.set_defaults(run=_report)
    ledger = commands.add_parser(
        "ledger", help="show what was spent, and verify the chain; exit 1 if it is broken"
    )
    ledger.add_argument("path", help="ledger file")
    ledger.add_argument(
        "--contains", metavar="HEAD", help="also check that a manifest's ledger head is in it"
    )
    ledger.set_defaults(run=_ledger)
    export = commands.add_parser(
        "export", help="write a release as CSV, OMX, GeoJSON, MATSim, SUMO or NetCDF"
    )
    export.add_argument("release", help="folder of a release")
    export.add_argument("--format", required=True, help="csv, omx, geojson, matsim, sumo or xarray")
    export.add_argument("--out", required=True, help="where to write it")
    export.add_argument("--level", help="add stops up to this attribute, as in zone (omx, geojson, sumo)")
    export.set_defaults(run=_export)
    solvers = commands.add_parser(
        "solvers", help="list the solvers: installed or not, what each can do, how to get it"
    )
    solvers.set_defaults(run=_solvers)
    fleet = commands.add_parser(
        "fleet",
        help="size shuttle fleets on a release, compare with the real trips",
        add_help=False,
        prefix_chars="\0",
    )  # its own parser reads the rest, options too: it is loaded when it is asked for
    fleet.add_argument("rest", nargs="*")
    fleet.set_defaults(run=_fleet)
    audit = commands.add_parser(
        "audit", help="attack a release before others do; exit 1 if it is not what it claims",
        add_help=False, prefix_chars="\0",
    )  # fmt: skip
    audit.add_argument("rest", nargs="*")
    audit.set_defaults(run=_audit)
    return parser


def _demo(options: argparse.Namespace) -> int:
    from cbdp.app.demo import demo

    return demo(options.epsilon, options.out, _say)


def _init(options: argparse.Namespace) -> int:
    from cbdp.app.init import write

    path = write(options.out, options.trips, options.stops)
    print(f"wrote {path}: look it over, then run cbdp check {path}")
    return 0


def _check(options: argparse.Namespace) -> int:
    from cbdp.app.config import read
    from cbdp.app.explain import answers, explain
    from cbdp.app.plan import plan

    planned = plan(read(options.config))
    said = answers(planned, options.within or ())
    print("\n".join([str(explain(planned)), *said]))
    return 0


def _release(options: argparse.Namespace) -> int:
    from cbdp.app.config import read
    from cbdp.app.plan import plan
    from cbdp.app.publish import publish

    done = publish(plan(read(options.config)), _say)
    made = "released to" if done.fresh else "this request has been released before, nothing was spent:"
    print(f"{made} {done.path}\nopen {done.path / 'report.html'}")
    return 0


def _report(options: argparse.Namespace) -> int:
    from cbdp.app.internal import build_internal
    from cbdp.release.files import load
    from cbdp.report import build

    release = load(options.release)
    if options.internal and not options.out:
        return _refused("say with --out where the internal report may lie: it shows private counts")
    page = build_internal(release, _truth(options.internal)) if options.internal else build(release)
    path = Path(options.out or _beside(options.release))
    try:
        with path.open("x", encoding="utf-8") as out:
            out.write(page)
    except OSError as wrong:
        return _refused(
            f"{str(path)!r} cannot be written ({wrong.strerror}): choose another place with --out"
        )
    print(f"{'INTERNAL, never publish: ' if options.internal else ''}{path}")
    return 0


def _beside(release: str) -> Path:
    folder = Path(release).absolute()
    return folder.with_name(f"{folder.name}-report.html")


def _truth(config: str) -> Counts:
    from cbdp.app.config import read
    from cbdp.app.plan import plan
    from cbdp.trips.count import count

    planned = plan(read(config))
    return count(
        planned.trips, planned.universe, columns=planned.columns, unit=planned.unit, clock=planned.clock
    )


def _ledger(options: argparse.Namespace) -> int:
    from cbdp.privacy.ledger import Ledger, LedgerError

    with Ledger.view(options.path) as ledger:
        try:
            ledger.verify()
        except LedgerError as broken:
            return _failed(str(broken))
        print("\n".join(_ledger_lines(ledger)))
        if options.contains and not ledger.contains(options.contains):
            return _failed(
                f"{options.path} does not contain {options.contains}: it is not the one, or it was cut"
            )
    return 0


def _refused(why: str) -> int:
    print(f"cbdp: {why}", file=sys.stderr)
    return 2


def _failed(why: str) -> int:
    print(f"cbdp: {why}", file=sys.stderr)
    return 1


def _export(options: argparse.Namespace) -> int:
    from cbdp.release.export import export

    level = {"level": options.level} if options.level else {}
    print(export(options.release, options.out, format=options.format, **level))
    return 0


def _fleet(options: argparse.Namespace) -> int:
    from cbdp.app.fleet import main as fleet

    return fleet(options.rest)


def _audit(options: argparse.Namespace) -> int:
    from cbdp.app.audit.command import main as audit

    return audit(options.rest)


def _ledger_lines(ledger: Ledger) -> Iterator[str]:
    yield f"data set {ledger.dataset}: {ledger.spent} of {ledger.cap} spent, {ledger.left} left"
    for entry in ledger.entries():
        yield f"{entry.sequence:>5}  {entry.hash[:12]}  {entry.event:<10} {_told(entry.fields)}"
    yield f"the chain is whole; head {ledger.head}"


def _told(fields: Mapping[str, Any]) -> str:
    shown = {k: v for k, v in fields.items() if k not in ("request",)}
    return ", ".join(f"{k} {str(v)[:40]}" for k, v in shown.items())


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


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
