"""What each command does with its arguments. Everything slow is imported by the command that needs it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cbdp.app.cli import COMMANDS, UNUSUAL
from cbdp.errors import InputError

if TYPE_CHECKING:
    from cbdp.release import Release
    from cbdp.trips import Counts


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
    from cbdp.datasets.practice import files

    folder.mkdir(parents=True, exist_ok=True)
    made = files()
    for name in made:
        check_new(folder / name, internal=False)
    for name, text in made.items():
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
    from cbdp.app.init import told, write

    path = write(
        options.out,
        options.trips,
        options.stops,
        preset=options.preset,
        time_format=options.time_format,
        count_taps=options.count_taps,
    )
    print("\n".join(told(path)))
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
        from cbdp.app.config import read
        from cbdp.app.inspecting.judging import Accepted, judge
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
            judge=judge(_say, Accepted(options.accept_dropped, options.accept_unusual)),
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
