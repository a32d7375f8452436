"""How far every mechanism is off, table by table, on sparse and dense demand, and how ours stands to the best other.

Claim: single trip types are at most 2 % further from the truth than with the best other mechanism in 33 of 39 cases, budget `leaves` (docs/results/accuracy.md).

python -m benchmarks accuracy [--runs 5] [--data weekday,metro] [--mechanisms "P leaves,O5,zeros"] [--epsilon 1,0.1] --out DIR

Data: weekday, weekend (the synthetic city), metro (generated, 60 % full), pooled and busiest (bike trips), corridor, polycentric and
night (generated networks of other shapes), days (weekday, Saturday and Sunday apart), persons (a person's day is protected), and day 1, day 2,
day 3: every run of these takes a day of the bike trips drawn afresh, unless --days-seed repeats a draw. Results are kept
(benchmarks/results) for the version of the code that made them; --keep also takes those of earlier versions, of mechanisms that
are not ours, after repeating one run of each. The page is DIR/accuracy.md, where text around the marks stays; every number is in
DIR/accuracy.csv, and what is made of them in DIR/accuracy/*.csv.
"""

from __future__ import annotations

import argparse
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.harness import command
from benchmarks.harness.beside import tables_beside
from benchmarks.harness.comparison import (
    BALANCED,
    LEAVES,
    OURS,
    Found,
    beside_the_best,
    checked,
    picture,
    sentences,
)
from benchmarks.harness.data import BIKES, BUSIEST, DAYS, PERSONS, POOLED, bike_days, bike_name, dense_name
from benchmarks.harness.elsewhere import NOWHERE
from benchmarks.harness.keep import told
from benchmarks.harness.page import Block, Text, as_markdown, machine, versions
from benchmarks.harness.registry import MECHANISMS, Setup, code_version, prepare
from benchmarks.harness.specs import ERRORS, Spec
from benchmarks.harness.store import Row
from benchmarks.harness.tables import csv_text, summarise
from cbdp.errors import InputError

NAME = "accuracy"
DAY = "day "
ROWS = {
    "weekday": "weekday",
    "weekend": "weekend",
    "metro": dense_name(60),
    "pooled": bike_name(POOLED),
    "busiest": bike_name(BUSIEST),
    **{kind: kind for kind in NOWHERE},
    "days": DAYS,
    "persons": PERSONS,
} | {f"{DAY}{n}": f"bikes, random day {n}" for n in (1, 2, 3)}
PAPERS = ("Lap", "H3", "H4", "H5", "O3", "O4", "O5")
PEERS = ("TopDown 4", "TopDown 5", "TopDown 80 % leaves", "OpenDP tree", "mbi", "mbi 80 % leaves")
SIMPLE = ("zeros", "uniform in zone", "total only")
COMPARED = (*OURS, *PAPERS, *PEERS, *SIMPLE)
DENSE = ("metro", "pooled", "persons")
HEAD = 3  # blocks of the verdicts that are a list of them
BEGIN, END = "<!-- made by the command: begin -->", "<!-- made by the command: end -->"


def options_of(argv: Sequence[str]) -> argparse.Namespace:
    parser = command.parser_of(NAME, __doc__, runs=5, seconds=300.0)
    command.add_folder(parser, "--folder")
    add = parser.add_argument
    add("--data", default=",".join(ROWS), help="the rows, separated by commas (all)")
    add("--mechanisms", default=",".join(COMPARED), help="separated by commas (all)")
    add("--epsilon", default="1,0.1,0.01", help="separated by commas (1,0.1,0.01)")
    add("--days-seed", type=int, help="draw the random days by this number instead of afresh")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    return command.answered(NAME, compare, options_of(argv))


@dataclass(frozen=True)
class Asked:
    """What shall be compared; `dates` are the days of the rows of random days, one for each run."""

    rows: tuple[str, ...]
    mechanisms: tuple[str, ...]
    epsilons: tuple[str, ...]
    runs: int
    dates: Mapping[str, Sequence[str]]

    def data(self, row: str, seed: int) -> str:
        return bike_name(self.dates[row][seed]) if row in self.dates else ROWS[row]

    def specs(self) -> dict[Spec, str]:
        """Every run, and the row it belongs to; slow mechanisms last and with fewer runs."""
        made = {}
        for name in sorted(self.mechanisms, key=lambda m: MECHANISMS[m].slow):
            runs = min(self.runs, MECHANISMS[name].most_runs)
            for row in self.rows:
                for epsilon in self.epsilons:
                    for seed in range(runs):
                        made[Spec(ERRORS, self.data(row, seed), name, epsilon, seed)] = row
        return made


def asked_of(options: argparse.Namespace, folder: str) -> Asked:
    rows, epsilons = command.listed(options.data), command.listed(options.epsilon)
    command.check_known(rows, ROWS, "data")
    for epsilon in epsilons:
        if not epsilon.replace(".", "", 1).isdigit() or float(epsilon) <= 0:
            raise InputError(f"ε is {epsilon!r}: give numbers above 0, separated by commas")
    command.check_numbers(options)
    drawn = [row for row in ROWS if row.startswith(DAY)]
    dates = days(folder, drawn, options.runs, options.days_seed) if set(drawn) & set(rows) else {}
    return Asked(rows, command.listed(options.mechanisms), epsilons, options.runs, dates)


def days(folder: str, rows: Sequence[str], runs: int, seed: int | None) -> dict[str, list[str]]:
    """A day for each run of each row, no day twice, from the operating system's entropy or by a number."""
    if not (Path(folder) / BIKES / "trips.parquet").is_file():
        return {
            row: ["1970-01-01"] * runs for row in rows
        }  # left out as every row of these data is, with the reason
    every = bike_days(folder)
    if len(rows) * runs > len(every):
        raise InputError(f"--runs {runs}: there are {len(every)} days to draw {len(rows)} × {runs} of")
    rng = np.random.default_rng(secrets.randbits(128) if seed is None else seed)
    # in the order of runs, so that with the same number fewer runs take the first of the same days
    chosen = [every[i] for i in rng.permutation(len(every))[: len(rows) * runs]]
    return {row: chosen[n :: len(rows)] for n, row in enumerate(rows)}


def compare(options: argparse.Namespace) -> int:
    """Run what is missing, and write the page."""
    folder = command.folder_of(options)
    asked = asked_of(options, folder)
    page = options.out / f"{NAME}.md"
    between(page.read_text("utf-8") if page.exists() else None, "")  # before anything is run
    every = tuple(sorted({d for own in asked.dates.values() for d in own}))
    setup = Setup(folder, command.absolute(options.plugins), days=every)
    prepare(setup)
    command.check_known(asked.mechanisms, MECHANISMS, "mechanism")
    specs = asked.specs()
    rows, absent, kept = command.run_missing(specs, setup, options)
    named = [replace(r, spec=r.spec._replace(data=ROWS[specs[r.spec]])) for r in rows]
    write(asked, named, absent, kept, options)
    return 0


# The page


def write(
    asked: Asked,
    rows: Sequence[Row],
    absent: Mapping[str, str],
    kept: Mapping[str, str],
    options: argparse.Namespace,
) -> None:
    """The tables, between the marks of a page that is there or as a page of their own; and the numbers as CSV."""
    found = Found(rows, [ROWS[r] for r in asked.rows], asked.epsilons, asked.mechanisms)
    tallies, verdicts = checked(found, [ROWS[r] for r in asked.rows if r not in DENSE])
    out: Path = options.out.absolute()
    said = sentences(tallies)
    first: list[Block] = [*picture(found, out), *([Text(said)] if said else [])]
    short = [
        *first,
        Text(
            f"Error per trip type before rounding, in trips: {LEAVES} · {BALANCED} · the best other mechanism."
        ),
        beside_the_best(found),
        *head(asked, rows, kept, options),
        *verdicts,
        *command.mechanisms_table(found.mechanisms),
        *command.what_is_missing(summarise(found.rows), absent),
    ]
    out.mkdir(parents=True, exist_ok=True)
    page = out / f"{NAME}.md"
    made = tables_beside(as_markdown(short, out), page)
    text = between(page.read_text("utf-8") if page.exists() else None, made)
    page.write_text(text, encoding="utf-8")
    (out / f"{NAME}.csv").write_text(csv_text(summarise(rows)), encoding="utf-8")
    print(as_markdown(verdicts[:HEAD], out), end="")
    print(f"{page} and {NAME}.csv are written", file=sys.stderr)


def between(page: str | None, made: str) -> str:
    """The page with what is made between its marks.

    >>> print(between("# Mine\\n" + BEGIN + "\\nold\\n" + END + "\\nend\\n", "new\\n").replace(BEGIN, "(").replace(END, ")"))
    # Mine
    (
    new
    )
    end
    <BLANKLINE>
    """
    if page is None:
        return f"# Accuracy\n\n{BEGIN}\n{made}{END}\n"
    if BEGIN not in page or END not in page:
        raise InputError(
            f"the page that is there has no line {BEGIN!r} and {END!r}: add them, or write elsewhere"
        )
    return page.partition(BEGIN)[0] + f"{BEGIN}\n{made}{END}" + page.partition(END)[2]


def head(
    asked: Asked, rows: Sequence[Row], kept: Mapping[str, str], options: argparse.Namespace
) -> list[Block]:
    seed = "" if options.days_seed is None else f" --days-seed {options.days_seed}"
    typed = f"python -m benchmarks {NAME} --runs {asked.runs}{seed}"
    first = (
        f"Written by `{typed}`: means over runs ± standard errors, the same seeds for every mechanism. "
        "Errors are root mean squares over a table's elements, in trips."
    )
    lines = [first]
    if asked.dates:
        lines.append(f"{len({d for own in asked.dates.values() for d in own})} random days were drawn.")
    if told(rows, kept):
        lines.append(told(rows, kept))
    lines.append(f"Machine: {machine()}. Packages: {versions()}. Version of the code: `{code_version()}`.")
    return [Text(" ".join(lines))]
