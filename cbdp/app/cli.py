"""The program `cbdp`: the commands that touch trips or ledger, beside those of `cbdp.commands`, which see neither.

What each is given, and what it does with it. Everything slow is imported by the command that needs it.

Exit code 0: done; 1: a check or an audit failed, or a release after its charge; 2: bad usage or input, nothing was spent;
130: interrupted.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import get_completion_class

from cbdp import __version__
from cbdp.commands.fleets import fleet, rules_of, rules_options
from cbdp.commands.listing import ledger, part_rows
from cbdp.commands.program import (
    COMPLETION_VARIABLE,
    FILE,
    FOLDER,
    HELP_WIDTH,
    REFUSED,
    ProgramGroup,
    argument,
    name_of,
    option,
    release_argument,
    run,
    say,
)
from cbdp.commands.releases import ask, compare, export
from cbdp.commands.series import series, series_argument, until_option
from cbdp.errors import InputError
from cbdp.parts import Parts, did_you_mean
from cbdp.text import aligned

if TYPE_CHECKING:
    from cbdp.app.plan import Plan
    from cbdp.config import Config
    from cbdp.counting import Counts
    from cbdp.forecast.calendar import Slot
    from cbdp.release import Release

# what users want to do, and the commands for it, in the order in which they are used
SECTIONS: Mapping[str, tuple[str, ...]] = {
    "Start": ("demo", "init", "inspect"),
    "Release": ("check", "plan", "choose", "release", "series", "ledger"),
    "Look at a release": ("report", "ask", "compare", "export", "fleet"),
    "Prove": ("audit",),
    "More": ("parts", "completion"),
}


@click.group(
    "cbdp",
    cls=ProgramGroup,
    sections=SECTIONS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": HELP_WIDTH},
    epilog="Exit code 0: done. 1: a check or an audit failed, or a release after its charge. 2: bad usage or input, "
    "nothing was spent. 130: interrupted.",
)
@click.version_option(__version__, message="cbdp %(version)s")
@click.pass_context
def program(context: click.Context) -> int:
    """Publish how many people travel from where to where and when, with noise that protects each of them (differential privacy).
    All tables add up; counts are whole and never negative.
    """
    if context.invoked_subcommand is None:
        print(context.get_help())
    return REFUSED


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; our own errors become one line on standard error."""
    return run(program, argv)


for published in (ask, compare, export, fleet, ledger, series):
    program.add_command(published)


config_argument = argument("config", "configuration file", type=FILE)
create_ledger_option = option(
    "--create-ledger", is_flag=True, about="create the ledger: for the first release of these trips only"
)
accept_unusual_option = option(
    "--accept-unusual",
    is_flag=True,
    about="go on also if rows are repeated, days have none, trips are many more or fewer than data.expected_trips, or times are in UTC; "
    "see `cbdp inspect` first",
)


def accept_dropped_option(about: str) -> Callable[[Any], Any]:
    return option("--accept-dropped", is_flag=True, about=f"{about}; see `cbdp inspect` first")


# Start: a demonstration, a first configuration, a look at the trips


@program.command()
@option("--epsilon", default="1", about="privacy budget (default: 1)")
@option("--quick", is_flag=True, about="two hours of the city: done in seconds")
@option("--out", type=FOLDER, about="folder for its files (default: cbdp-demo, or cbdp-demo-quick)")
@option(
    "--files",
    type=FOLDER,
    metavar="FOLDER",
    about="only write files to practise with: stops, and invented trips as trips, counts and taps",
)
def demo(epsilon: str, quick: bool, out: str | None, files: str | None) -> int:
    """Do the whole job on an invented city, or write files to practise with."""
    if files:
        return _practice_files(Path(files))
    from cbdp.app.demo import demo as run
    from cbdp.commands.stopping import Interrupts

    return run(epsilon, out, say, quick=quick, interrupts=Interrupts(say))


def _practice_files(folder: Path) -> int:
    from cbdp.commands.program import check_new, write_new
    from cbdp.datasets.practice import practice_files

    folder.mkdir(parents=True, exist_ok=True)
    texts = practice_files()
    for name in texts:
        check_new(folder / name, internal=False)
    for name, text in texts.items():
        write_new(folder / name, text)
        print(f"wrote {folder / name}")
    return 0


@program.command()
@argument(
    "trips",
    "Parquet or CSV file of trips, or a URL; only its column names are read",
    nargs=-1,
    required=True,
    type=FILE,
)
@option("--stops", type=FILE, about="public file of stops: CSV, GTFS (stops.txt, zip), GBFS or GeoJSON")
@option(
    "--preset",
    type=name_of(lambda: PART_KINDS["presets"].table().names()),
    about="the specification that the trips follow; `cbdp parts presets` lists them",
)
@option(
    "--time-format",
    metavar="FORMAT",
    multiple=True,
    about='how times are written, for example "%d/%m/%Y %H:%M" or epoch_s; may be given several times',
)
@option(
    "--count-taps",
    is_flag=True,
    about="of taps of cards: count them by stop, where riders do not tap off; otherwise a tap-on and the next tap-off are a trip",
)
@option("--out", default="cbdp.toml", type=FILE, about="where to write it (default: cbdp.toml)")
def init(
    trips: tuple[str, ...],
    stops: str | None,
    preset: str | None,
    time_format: tuple[str, ...],
    count_taps: bool,
    out: str,
) -> int:
    """Write a commented configuration for your files."""
    from cbdp.app.init import summary_lines, write

    path = write(out, trips, stops, preset=preset, time_format=time_format, count_taps=count_taps)
    print("\n".join(summary_lines(path)))
    return 0


@program.command()
@config_argument
@option(
    "--out",
    type=FILE,
    about="write it to this new file instead, as text or (.html) as a page; never publish it: its name must contain 'internal'",
)
def inspect(config: str, out: str | None) -> int:
    """Show you how your trips are read: which rows count, which do not and why; private."""
    from cbdp.app.inspecting import all_sections, as_page, as_text
    from cbdp.commands.program import check_new, write_new
    from cbdp.config import read
    from cbdp.text import INTERNAL_WARNING

    path = Path(out) if out else None
    if path is not None:
        check_new(path, internal=True)
    parts = all_sections(read(config))
    if path is None:
        print(as_text(parts))
        return 0
    web = path.suffix.lower() in (".html", ".htm")
    write_new(path, as_page(parts) if web else as_text(parts) + "\n", internal=True)
    print(f"{INTERNAL_WARNING}\n{path}")
    return 0


# Release: forecast, charge, publish


@program.command()
@config_argument
@option(
    "--within",
    metavar="FEATURE=PERCENT",
    multiple=True,
    about="also say which ε makes a feature so precise, for example zone=5",
)
@option("--all", "--verbose", "everything", is_flag=True, about="everything, section by section")
@option("--picture", is_flag=True, about="only the tables as a Mermaid graph")
@option("--json", "as_json", is_flag=True, about="only the numbers, for programs")
def check(config: str, within: tuple[str, ...], everything: bool, picture: bool, as_json: bool) -> int:
    """Explain what would be released; spends nothing, reads no trip."""
    if everything + picture + as_json > 1:
        raise click.UsageError("--all, --picture and --json exclude each other: give one of them")
    for wish in within:
        _check_wish(wish)
    from cbdp.forecast import answers, explain
    from cbdp.forecast.check import plan_as_json, wrapped
    from cbdp.forecast.running import running_lines

    plan = plan_of_file(config)
    wish_answers = answers(plan, within)
    explanation = explain(plan)
    if as_json:
        print(json.dumps(plan_as_json(plan, explanation, wish_answers), indent=1, ensure_ascii=False))
        return 0
    if picture:
        print(explanation.mermaid)
        return 0
    body = [explanation.text] if everything else [explanation.screen, *wrapped(running_lines(plan)[:1])]
    print("\n".join([*body, *wrapped(wish_answers), *_place_in_series(config, plan)]))
    return 0


@program.command("plan")
@config_argument
@option(
    "--page", metavar="FILE", default="plan.html", type=FILE, about="where to write it (default: plan.html)"
)
def plan_page(config: str, page: str) -> int:
    """Write a page to choose ε, units, shares, periods and zones with; spends nothing, reads no trip."""
    from cbdp.commands.program import check_new, write_new
    from cbdp.forecast.page import build, page_facts

    path = Path(page)
    check_new(path, internal=False)
    plan = plan_of_file(config, must_fit=False)
    say("working out what other periods and zones would do …")
    write_new(path, build(page_facts(plan)))
    print(f"{path}\nOpen it in a browser: it needs no network, and no trip was read.")
    return 0


def plan_of_file(path: str, *, must_fit: bool = True) -> Plan:
    """What a configuration means; of a series, the next release that is to be made."""
    from cbdp.app.plan import plan
    from cbdp.config import read

    config = read(path)
    return plan(config, None if config.series is None else _next_slot(config), must_fit=must_fit)


def _next_slot(config: Config) -> Slot | None:
    """The next release of a series that is to be made; None: the first."""
    from cbdp.forecast.calendar import due_slots, last_ended_day, pending

    return next(iter(pending(config, due_slots(config, last_ended_day(config)))), None)


def _place_in_series(path: str, plan: Plan) -> Iterator[str]:
    """Where a release stands in its series."""
    if plan.slot is None:
        return
    from cbdp.config import read
    from cbdp.forecast.account import status_of
    from cbdp.forecast.calendar import last_ended_day

    config = read(path)  # the plan's is that of one release
    yield ""
    yield f"This is release {plan.slot.label} of a series:"
    yield from status_of(config, last_ended_day(config)).lines()


def _check_wish(wish: str) -> None:
    from cbdp.numbers import positive

    feature, _, percent = wish.partition("=")
    try:
        positive(percent.replace("%", "").strip())
    except InputError:
        feature = ""
    if not feature:
        raise InputError(f"--within takes FEATURE=PERCENT, for example zone=5, not {wish!r}")


@program.command()
@config_argument
@accept_dropped_option("buy also if fewer than half of the rows count")
@accept_unusual_option
def choose(config: str, accept_dropped: bool, accept_unusual: bool) -> int:
    """Choose max_trips with noise, and charge it to the ledger, where privacy.unit asks for that."""
    from cbdp.app.choosing import buy
    from cbdp.config import read
    from cbdp.forecast.account import requested_quantile

    settings = read(config)
    purchase = buy(settings, accept_dropped=accept_dropped, accept_unusual=accept_unusual)
    bought = requested_quantile(settings)
    assert bought is not None
    paid = (
        f"ε = {bought.epsilon} was charged" if purchase.fresh else "it was bought before, nothing was spent"
    )
    print(f"max_trips = {purchase.max_trips} ({paid})\n{purchase.path}")
    return 0


@program.command()
@config_argument
@create_ledger_option
@accept_dropped_option("release also if fewer than half of the rows count, or of the trips are kept")
@accept_unusual_option
def release(config: str, create_ledger: bool, accept_dropped: bool, accept_unusual: bool) -> int:
    """Publish: count, charge the ledger, measure, solve, round, write."""
    from cbdp.commands.stopping import Interrupts

    with Interrupts(say) as interrupts:  # before anything slow is loaded
        from cbdp.app.inspecting import judged
        from cbdp.app.plan import plan
        from cbdp.app.publish import publish
        from cbdp.config import read
        from cbdp.counting.plausibility import Accepted

        settings = read(config)
        if settings.series is not None:
            raise InputError(
                f"{config} describes a series: run cbdp series run {config}, which makes every release that is due"
            )
        done = publish(
            plan(settings),
            say,
            create_ledger=create_ledger,
            interrupts=interrupts,
            judge=judged(say, Accepted(accept_dropped, accept_unusual)),
        )
        outcome = "released to" if done.fresh else "this request has been released before, nothing was spent:"
        print(f"{outcome} {done.path}\nopen {done.path / 'report.html'}")
    return 0


@series.command("run")
@series_argument
@until_option
@create_ledger_option
@option("--verbose", is_flag=True, about="also tell the stages of each release")
@accept_dropped_option("release also if fewer than half of the rows count, or a period has no trips")
@accept_unusual_option
def series_run(
    config: str,
    until: str | None,
    create_ledger: bool,
    verbose: bool,
    accept_dropped: bool,
    accept_unusual: bool,
) -> int:
    """Make every release that is due and not yet made."""
    from cbdp.commands.stopping import INTERRUPTED_EXIT_CODE, Interrupts

    with Interrupts(say):  # before anything slow is loaded
        from cbdp.app.series import run_series
        from cbdp.config import read
        from cbdp.counting.reading import number_of
        from cbdp.forecast.calendar import check_over, until_of
        from cbdp.progress import silent

        settings = read(config)
        end = until_of(settings, until)
        check_over(settings, end)
    ran = run_series(
        settings,
        end,
        say,
        create_ledger=create_ledger,
        watching=lambda: Interrupts(say),
        accept_dropped=accept_dropped,
        accept_unusual=accept_unusual,
        detail=say if verbose else silent,
    )
    left = ran.due - ran.finished - len(ran.released)
    print(
        f"{number_of(len(ran.released), 'release')} made now; {ran.due} {'is' if ran.due == 1 else 'are'} due by the end of {end}, "
        f"{left} of these {'is' if left == 1 else 'are'} missing"
    )
    if ran.stopped:
        say("stopped after a release: run the command again to go on")
        return INTERRUPTED_EXIT_CODE
    return 0


@ledger.command("create")
@config_argument
def create_ledger(config: str) -> int:
    """Create the ledger that a configuration names, once, before the first release."""
    from cbdp.app.plan import plan
    from cbdp.app.publish import opened
    from cbdp.config import read

    planned = plan(read(config))
    existed = planned.account.exists
    with opened(planned, create=True) as account:
        state = "exists already, nothing was changed" if existed else "created"
        left = f"cap {account.caps}, spent {account.spent}"
        print(
            f"{state}: {account.path} of {account.owner}, {left}\nkeep copies of it: nothing else knows what was spent"
        )
    return 0


# Look at a release: all of it is post-processing of published files, but for what is marked internal


@program.command()
@release_argument
@option("--out", type=FILE, about="where to write it (default: beside the release)")
@option(
    "--internal",
    metavar="CONFIG",
    type=FILE,
    about="compare with the trips; never publish the result, whose name (--out) must contain 'internal'",
)
def report(release: str, out: str | None, internal: str | None) -> int:
    """Write the report of a release, or one for the curator's eyes only."""
    from cbdp.app.internal import build_internal
    from cbdp.commands.program import check_new, write_new
    from cbdp.release import load
    from cbdp.report import build
    from cbdp.text import INTERNAL_WARNING

    published = load(release)
    if internal and not out:
        raise InputError("an internal report shows private counts: say with --out where it may be written")
    place = Path(release).absolute()
    path = Path(out) if out else place.with_name(f"{place.name}-report.html")
    check_new(path, internal=bool(internal))
    if internal:
        write_new(path, build_internal(published, _truth(internal, published)), internal=True)
    else:
        write_new(path, build(published))
    print(f"{INTERNAL_WARNING}\n{path}" if internal else path)
    return 0


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


# Shuttle fleets on a release


@fleet.command("size")
@argument("source", "folder of a release, or a configuration (reads real trips: internal)", type=FILE)
@rules_options
def size_fleet(source: str, page: str | None, **rules: Any) -> int:
    """Size a fleet on a release, run it, print its service."""
    from cbdp.app.fleet import size

    return size(source, rules_of(rules), page=page)


@fleet.command("compare")
@release_argument
@option(
    "--trips",
    required=True,
    metavar="CONFIG",
    type=FILE,
    about="the real trips: a configuration, Parquet or CSV",
)
@rules_options
def compare_fleet(release: str, trips: str, page: str | None, **rules: Any) -> int:
    """A release's fleet on the real trips: its row of Table 1 of Fioretto, Lee and Van Hentenryck (2018)."""
    from cbdp.app.fleet import compare

    return compare(release, trips, rules_of(rules), page=page)


# Prove

TRIPS_OF_CONFIG = "\0"  # --trips without a file; no file has such a name


@program.command()
@argument("release", "folder of a release, or of tables that its audit.toml describes", type=FOLDER)
@option("--ledger", metavar="FILE", type=FILE, about="also check that the release was charged")
@option(
    "--config",
    metavar="CONFIG",
    type=FILE,
    about="the configuration it was made from: checks its ledger and request",
)
@option(
    "--trips",
    is_flag=False,
    flag_value=TRIPS_OF_CONFIG,
    metavar="FILE",
    about="curator only: test the noise against the real trips: those of --config, or of a file or a configuration; "
    "never publish the result, and write 'internal' into the names of its files",
)
@option("--out", metavar="HTML", type=FILE, about="also write the reviewer's page")
@option("--json", "json_file", metavar="JSON", type=FILE, about="also write the findings as JSON")
def audit(
    release: str,
    ledger: str | None,
    config: str | None,
    trips: str | None,
    out: str | None,
    json_file: str | None,
) -> int:
    """Attack a release before others do; exit 1 if a finding contradicts what it claims."""
    from cbdp.app.audit.run import audit_release
    from cbdp.audit.findings import build, lines
    from cbdp.commands.program import check_new_beside, write_new
    from cbdp.progress import shown, silent

    outputs = [Path(p) for p in (out, json_file) if p is not None]
    for path in outputs:
        check_new_beside(path, Path(release), internal=trips is not None)
    if len({p.absolute() for p in outputs}) < len(outputs):
        raise InputError(f"--out and --json both name {str(outputs[0])!r}: choose two files")
    with shown(say if sys.stderr.isatty() else silent):
        done = audit_release(
            release, ledger=ledger, config=config, trips=True if trips == TRIPS_OF_CONFIG else trips
        )
    print("\n".join(lines(done)))
    if json_file is not None:
        write_new(Path(json_file), done.json(), internal=done.sensitive)
    if out is not None:
        write_new(Path(out), build(done), internal=done.sensitive)
        print(f"open {out}")
    return int(done.verdict == "contradicts")


# More


@program.command()
@argument(
    "kind",
    lambda: f"only these: {', '.join(PART_KINDS)}",
    required=False,
    type=name_of(lambda: list(PART_KINDS)),
)
def parts(kind: str | None) -> int:
    """List solvers, mechanisms and all other parts, also of installed packages."""
    print("\n".join(part_lines(kind)))
    return 0


@program.command()
@argument("shell", "bash, zsh or fish", type=click.Choice(("bash", "zsh", "fish")), metavar="SHELL")
def completion(shell: str) -> int:
    """Print what makes a shell complete commands, options and files: eval "$(cbdp completion bash)"."""
    complete = get_completion_class(shell)
    assert complete is not None
    print(complete(program, {}, "cbdp", COMPLETION_VARIABLE).source())
    return 0


# Every kind of part that others may add, and what `cbdp parts` says of each part


@dataclass(frozen=True)
class PartKind:
    """Where the table of a kind is, and which capabilities of its parts are shown: title → attribute."""

    where: str
    shown: Mapping[str, str] = field(default_factory=dict)

    def table(self) -> Parts[Any]:
        module, _, attribute = self.where.partition(":")
        parts: Parts[Any] = getattr(import_module(module), attribute)
        return parts

    def rows(self) -> list[tuple[str, ...]]:
        """A title, and a row for each part."""
        return part_rows(self.table(), self.shown)


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
        yield from (f"  {line}" for line in aligned(PART_KINDS[name].rows()))
        yield ""
