"""The case study's Table 1 and Figure 5(c)(d): fleets sized on private demand, tried on the real riders.

Claim: fleets sized on constraint-based demand are close to those sized on real trips; those on Laplace noise are several times too large (docs/results/transit.md).

python -m benchmarks transit [--runs 10] [--sections table,epsilon] [--mechanisms O5,NAME --with FILE] [--kept]
python -m benchmarks transit --page docs/results/transit.md --figures docs/results/figures
python -m benchmarks transit --speed

For each private data set D̃ a fleet F(D̃) is sized and then run on the real riders, O(F(D̃), D): relative errors of shuttles,
mean wait and mean idle time against F(D) and O(F(D), D). The synthetic city stands for Ann Arbor, 8–10 am. Finished fleets
are kept (benchmarks/results/transit): a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.harness.registry import ROOT
from benchmarks.transit.plan import Plan
from benchmarks.transit.published import MECHANISMS, TABLE_1
from cbdp.errors import InputError

SECTIONS: Mapping[str, str] = {
    "table": "Table 1 at ε = 1, with signs and by zone",
    "epsilon": "Figure 5(c)(d): shuttles and wait over ε, and where no fleet is found",
    "ours": "the posterior estimator over ε, beside O5",
    "tail": "heavier and lighter tails of demand",
    "mix": "what the features can know",
    "rule": "the limit for each half hour or for the two hours",
    "volume": "more trips, or trips on more types; other operations",
    "service": "what more shuttles do for the riders",
    "tree": "the order of the trees",
}


def options_of(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks transit", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10, help="data sets of each mechanism at each ε (10)")
    parser.add_argument("--many", type=int, default=50, help="of light mechanisms in Table 1 (50)")
    parser.add_argument("--few", type=int, default=1, help="of heavy mechanisms that only explain (1)")
    parser.add_argument("--days", default="weekday,weekend", help="which days, with a comma between")
    parser.add_argument("--mechanisms", default=",".join(MECHANISMS), help="of the harness, by name")
    parser.add_argument("--with", nargs="*", default=[], dest="plugins", help="files that register more")
    parser.add_argument("--sections", default=",".join(SECTIONS), help=f"of {','.join(SECTIONS)}")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once (1)")
    parser.add_argument("--figures", type=Path, help="folder for the figures (none)")
    parser.add_argument(
        "--page", type=Path, help="a page whose tables are written anew, as docs/results/transit.md"
    )
    parser.add_argument(
        "--kept", action="store_true", help="size nothing: tables of the fleets that are kept"
    )
    parser.add_argument("--store", type=Path, default=ROOT / "benchmarks" / "results" / "transit")
    parser.add_argument("--speed", action="store_true", help="how long F(D) takes, and nothing else")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    options = options_of(argv)
    try:
        if options.speed:
            return timing(options.page)
        return evidence(options)
    except InputError as wrong:
        print(f"benchmarks transit: {wrong}", file=sys.stderr)
        return 2


def timing(page: Path | None) -> int:
    """How long fleets take to size."""
    from benchmarks.transit.page import fill
    from benchmarks.transit.speed import speed

    text = speed()
    print(f"# How long fleets take to size\n\n{text}")
    if page:
        fill(page, {"speed": text})
    return 0


def evidence(options: argparse.Namespace) -> int:
    """Size what is missing, and print the tables."""
    from benchmarks.transit.contestants import known, load
    from benchmarks.transit.drawing import draw
    from benchmarks.transit.jobs import run
    from benchmarks.transit.page import fill
    from benchmarks.transit.results import Results
    from benchmarks.transit.tables import told

    for name in ("runs", "many", "few", "jobs"):
        if getattr(options, name) < 1:
            raise InputError(f"--{name} {getattr(options, name)}: give at least 1")
    sections = _listed(options.sections, SECTIONS, "section")
    days = _listed(options.days, TABLE_1, "day")
    load(tuple(str(Path(f).absolute()) for f in options.plugins))
    names = tuple(n.strip() for n in options.mechanisms.split(","))
    for name in names:
        known(name)
    plan = Plan(days, names, options.runs, options.many, options.few)
    jobs = [job for s in ("table", *sections) for job in getattr(plan, s)()]
    results = Results(run(jobs, options.store, options.jobs, only_kept=options.kept), plan)
    texts = {section: "\n\n".join(told(results, section)) for section in sections}
    print("# Fleets sized on private demand: synthetic city, 8–10 am\n")
    for section, text in texts.items():
        print(f"## {section.capitalize()}: {SECTIONS[section]}\n\n{text}\n")
    if options.page:
        fill(options.page, texts)
    for path in draw(results, options.figures, sections) if options.figures else ():
        print(f"{path} is drawn", file=sys.stderr)
    return 0


def _listed(given: str, there: Mapping[str, object], what: str) -> tuple[str, ...]:
    names = tuple(n.strip() for n in given.split(","))
    for name in names:
        if name not in there:
            raise InputError(f"unknown {what} {name!r}: there are {', '.join(there)}")
    return names
