"""InfTDA's own ground: its synthetic origin–destination sets and a country of its size, its measures, and ours beside it.

Claim: at the same ε and without δ, our error is lower at nearly every level of InfTDA's own data (docs/results/inftda.md).

python -m benchmarks inftda [--sets "binary sparse,country"] [--runs 3] [--rival-runs 10] [--out docs/results]
python -m benchmarks inftda --page        the page again from the numbers that are kept
python -m benchmarks inftda --smoke       small sets, in seconds

Numbers are kept in OUT/inftda.csv. What is run replaces its own there, and the rest stays: sets and budgets may be run one by one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.harness import command
from benchmarks.inftda.demand import Demand
from benchmarks.inftda.trials import Row
from cbdp.errors import InputError

COUNTRY = "country"
SMALL = ("small tree", "small country")
SMALL_SIZES: Mapping[str, int] = {"regions": 3, "provinces": 7, "places": 60, "filled": 400, "trips": 9000}


def options_of(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks inftda", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--sets", help="which sets, with a comma between (all six and the country)")
    add("--epsilons", default="0.1,1,10", help="with a comma between (0.1,1,10)")
    add("--budgets", default="levels,leaves", help="how ε is shared: levels, or a budget of cbdp's")
    add("--runs", type=int, default=3, help="releases of ours at each ε (3; 0: none anew)")
    add("--rival-runs", type=int, default=10, help="releases of InfTDA at each ε (10; 0: none anew)")
    add(
        "--out",
        type=Path,
        default=Path("docs/results"),
        help="folder of the page, its figure, its numbers (docs/results)",
    )
    add("--page", action="store_true", help="run nothing: the page from the numbers that are kept")
    add("--smoke", action="store_true", help="two small sets, one run of each")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    return command.answered("inftda", run, options_of(argv))


def run(options: argparse.Namespace) -> int:
    """Run what is asked, keep the numbers, write the page."""
    from benchmarks.inftda import page, tables, trials

    if min(options.runs, options.rival_runs) < 0 or options.runs + options.rival_runs == 0:
        raise InputError(
            f"--runs {options.runs}, --rival-runs {options.rival_runs}: give at least 1 of either"
        )
    kept = options.out / f"{page.NAME}.csv"
    rows = [] if options.smoke else trials.read(kept)
    for name in () if options.page else wanted(options):
        for new in trials.trials(named(name), *asked(options)):
            rows = ordered(trials.merged(rows, new))
            trials.write(kept, rows)  # at once, so that a run that is stopped loses little
    found = tables.Found(trials.read(kept))
    if not found.rows:
        raise InputError(f"no numbers are kept in {kept}: leave out --page")
    written = page.write(found, hierarchies(found.data), "python -m benchmarks inftda", options.out)
    print("\n\n".join(table.markdown() for table in (tables.ratios(found, page.MAIN), tables.times(found))))
    print(f"\n{page.worse(tables.compared(found, page.MAIN))}")
    print(f"{written} is written", file=sys.stderr)
    return 0


def asked(options: argparse.Namespace) -> tuple[list[str], list[str], int, int]:
    """Values of ε, budgets, and how many releases of ours and of the rival's."""
    runs = (1, 1) if options.smoke else (options.runs, options.rival_runs)
    return options.epsilons.split(","), options.budgets.split(","), *runs


def every() -> list[str]:
    from benchmarks.inftda.sets import six

    return [*six(), COUNTRY]


def wanted(options: argparse.Namespace) -> list[str]:
    if options.smoke:
        return list(SMALL)
    names = every() if options.sets is None else [name.strip() for name in options.sets.split(",")]
    for name in names:
        if name not in every():
            raise InputError(f"unknown set {name!r}: there are {', '.join(every())}")
    return names


def ordered(rows: Sequence[Row]) -> list[Row]:
    """In the order of the sets, the rival first, whichever was run last."""
    from benchmarks.inftda.trials import BUDGETS, RIVAL, ours_named

    sets = [*every(), *SMALL]
    mechanisms = [RIVAL, *map(ours_named, BUDGETS)]

    def place(row: Row) -> tuple[int, float, int]:
        known = row.mechanism in mechanisms
        return sets.index(row.data), float(row.epsilon), mechanisms.index(row.mechanism) if known else 9

    return sorted(rows, key=place)


def hierarchies(data: Sequence[str]) -> dict[str, Demand]:
    """The hierarchies that these sets lie in, each once."""
    from benchmarks.inftda.country import empty

    made: dict[str, Demand] = {}
    for name in data:
        tree = name.split()[0] if name.split()[0] in ("binary", "random") else name
        if tree not in made:
            made[tree] = empty() if name == COUNTRY else named(name)
    return made


def named(name: str) -> Demand:
    """A set by its name, drawn anew."""
    from dataclasses import replace

    from benchmarks.inftda.country import Country, country
    from benchmarks.inftda.sets import demand as of_six
    from benchmarks.inftda.sets import small

    if name == COUNTRY:
        return country()
    if name == SMALL[0]:
        return small(name)
    if name == SMALL[1]:
        return replace(country(Country(**SMALL_SIZES)), name=name)
    return of_six(name)
