"""What each command does with its arguments. Everything slow is imported by the command that needs it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbdp.app.cli import COMMANDS, UNUSUAL
from cbdp.errors import InputError
from cbdp.parts import Parts, did_you_mean
from cbdp.text import aligned

if TYPE_CHECKING:
    from cbdp.counting import Counts
    from cbdp.ledger import Entry, Ledger, TotalSpent
    from cbdp.release import Release


def _parser(name: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(prog=f"cbdp {name}", description=COMMANDS[name][1])


def demo(argv: Sequence[str]) -> int:
    parser = _parser("demo")
    parser.add_argument("--epsilon", default="1", help="privacy budget (default: 1)")
    parser.add_argument("--quick", action="store_true", help="two hours of the city: done in seconds")
    parser.add_argument("--out", help="folder for its files (default: cbdp-demo, or cbdp-demo-quick)")
    parser.add_argument(
        "--files",
        metavar="FOLDER",
        help="only write files to practise with: stops, and invented trips as trips, counts and taps",
    )
    options = parser.parse_args(argv)
    if options.files:
        return _practice_files(Path(options.files))
    from cbdp.app.demo import demo as run
    from cbdp.app.stopping import Interrupts

    return run(options.epsilon, options.out, _say, quick=options.quick, interrupts=Interrupts(_say))


def _practice_files(folder: Path) -> int:
    from cbdp.app.new_file import check_new, write_new
    from cbdp.datasets.practice import practice_files

    folder.mkdir(parents=True, exist_ok=True)
    texts = practice_files()
    for name in texts:
        check_new(folder / name, internal=False)
    for name, text in texts.items():
        write_new(folder / name, text)
        print(f"wrote {folder / name}")
    return 0


def init(argv: Sequence[str]) -> int:
    parser = _parser("init")
    parser.add_argument(
        "trips", nargs="+", help="Parquet or CSV file of trips, or a URL; only its column names are read"
    )
    parser.add_argument("--stops", help="public file of stops: CSV, GTFS (stops.txt, zip), GBFS or GeoJSON")
    parser.add_argument(
        "--preset", help="the specification that the trips follow; `cbdp parts presets` lists them"
    )
    parser.add_argument(
        "--time-format",
        metavar="FORMAT",
        action="append",
        default=[],
        help='how times are written, for example "%%d/%%m/%%Y %%H:%%M" or epoch_s; may be given several times',
    )
    parser.add_argument(
        "--count-taps",
        action="store_true",
        help="of taps of cards: count them by stop, where riders do not tap off; otherwise a tap-on and the next tap-off are a trip",
    )
    parser.add_argument("--out", default="cbdp.toml", help="where to write it (default: cbdp.toml)")
    options = parser.parse_args(argv)
    from cbdp.app.init import summary_lines, write

    path = write(
        options.out,
        options.trips,
        options.stops,
        preset=options.preset,
        time_format=options.time_format,
        count_taps=options.count_taps,
    )
    print("\n".join(summary_lines(path)))
    return 0


def release(argv: Sequence[str]) -> int:
    parser = _parser("release")
    parser.add_argument("config", help="configuration file")
    parser.add_argument(
        "--create-ledger",
        action="store_true",
        help="create the ledger: for the first release of these trips only",
    )
    parser.add_argument(
        "--accept-dropped",
        action="store_true",
        help="release also if fewer than half of the rows count, or of the trips are kept; see `cbdp inspect` first",
    )
    parser.add_argument("--accept-unusual", action="store_true", help=UNUSUAL)
    options = parser.parse_args(argv)
    from cbdp.app.stopping import Interrupts

    with Interrupts(_say) as interrupts:  # before anything slow is loaded
        from cbdp.app.judging import Accepted, judge
        from cbdp.app.plan import plan
        from cbdp.app.publish import publish
        from cbdp.config import read

        config = read(options.config)
        if config.series is not None:
            raise InputError(
                f"{options.config} describes a series: run cbdp series run {options.config}, which makes every release that is due"
            )
        planned = plan(config)
        done = publish(
            planned,
            _say,
            create_ledger=options.create_ledger,
            interrupts=interrupts,
            judge=judge(_say, Accepted(options.accept_dropped, options.accept_unusual)),
        )
        outcome = "released to" if done.fresh else "this request has been released before, nothing was spent:"
        print(f"{outcome} {done.path}\nopen {done.path / 'report.html'}")
    return 0


def report(argv: Sequence[str]) -> int:
    parser = _parser("report")
    parser.add_argument("release", help="folder of a release")
    parser.add_argument("--out", help="where to write it (default: beside the release)")
    parser.add_argument(
        "--internal",
        metavar="CONFIG",
        help="compare with the trips; never publish the result, whose name (--out) must contain 'internal'",
    )
    options = parser.parse_args(argv)
    from cbdp.app.internal import build_internal
    from cbdp.app.new_file import check_new, write_new
    from cbdp.release import load
    from cbdp.report import build
    from cbdp.report.markup import INTERNAL_WARNING

    published = load(options.release)
    if options.internal and not options.out:
        raise InputError("an internal report shows private counts: say with --out where it may be written")
    path = Path(options.out or _beside(options.release))
    check_new(path, internal=bool(options.internal))
    if options.internal:
        write_new(path, build_internal(published, _truth(options.internal, published)), internal=True)
    else:
        write_new(path, build(published))
    print(f"{INTERNAL_WARNING}\n{path}" if options.internal else path)
    return 0


def _beside(folder: str) -> Path:
    place = Path(folder).absolute()
    return place.with_name(f"{place.name}-report.html")


def _truth(config: str, release: Release) -> Counts:
    from cbdp.app.plan import plan
    from cbdp.config import read
    from cbdp.counting import count
    from cbdp.forecast.calendar import slot_of

    settings = read(config)
    slot = None if settings.series is None or release.series is None else slot_of(settings, release.series)
    planned = plan(settings, slot)
    return count(
        planned.trips,
        planned.universe,
        columns=planned.columns,
        unit=planned.unit,
        clock=planned.clock,
        days=planned.days,
    )


def parts(argv: Sequence[str]) -> int:

    parser = _parser("parts")
    parser.add_argument("kind", nargs="?", metavar="KIND", help=f"only these: {', '.join(PART_KINDS)}")
    options = parser.parse_args(argv)
    print("\n".join(part_lines(options.kind)))
    return 0


def _say(text: str) -> None:
    with suppress(OSError, ValueError):  # a terminal that is gone must not end a release that was paid for
        print(text, file=sys.stderr, flush=True)


# Every kind of part that others may add, and what `cbdp parts` says of each part.


@dataclass(frozen=True)
class PartKind:
    """Where the table of a kind is, and which capabilities of its parts are shown: title → attribute."""

    where: str
    shown: Mapping[str, str] = field(default_factory=dict)

    def table(self) -> Parts[Any]:
        module, _, attribute = self.where.partition(":")
        parts: Parts[Any] = getattr(import_module(module), attribute)
        return parts


PART_KINDS: Mapping[str, PartKind] = {
    "solvers": PartKind(
        "cbdp.solvers:SOLVERS",
        {"exact counts": "exact_values", "warm start": "warm", "trip types": "largest"},
    ),
    "mechanisms": PartKind("cbdp.mechanisms:MECHANISMS"),
    "estimators": PartKind("cbdp.estimation:ESTIMATORS"),
    "roundings": PartKind("cbdp.rounding:ROUNDINGS"),
    "budgets": PartKind("cbdp.privacy.budget:BUDGETS"),
    "laws": PartKind("cbdp.privacy.noise:NOISE_DISTRIBUTIONS"),
    "samplers": PartKind("cbdp.measuring.samplers:SAMPLERS"),
    "engines": PartKind("cbdp.counting.engines:ENGINES"),
    "presets": PartKind("cbdp.app.presets:PRESETS", {"follows": "follows"}),
    "formats": PartKind("cbdp.release.export:FORMATS"),
    "designers": PartKind("cbdp.transit:DESIGNERS"),
    "sizers": PartKind("cbdp.transit:SIZERS"),
    "dispatchers": PartKind("cbdp.transit:DISPATCHERS"),
    "modes": PartKind("cbdp.transit:MODE_CHOICES"),
}


def part_lines(kind: str | None = None) -> Iterator[str]:
    """All parts of one kind, or of every kind."""
    if kind is not None and kind not in PART_KINDS:
        raise InputError(f"unknown kind of part {kind!r}: {did_you_mean(kind, list(PART_KINDS))}")
    for name in [kind] if kind else PART_KINDS:
        table = PART_KINDS[name].table()
        yield f"{name} (other packages add theirs to the entry-point group {table.group})"
        yield from (f"  {line}" for line in aligned(part_rows(name)))
        yield ""


def part_rows(kind: str) -> list[tuple[str, ...]]:
    """A title, and a row for each part: name, package, whether it can be used, capabilities, a line about it."""
    shown, table = PART_KINDS[kind].shown, PART_KINDS[kind].table()
    rows = [("name", "from", "installed", *shown, "about")]
    where = table.known()
    for name, part, broken in table.each():
        package = "cbdp" if name in table.table else where[name].partition(":")[0].partition(".")[0]
        if part is None:
            rows.append((name, package, "no", *("" for _ in shown), broken))
            continue
        here = _installed(part)
        about = (
            _about(part) if here else f"{_about(part)} — {getattr(part, 'install', 'its package is missing')}"
        )
        capabilities = (_capability_text(getattr(part, attribute, None)) for attribute in shown.values())
        rows.append((name, package, "yes" if here else "no", *capabilities, about))
    return rows


def _installed(part: Any) -> bool:
    return bool(part.installed()) if hasattr(part, "installed") else True


def _about(part: Any) -> str:
    """A part's line about itself; of one that has none, the first line of its documentation."""
    line = getattr(part, "about", "") or (getdoc(part) or "").partition("\n")[0]
    return str(line)


def _capability_text(capability: Any) -> str:
    if isinstance(capability, bool):
        return "yes" if capability else "no"
    return (
        "any"
        if capability is None
        else f"≤ {capability:,}"
        if isinstance(capability, int)
        else str(capability)
    )


# `cbdp ledger`: create a ledger, once, before the first release; show what was spent and verify the chain.


BROKEN_EXIT_CODE = 1  # of a chain that does not verify
MAX_FIELD_CHARACTERS = 40  # characters of an entry's field; longer ones are cut


def ledger_main(argv: Sequence[str]) -> int:
    options = _ledger_parser().parse_args(_with_action(argv))
    if options.action == "create":
        return _create(options.config)
    return _show(options.path, options.contains)


def _ledger_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cbdp ledger", description=COMMANDS["ledger"][1])
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    about = "create the ledger that a configuration names, once, before the first release"
    actions.add_parser("create", help=about, description=about).add_argument(
        "config", help="configuration file"
    )
    about = "show what was spent and verify the chain (`cbdp ledger FILE` does the same)"
    show = actions.add_parser("show", help=about, description=about)
    show.add_argument("path", help="ledger file")
    show.add_argument(
        "--contains", metavar="HEAD", help="also check that the ledger head of a manifest is in it"
    )
    return parser


def _with_action(argv: Sequence[str]) -> list[str]:
    """Without an action a ledger is shown; one whose file is called `create` is shown as ./create."""
    actions = ("create", "show", "-h", "--help")
    return list(argv) if not argv or argv[0] in actions else ["show", *argv]


def _create(config: str) -> int:
    from cbdp.app.plan import plan
    from cbdp.app.publish import opened
    from cbdp.config import read

    planned = plan(read(config))
    existed = planned.account.exists
    with opened(planned, create=True) as ledger:
        state = "exists already, nothing was changed" if existed else "created"
        left = f"cap {ledger.caps}, spent {ledger.spent}"
        print(
            f"{state}: {ledger.path} of {ledger.owner}, {left}\nkeep copies of it: nothing else knows what was spent"
        )
    return 0


def _show(path: str, contains: str | None) -> int:
    from cbdp.ledger import Ledger, LedgerError

    with Ledger.view(path) as opened:
        try:
            opened.verify()
        except LedgerError as broken:
            return _failed(str(broken))
        print("\n".join(_lines(opened)))
        if contains and not opened.contains(contains):
            return _failed(
                f"{path} does not contain {contains}: it is another ledger, or entries were cut off"
            )
    return 0


def _lines(ledger: Ledger) -> Iterator[str]:
    if ledger.cap.is_unlimited:
        yield f"{ledger.owner}: {ledger.spent} spent in all; cap {ledger.caps}"
    else:
        yield f"{ledger.owner}: {ledger.spent} of {ledger.caps} spent, {ledger.left} left"
    spending = ledger.spending()
    if spending:
        yield from ("", *_table(spending), "")
    if any(charge.covers is not None and charge.covers.first is not None for charge in ledger.charges()):
        yield from (*_person(ledger), "")
    for entry in ledger.entries():
        yield f"{entry.sequence:>5}  {entry.hash[:12]}  {entry.event:<10} {_entry_line(entry)}"
    yield f"the chain is whole; id {ledger.id}, head {ledger.head}"


def _table(spending: dict[str, TotalSpent]) -> list[str]:
    from cbdp.ledger import TotalSpent

    rows = [("data set", "releases", "spent", "of that never published")]
    total = {"in all": sum(spending.values(), TotalSpent())} if len(spending) > 1 else {}
    rows += [(n, str(s.releases), str(s.spent), str(s.unpublished)) for n, s in (spending | total).items()]
    return aligned(rows, right=range(1, 4))


def _person(ledger: Ledger) -> Iterator[str]:
    from cbdp.forecast.status import person_lines
    from cbdp.ledger.windows import privacy_statement

    return person_lines(privacy_statement(ledger.charges()), ledger.caps)


def _entry_line(entry: Entry) -> str:
    shown = {name: text for name, text in entry.shown.items() if name not in ("request", "ledger")}
    return ", ".join(f"{name} {text[:MAX_FIELD_CHARACTERS]}" for name, text in shown.items())


def _failed(why: str) -> int:
    print(f"cbdp: {why}", file=sys.stderr)
    return BROKEN_EXIT_CODE
