"""What each command does with its arguments. Everything slow is imported by the command that needs it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cbdp.app.cli import COMMANDS
from cbdp.errors import InputError

if TYPE_CHECKING:
    from cbdp.app.config import Config
    from cbdp.app.plan.periods import Slot
    from cbdp.release import Release
    from cbdp.trips import Counts


def _parser(name: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(prog=f"cbdp {name}", description=COMMANDS[name][1])


def demo(argv: Sequence[str]) -> int:
    parser = _parser("demo")
    parser.add_argument("--epsilon", default="1", help="privacy budget (default: 1)")
    parser.add_argument("--quick", action="store_true", help="two hours of the city: done in seconds")
    parser.add_argument("--out", help="folder for its files (default: cbdp-demo, or cbdp-demo-quick)")
    options = parser.parse_args(argv)
    from cbdp.app.demo import demo as run
    from cbdp.app.stopping import Interrupts

    return run(options.epsilon, options.out, _say, quick=options.quick, interrupts=Interrupts(_say))


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
    parser.add_argument("--out", default="cbdp.toml", help="where to write it (default: cbdp.toml)")
    options = parser.parse_args(argv)
    from cbdp.app.init import write

    path = write(
        options.out, options.trips, options.stops, preset=options.preset, time_format=options.time_format
    )
    print(f"wrote {path}: look it over, then run cbdp check {path} and cbdp inspect {path}")
    return 0


def check(argv: Sequence[str]) -> int:
    parser = _parser("check")
    parser.add_argument("config", help="configuration file")
    parser.add_argument(
        "--within",
        metavar="FEATURE=PERCENT",
        action="append",
        default=[],
        help="also say which ε makes a feature so precise, for example zone=5",
    )
    options = parser.parse_args(argv)
    from cbdp.app.config import read
    from cbdp.app.explain import answers, explain
    from cbdp.app.plan import plan

    for wish in options.within:
        _check_wish(wish)
    config = read(options.config)
    planned = plan(config, None if config.series is None else _next_slot(config))
    said = answers(planned, options.within)
    print("\n".join([str(explain(planned)), *said]))
    if planned.slot is not None:
        from cbdp.app.series import status_of
        from cbdp.app.series.today import last_ended_day

        print(
            "\n".join(
                [
                    "",
                    f"This is release {planned.slot.label} of a series:",
                    *status_of(config, last_ended_day(config)).lines(),
                ]
            )
        )
    return 0


def _next_slot(config: Config) -> Slot | None:
    """The next release of a series that is to be made; None: the first."""
    from cbdp.app.plan.periods import due_slots
    from cbdp.app.series.pending import pending
    from cbdp.app.series.today import last_ended_day

    return next(iter(pending(config, due_slots(config, last_ended_day(config)))), None)


def _check_wish(wish: str) -> None:
    from cbdp.privacy.numbers import positive

    feature, _, percent = wish.partition("=")
    try:
        positive(percent.replace("%", "").strip())
    except InputError:
        feature = ""
    if not feature:
        raise InputError(f"--within takes FEATURE=PERCENT, for example zone=5, not {wish!r}")


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
        help="release also if fewer than half of the rows count; see `cbdp inspect` first",
    )
    options = parser.parse_args(argv)
    from cbdp.app.stopping import Interrupts

    with Interrupts(_say) as interrupts:  # before anything slow is loaded
        from cbdp.app.config import read
        from cbdp.app.inspecting.judging import judge
        from cbdp.app.plan import plan
        from cbdp.app.publish import publish

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
            judge=judge(_say, accept=options.accept_dropped),
        )
        made = "released to" if done.fresh else "this request has been released before, nothing was spent:"
        print(f"{made} {done.path}\nopen {done.path / 'report.html'}")
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
    from cbdp.report.markup import INTERNAL

    given = load(options.release)
    if options.internal and not options.out:
        raise InputError("an internal report shows private counts: say with --out where it may be written")
    path = Path(options.out or _beside(options.release))
    check_new(path, internal=bool(options.internal))
    if options.internal:
        write_new(path, build_internal(given, _truth(options.internal, given)), internal=True)
    else:
        write_new(path, build(given))
    print(f"{INTERNAL}\n{path}" if options.internal else path)
    return 0


def _beside(folder: str) -> Path:
    place = Path(folder).absolute()
    return place.with_name(f"{place.name}-report.html")


def _truth(config: str, release: Release) -> Counts:
    from cbdp.app.config import read
    from cbdp.app.plan import plan
    from cbdp.app.plan.periods import slot_of
    from cbdp.trips import count

    given = read(config)
    slot = None if given.series is None or release.series is None else slot_of(given, release.series)
    planned = plan(given, slot)
    return count(
        planned.trips,
        planned.universe,
        columns=planned.columns,
        unit=planned.unit,
        clock=planned.clock,
        days=planned.days,
    )


def export(argv: Sequence[str]) -> int:
    from cbdp.app.config.choices import formats

    parser = _parser("export")
    parser.add_argument("release", help="folder of a release")
    parser.add_argument("--format", required=True, help=", ".join(formats().names()))
    parser.add_argument("--out", required=True, help="where to write it")
    parser.add_argument(
        "--level", help="add stops up to this attribute, for example zone (where the format can)"
    )
    options = parser.parse_args(argv)
    from cbdp.release.export import export as run

    level = {"level": options.level} if options.level else {}
    print(run(options.release, options.out, format=options.format, **level))
    return 0


def parts(argv: Sequence[str]) -> int:
    from cbdp.app.parts import KINDS, lines

    parser = _parser("parts")
    parser.add_argument("kind", nargs="?", metavar="KIND", help=f"only these: {', '.join(KINDS)}")
    options = parser.parse_args(argv)
    print("\n".join(lines(options.kind)))
    return 0


def _say(text: str) -> None:
    with suppress(OSError, ValueError):  # a terminal that is gone must not end a release that was paid for
        print(text, file=sys.stderr, flush=True)
