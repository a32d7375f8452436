"""The evidence on one page: errors by ε, Table 2, the Laplace pathology, times, dense and real demand, all mechanisms.

python -m benchmarks paper [--runs 50] [--smoke] [--jobs N] [--out docs]

Results are kept (benchmarks/results) for the version of the code that made them: a run that was stopped goes on where it
was. Errors on trips of your own (--config) are as private as the trips.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.harness.keep import keepable, told
from benchmarks.harness.page import Block, Heading, Text, as_html, as_markdown, machine, versions
from benchmarks.harness.registry import DATA, MECHANISMS, ROOT, Setup, code_version, prepare
from benchmarks.harness.runner import run
from benchmarks.harness.sections import NEEDS, SECTIONS, SMOKE, Results, Size, mechanisms_of, most_runs, plan
from benchmarks.harness.specs import Limits
from benchmarks.harness.store import Store
from benchmarks.harness.tables import Table, csv_text, failures, summarise
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
    parser = argparse.ArgumentParser(
        prog="benchmarks paper", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=50, help="runs of each mechanism at each ε (50)")
    parser.add_argument("--smoke", action="store_true", help="everything once or twice: about a minute")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at once (one per core)")
    parser.add_argument(
        "--out", type=Path, default=Path("docs"), help="folder of the page and its figures (docs)"
    )
    parser.add_argument(
        "--store", type=Path, default=ROOT / "benchmarks" / "results", help="folder of the results"
    )
    parser.add_argument(
        "--data", help="folder of real data (CBDP_DATA, or ../shared/data beside the project)"
    )
    parser.add_argument(
        "--config", nargs="*", default=[], help="configurations whose trips are tried as well"
    )
    parser.add_argument(
        "--tntp", nargs="*", default=[], help="trip tables in TNTP format that are tried as well"
    )
    parser.add_argument(
        "--with", nargs="*", default=[], dest="plugins", help="Python files that register more"
    )
    parser.add_argument(
        "--mechanisms", help="only these, separated by commas (H5 and O5(a), say: 'H5,O5(a)')"
    )
    parser.add_argument("--sections", help=f"only these, separated by commas: {','.join(SECTIONS)}")
    parser.add_argument(
        "--keep",
        action="store_true",
        help="take results of earlier versions of the code, after repeating one run of each mechanism",
    )
    parser.add_argument("--seconds", type=float, default=120.0, help="limit of one run (120)")
    parser.add_argument("--memory", type=float, default=4.0, help="limit of one run in GiB (4)")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    options = options_of(argv)
    try:
        return evidence(options)
    except InputError as wrong:
        print(f"benchmarks paper: {wrong}", file=sys.stderr)
        return 2


def evidence(options: argparse.Namespace) -> int:
    """Run what is missing, and write the page."""
    if options.runs < 1 or (options.jobs or 1) < 1:
        raise InputError(f"--runs {options.runs} --jobs {options.jobs}: both are at least 1")
    setup = setup_of(options)
    prepare(setup)
    size = SMOKE if options.smoke else replace(Size(), runs=options.runs, few=min(options.runs, Size.few))
    chosen = named(options.mechanisms, mechanisms_of(size), MECHANISMS, "mechanism")
    sections = named(options.sections, tuple(SECTIONS), SECTIONS, "section")
    needed = dict.fromkeys(n for s in sections for n in (s, *NEEDS.get(s, ())))
    extra = [d.name for d in DATA.values() if d.origin or d.private or d.name.endswith(".tntp")]
    experiments = plan(size, chosen, needed, extra)
    limits = Limits(options.seconds, int(options.memory * 2**30))
    most, store = most_runs(size), Store(options.store)
    specs = [s for e in experiments for s in e.specs(most)]
    kept = keepable(specs, store, setup, limits, options.jobs) if options.keep else {}
    rows, absent = run(specs, store, setup, limits, options.jobs, kept)
    results = Results(summarise(rows), size, options.out.absolute(), chosen)
    write(results, sections, absent, options, told(rows, kept))
    return 0


def setup_of(options: argparse.Namespace) -> Setup:
    folder = options.data or os.environ.get("CBDP_DATA") or Setup.folder
    files = {k: tuple(str(Path(f).absolute()) for f in getattr(options, k)) for k in ("plugins", "tntp")}
    for path in (*files["tntp"], *options.config):
        if not Path(path).is_file():
            raise InputError(f"{path!r} is not there: give the path of a file")
    configs = tuple(str(Path(f).absolute()) for f in options.config)
    return Setup(str(Path(folder).absolute()), files["plugins"], configs, files["tntp"])


def named(
    given: str | None, usual: tuple[str, ...], known: Mapping[str, object], what: str
) -> tuple[str, ...]:
    """The names in a list, or the usual ones."""
    if given is None:
        return usual
    names = tuple(n.strip() for n in given.split(","))
    for name in names:
        if name not in known:
            raise InputError(f"unknown {what} {name!r}: there are {', '.join(known)}")
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
    blocks = [*head(results, options, earlier), *said, *tail(results, absent)]
    out = results.out
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{PAGE}.md").write_text(as_markdown(blocks, out), encoding="utf-8")
    (out / f"{PAGE}.html").write_text(as_html(blocks, TITLE), encoding="utf-8")
    (out / f"{PAGE}.csv").write_text(csv_text(results.found), encoding="utf-8")
    print(f"{out / PAGE}.md, .html and .csv are written", file=sys.stderr)
    for claim, holds, figures in results.checks:
        print(f"- {claim}: {verdict(holds)} ({figures})")


def verdict(holds: bool) -> str:
    return "yes" if holds else "NO"


def head(results: Results, options: argparse.Namespace, earlier: str = "") -> list[Block]:
    size = results.size
    command = f"python -m benchmarks {NAME}" + (" --smoke" if options.smoke else f" --runs {options.runs}")
    said: list[Block] = [
        Heading(TITLE, 1),
        Text(
            f"Written by `{command}`: {size.runs} runs of each mechanism at each ε on the synthetic city, {size.few} elsewhere, "
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
    said: list[Block] = [
        Heading("The mechanisms"),
        Table(["mechanism", "what it is"], [[m, MECHANISMS[m].what] for m in used], words=True),
        Text(
            "Fleets sized on private demand (Table 1, Figure 5(c), (d)) are on [a page of their own](transit.md), written by "
            "`python -m benchmarks transit`."
        ),
    ]
    wrong = failures(results.found)
    if wrong.rows:
        said += [Heading("Runs that did not end well"), wrong]
    if absent:
        lines = "\n".join(f"- {name}: {why}" for name, why in absent.items())
        said += [Heading("Left out"), Text(lines)]
    return said
