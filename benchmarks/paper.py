"""The evidence on one page: errors by ε, Table 2, the Laplace pathology, times, dense and real demand, all mechanisms.

Claim: which of the published paper's statements hold here (docs/results/benchmarks.md).

python -m benchmarks paper [--runs 50] [--smoke] [--jobs N] [--out docs/results]

Results are kept (benchmarks/results) for the version of the code that made them: a run that was stopped goes on where it
was. Errors on trips of your own (--config) are as private as the trips.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.harness import command
from benchmarks.harness.beside import tables_beside
from benchmarks.harness.keep import told
from benchmarks.harness.page import Block, Heading, Picture, Text, as_html, as_markdown, machine, versions
from benchmarks.harness.registry import DATA, MECHANISMS, Setup, code_version, prepare
from benchmarks.harness.sections import NEEDS, SECTIONS, SMOKE, Results, Size, mechanisms_of, most_runs, plan
from benchmarks.harness.tables import csv_text, summarise
from cbdp.errors import InputError

TITLE = "Benchmarks: the paper's evidence, measured again"
NAME = "paper"
PAGE = "benchmarks"
OTHERS = (
    "- [accuracy](accuracy.md): every mechanism beside the posterior estimator, on sparse and dense demand\n"
    "- [fleets](transit.md): services sized on private demand, Table 1 and Figure 5(c), (d)\n"
    "- [the engine](engine-benchmarks.md): solvers, scaling, universes to 10¹² types, noise, intervals, 100 million trips\n"
    "- [Table 2 and what explains the differences](ablation.md)\n"
    "- [Opal's tables](opal.md)"
)


def options_of(argv: Sequence[str]) -> argparse.Namespace:
    parser = command.parser_of(NAME, __doc__, runs=50, seconds=120.0)
    command.add_folder(parser, "--data")
    add = parser.add_argument
    add("--smoke", action="store_true", help="everything once or twice: about a minute")
    add("--config", nargs="*", default=[], help="configurations whose trips are tried as well")
    add("--tntp", nargs="*", default=[], help="trip tables in TNTP format that are tried as well")
    add("--mechanisms", help="only these, separated by commas (H5 and O5(a), say: 'H5,O5(a)')")
    add("--sections", help=f"only these, separated by commas: {','.join(SECTIONS)}")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    return command.answered(NAME, evidence, options_of(argv))


def evidence(options: argparse.Namespace) -> int:
    """Run what is missing, and write the page."""
    command.check_numbers(options)
    setup = setup_of(options)
    prepare(setup)
    size = SMOKE if options.smoke else replace(Size(), runs=options.runs, few=min(options.runs, Size.few))
    chosen = named(options.mechanisms, mechanisms_of(size), MECHANISMS, "mechanism")
    sections = named(options.sections, tuple(SECTIONS), SECTIONS, "section")
    needed = dict.fromkeys(n for s in sections for n in (s, *NEEDS.get(s, ())))
    extra = [d.name for d in DATA.values() if d.origin or d.private or d.name.endswith(".tntp")]
    experiments = plan(size, chosen, needed, extra)
    most = most_runs(size)
    rows, absent, kept = command.run_missing([s for e in experiments for s in e.specs(most)], setup, options)
    results = Results(summarise(rows), size, options.out.absolute(), chosen)
    write(results, sections, absent, options, told(rows, kept))
    return 0


def setup_of(options: argparse.Namespace) -> Setup:
    tntp = command.absolute(options.tntp)
    for path in (*tntp, *options.config):
        if not Path(path).is_file():
            raise InputError(f"{path!r} is not there: give the path of a file")
    return Setup(
        command.folder_of(options), command.absolute(options.plugins), command.absolute(options.config), tntp
    )


def named(given: str | None, usual: tuple[str, ...], known: Collection[str], what: str) -> tuple[str, ...]:
    """The names in a list, or the usual ones."""
    if given is None:
        return usual
    names = command.listed(given)
    command.check_known(names, known, what)
    return names


def write(
    results: Results,
    sections: Sequence[str],
    absent: Mapping[str, str],
    options: argparse.Namespace,
    earlier: str = "",
) -> None:
    """The page as Markdown and HTML, its figures, and its numbers as CSV."""
    said = [block for name in sections for block in SECTIONS[name](results)]
    first = opening(results, said)
    rest = [block for block in said if not any(block is shown for shown in first)]
    blocks = [Heading(TITLE, 1), *first, *head(results, options, earlier), *rest, *tail(results, absent)]
    out = results.out
    out.mkdir(parents=True, exist_ok=True)
    page = out / f"{PAGE}.md"
    page.write_text(tables_beside(as_markdown(blocks, out), page), encoding="utf-8")
    (out / f"{PAGE}.html").write_text(as_html(blocks, TITLE), encoding="utf-8")
    (out / f"{PAGE}.csv").write_text(csv_text(results.found), encoding="utf-8")
    print(f"{out / PAGE}.md, .html and .csv are written", file=sys.stderr)
    for claim, holds, figures in results.checks:
        print(f"- {claim}: {verdict(holds)} ({figures})")


def opening(results: Results, said: Sequence[Block]) -> list[Block]:
    """A figure, and what was found in three sentences."""
    pictures = [block for block in said if isinstance(block, Picture)]
    errors = [block for block in pictures if block.path.stem == "errors"] or pictures
    held = sum(holds for _, holds, _ in results.checks)
    count = f" Of {len(results.checks)} statements that can be checked here, {held} hold and {len(results.checks) - held} do not."
    return [
        *errors[:1],
        Text(
            "The mechanism of [the paper](../explanation/bibliography.md#fioretto-2018) was built anew and measured beside every rival of the paper and some others, on a synthetic city with the "
            "published numbers of trips and types."
            + (count if results.checks else "")
            + " Where nearly all trip types are empty it is nearer to the truth than noise on each type; where most of them have trips, it is not."
        ),
    ]


def verdict(holds: bool) -> str:
    return "yes" if holds else "NO"


def head(results: Results, options: argparse.Namespace, earlier: str = "") -> list[Block]:
    size = results.size
    typed = f"python -m benchmarks {NAME}" + (" --smoke" if options.smoke else f" --runs {options.runs}")
    said: list[Block] = [
        Text(
            f"Written by `{typed}`: {size.runs} runs of each mechanism at each ε on the synthetic city, {size.few} elsewhere, "
            "seeds from 0 on; peers fewer, and these and other trees on the weekday only. The city is synthetic "
            "(`cbdp.datasets.ann_arbor(seed=0)`, 8–10 am): its number of trips, types and busy types are the published ones, its "
            "demand is not."
        ),
    ]
    if options.smoke:
        said.append(
            Text(
                "**A smoke run: too few runs to conclude from.** Slow mechanisms and some sizes are left out."
            )
        )
    if any(DATA[d].private for d in results.cases):
        said.append(Text("**This page holds errors on private trips: do not publish it.**"))
    made = f"Machine: {machine()}. Packages: {versions()}. Version of the code: `{code_version()}`."
    said += [Text(f"{made} {earlier}".strip()), Text("Other pages:"), Text(OTHERS)]
    if results.checks:
        said += [
            Heading("What holds"),
            Text("\n".join(f"- {c}: **{verdict(h)}** ({f})" for c, h, f in results.checks)),
        ]
    return said


def tail(results: Results, absent: Mapping[str, str]) -> list[Block]:
    used = dict.fromkeys(g[2] for g in results.found)
    fleets = Text(
        "Fleets sized on private demand (Table 1, Figure 5(c), (d)) are on [a page of their own](transit.md), written by "
        "`python -m benchmarks transit`."
    )
    return [*command.mechanisms_table(used), fleets, *command.what_is_missing(results.found, absent)]
