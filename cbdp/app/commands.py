"""The commands: what each is given, and what it does with it. Everything slow is imported by the command that needs it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import get_completion_class

from cbdp import __version__
from cbdp.app.cli import (
    COMPLETION_VARIABLE,
    FILE,
    FOLDER,
    HELP_WIDTH,
    REFUSED,
    ProgramGroup,
    argument,
    name_of,
    option,
)
from cbdp.errors import InputError
from cbdp.parts import Parts, did_you_mean
from cbdp.text import aligned

if TYPE_CHECKING:
    from cbdp.app.fleet.riders import FleetRules
    from cbdp.app.plan import Plan
    from cbdp.config import Config
    from cbdp.counting import Counts
    from cbdp.forecast.calendar import Slot
    from cbdp.ledger import Entry, Ledger, TotalSpent
    from cbdp.release import Release
    from cbdp_features.places import Stops

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


def say(text: str) -> None:
    with suppress(OSError, ValueError):  # a terminal that is gone must not end a release that was paid for
        print(text, file=sys.stderr, flush=True)


config_argument = argument("config", "configuration file", type=FILE)
release_argument = argument("release", "folder of a release", type=FOLDER)
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
    from cbdp.app.stopping import Interrupts

    return run(epsilon, out, say, quick=quick, interrupts=Interrupts(say))


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
    from cbdp.app.new_file import check_new, write_new
    from cbdp.config import read
    from cbdp.report.markup import INTERNAL_WARNING

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
    from cbdp.app.new_file import check_new, write_new
    from cbdp.forecast.page import page_facts
    from cbdp.forecast.plan_page import build

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
    from cbdp.app.series.continuity import last_ended_day
    from cbdp.forecast.calendar import due_slots, pending

    return next(iter(pending(config, due_slots(config, last_ended_day(config)))), None)


def _place_in_series(path: str, plan: Plan) -> Iterator[str]:
    """Where a release stands in its series."""
    if plan.slot is None:
        return
    from cbdp.app.series.continuity import last_ended_day
    from cbdp.config import read
    from cbdp.forecast.status import status_of

    config = read(path)  # the plan's is that of one release
    yield ""
    yield f"This is release {plan.slot.label} of a series:"
    yield from status_of(config, last_ended_day(config)).lines()


def _check_wish(wish: str) -> None:
    from cbdp.privacy.numbers import positive

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
    from cbdp.app.trips import requested_quantile
    from cbdp.config import read

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
    from cbdp.app.stopping import Interrupts

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


@program.group()
def series() -> None:
    """Make the releases of a series that are due, or show what is made, due and spent."""


series_argument = argument("config", "configuration file with [series]", type=FILE)
until_option = option(
    "--until",
    metavar="DAY",
    about="make or show what is due at the end of this day (default: the last service day that is over)",
)


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
    from cbdp.app.stopping import INTERRUPTED_EXIT_CODE, Interrupts

    with Interrupts(say):  # before anything slow is loaded
        from cbdp.app.publish import silent
        from cbdp.app.series import run_series
        from cbdp.app.series.continuity import check_over, until_of
        from cbdp.config import read
        from cbdp.counting.reading import number_of

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


@series.command("status")
@series_argument
@until_option
def series_status(config: str, until: str | None) -> int:
    """Say what is made, due and spent, and what it costs one person."""
    from cbdp.app.series.continuity import until_of
    from cbdp.config import read
    from cbdp.forecast.status import status_of

    settings = read(config)
    print("\n".join(status_of(settings, until_of(settings, until)).lines()))
    return 0


@series.command("page")
@option("--out", metavar="FILE", required=True, type=FILE, about="the new HTML file")
@series_argument
@until_option
def series_page(out: str, config: str, until: str | None) -> int:
    """Write a page with every release of the series."""
    from cbdp.app.new_file import check_new, write_new
    from cbdp.app.series.command import page_of
    from cbdp.app.series.continuity import until_of
    from cbdp.config import read
    from cbdp.forecast.status import status_of

    path = Path(out)
    check_new(path, internal=False)
    settings = read(config)
    write_new(path, page_of(settings, status_of(settings, until_of(settings, until)), say))
    print(path)
    return 0


@program.group(default="show")
def ledger() -> None:
    """Create a ledger, or show what was spent and verify it; exit 1 if it is broken."""


BROKEN_EXIT_CODE = 1  # of a chain that does not verify


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


@ledger.command("show")
@argument("path", "ledger file", type=FILE)
@option("--contains", metavar="HEAD", about="also check that the ledger head of a manifest is in it")
def show_ledger(path: str, contains: str | None) -> int:
    """Show what was spent and verify the chain (`cbdp ledger FILE` does the same)."""
    from cbdp.ledger import Ledger, LedgerError

    with Ledger.view(path) as opened:
        try:
            opened.verify()
        except LedgerError as broken:
            say(f"cbdp: {broken}")
            return BROKEN_EXIT_CODE
        print("\n".join(_ledger_lines(opened)))
        if contains and not opened.contains(contains):
            say(f"cbdp: {path} does not contain {contains}: it is another ledger, or entries were cut off")
            return BROKEN_EXIT_CODE
    return 0


MAX_FIELD_CHARACTERS = 40  # characters of an entry's field; longer ones are cut


def _ledger_lines(ledger: Ledger) -> Iterator[str]:
    from cbdp.forecast.status import person_lines
    from cbdp.ledger.windows import privacy_statement

    if ledger.cap.is_unlimited:
        yield f"{ledger.owner}: {ledger.spent} spent in all; cap {ledger.caps}"
    else:
        yield f"{ledger.owner}: {ledger.spent} of {ledger.caps} spent, {ledger.left} left"
    spending = ledger.spending()
    if spending:
        yield from ("", *_spending_table(spending), "")
    if any(charge.covers is not None and charge.covers.first is not None for charge in ledger.charges()):
        yield from (*person_lines(privacy_statement(ledger.charges()), ledger.caps), "")
    for entry in ledger.entries():
        yield f"{entry.sequence:>5}  {entry.hash[:12]}  {entry.event:<10} {_entry_line(entry)}"
    yield f"the chain is whole; id {ledger.id}, head {ledger.head}"


def _spending_table(spending: dict[str, TotalSpent]) -> list[str]:
    from cbdp.ledger import TotalSpent

    rows = [("data set", "releases", "spent", "of that never published")]
    total = {"in all": sum(spending.values(), TotalSpent())} if len(spending) > 1 else {}
    rows += [(n, str(s.releases), str(s.spent), str(s.unpublished)) for n, s in (spending | total).items()]
    return aligned(rows, right=range(1, 4))


def _entry_line(entry: Entry) -> str:
    shown = {name: text for name, text in entry.shown.items() if name not in ("request", "ledger")}
    return ", ".join(f"{name} {text[:MAX_FIELD_CHARACTERS]}" for name, text in shown.items())


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
    from cbdp.app.new_file import check_new, write_new
    from cbdp.release import load
    from cbdp.report import build
    from cbdp.report.markup import INTERNAL_WARNING

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


WHOLE_TOTAL = "all"  # a share of all trips that meet the conditions
format_option = option(
    "--format", "form", type=click.Choice(("text", "csv", "json")), default="text", about="default: text"
)
out_option = option("--out", metavar="FILE", type=FILE, about="write it to a new file")


@program.command()
@release_argument
@option("--by", default="", metavar="ATTRIBUTES", about="for example origin.zone,destination.zone")
@option(
    "--where",
    multiple=True,
    metavar="CONDITION",
    about="'time<10:00', 'origin=A,B', 'day!=sunday' or 'origin+destination=A+B,B+C'; may be given several times",
)
@option(
    "--share-of",
    metavar="ATTRIBUTES",
    about=f"some of --by, or {WHOLE_TOTAL}: also tell which share of the trips with the same values each count is",
)
@option("--confidence", type=float, default=0.9, about="of the intervals (default: 0.9)")
@option(
    "--sharp/--no-sharp",
    about="intervals about the estimate where these are narrower; they hold fewer of the largest counts, and take seconds to minutes",
)
@format_option
@out_option
@option("--csv", "csv_file", metavar="FILE", type=FILE, about="short for --format csv --out FILE")
def ask(
    release: str,
    by: str,
    where: tuple[str, ...],
    share_of: str | None,
    confidence: float,
    sharp: bool,
    form: str,
    out: str | None,
    csv_file: str | None,
) -> int:
    """Answer any question about a release, with intervals and shares; spends nothing."""
    from cbdp.app.answers import answer_csv, answer_json, answer_text
    from cbdp.app.new_file import check_new, write_new
    from cbdp.progress import in_quarters, watched
    from cbdp.release import load

    if csv_file and (out or form != "text"):
        raise InputError("--csv FILE is short for --format csv --out FILE: give one of both")
    form, place = ("csv", csv_file) if csv_file else (form, out)
    if place is not None:
        check_new(Path(place), internal=False)
    whole = None if share_of is None else () if share_of.strip() == WHOLE_TOTAL else _names(share_of)
    quarter = in_quarters(say if sys.stderr.isatty() else lambda _: None)
    with watched(lambda stage, done: quarter(stage, done) if stage == "runs" else None):
        answer = load(release).ask(_names(by), where, confidence, whole, sharp)
    text = {"text": answer_text, "csv": answer_csv, "json": answer_json}[form](answer)
    if place is not None:
        write_new(Path(place), text)
        print(place)
    else:
        sys.stdout.write(text)
    if form == "csv":  # a table has no room for sentences
        for note in answer.notes:
            print(note, file=sys.stderr)
    return 0


def _names(listed: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in listed.split(",") if name.strip())


@dataclass(frozen=True)
class AskedComparison:
    """What is compared, and where that is written."""

    by: str
    where: tuple[str, ...]
    confidence: float
    form: str
    out: str | None
    page: str | None

    def __post_init__(self) -> None:
        """Places that are taken are refused before the work begins."""
        from cbdp.app.new_file import check_new

        for path in filter(None, (self.out, self.page)):
            check_new(Path(path), internal=False)

    def of(self, first: Sequence[Release], second: Sequence[Release]) -> int:
        from cbdp.app.answers import change_csv, change_json, change_page, change_text
        from cbdp.app.new_file import write_new
        from cbdp.progress import in_quarters, watched
        from cbdp.release.comparison import compare

        quarter = in_quarters(say)
        with watched(lambda stage, done: quarter(stage, done) if stage == "runs" else None):
            changes = compare(first, second, _names(self.by), self.where or None, self.confidence)
        text = {"text": change_text, "csv": change_csv, "json": change_json}[self.form](changes)
        if self.page:
            write_new(Path(self.page), change_page(changes, (first, second), self.where or None))
            print(self.page)
        if self.out:
            write_new(Path(self.out), text)
            print(self.out)
        elif not self.page:
            sys.stdout.write(text)
        return 0


def comparison_options(command: Callable[..., int]) -> Callable[..., int]:
    """What is asked of two sides, and where the answer goes."""
    for decorated in (
        option("--page", metavar="FILE", type=FILE, about="write a page for people to a new HTML file"),
        out_option,
        format_option,
        option("--confidence", type=float, default=0.9, about="of intervals and verdicts (default: 0.9)"),
        option(
            "--where",
            multiple=True,
            metavar="CONDITION",
            about="as in cbdp ask: 'time<10:00', 'origin=A,B'; may be given several times",
        ),
        option("--by", default="", metavar="ATTRIBUTES", about="for example origin.zone,time"),
    ):
        command = decorated(command)
    return command


several = "folder of a release; several, joined by commas, are added up"


@program.command()
@argument("first", several, metavar="RELEASE", type=FOLDER)
@argument("second", "the later one, likewise", metavar="RELEASE", type=FOLDER)
@comparison_options
def compare(first: str, second: str, **asked: Any) -> int:
    """Say how counts changed between releases, and what noise can explain; spends nothing."""
    comparison = AskedComparison(**asked)
    return comparison.of(_side(first), _side(second))


def _side(argument: str) -> list[Release]:
    from cbdp.release import load

    places = [argument] if Path(argument).exists() else [p.strip() for p in argument.split(",") if p.strip()]
    if not places:
        raise InputError(f"{argument!r} names no release: give its folder")
    return [load(place) for place in places]


@series.command("compare")
@series_argument
@until_option
@argument("first", "2026-03-02, 2026-W10, 2026-03 or 2026-03-02..2026-03-08", metavar="SPAN")
@argument("second", "the later one, likewise", metavar="SPAN")
@comparison_options
def compare_spans(config: str, until: str | None, first: str, second: str, **asked: Any) -> int:
    """Say how counts changed between two spans of days."""
    from cbdp.app.series.command import releases_in
    from cbdp.app.series.continuity import until_of
    from cbdp.config import read
    from cbdp.forecast.status import status_of

    comparison = AskedComparison(**asked)
    settings = read(config)
    status = status_of(settings, until_of(settings, until))
    return comparison.of(releases_in(status, first), releases_in(status, second))


EXPORT_CONFIDENCE = 0.9  # of intervals that are exported
EXPORT_OPTIONS = {
    "level": "add stops up to this attribute, for example zone",
    "zones": "omx: a file with the zones of another program, one on each line or in the column zone: matrices get their order, "
    "and those without trips",
    "places": "stops with coordinates (CSV, GTFS or GeoJSON), where the release has none",
    "network": "sumo: a network (.net.xml); writes a folder that od2trips and duarouter run on",
    "edges": "sumo: the streets of each place (CSV: place, edge) instead of those nearest to its stops",
    "mode": "matsim: the mode of all trips, where the release has none",
    "crs": "matsim: the coordinate system of x and y, for example EPSG:32617 (metres); by default longitude and latitude",
    "origin": "the dimension with the origins, if it is not called origin",
    "destination": "the dimension with the destinations, if it is not called destination",
}
FILE_OPTIONS = ("zones", "places", "network", "edges")


def export_options(command: Callable[..., int]) -> Callable[..., int]:
    for name, about in reversed(EXPORT_OPTIONS.items()):
        taken: Mapping[str, Any] = {"metavar": "FILE", "type": FILE} if name in FILE_OPTIONS else {}
        command = option(f"--{name}", about=about, **taken)(command)
    return command


def _export_formats() -> list[str]:
    from cbdp.release.export import FORMATS

    return list(FORMATS.names())


@program.command()
@release_argument
@option(
    "--format",
    "form",
    type=name_of(_export_formats),
    metavar="FORMAT",
    about=lambda: (
        f"{', '.join(_export_formats())} (default: what the ending of --out says, for example .omx)"
    ),
)
@option(
    "--out", required=True, type=FILE, about="where to write it: a file or a folder that does not exist yet"
)
@option(
    "--intervals",
    type=float,
    is_flag=False,
    flag_value=EXPORT_CONFIDENCE,
    metavar="CONFIDENCE",
    about=f"also low and high of every count, at this confidence (default: {EXPORT_CONFIDENCE})",
)
@export_options
def export(release: str, form: str | None, out: str, **options: Any) -> int:
    """Write a release in the format of another program; spends nothing."""
    from cbdp.release import load
    from cbdp.release.export import FORMATS, ending_format
    from cbdp.release.export import export as written

    chosen = FORMATS.get(form or ending_format(out))
    settings = {name: value for name, value in options.items() if value is not None}
    chosen.check_options(settings)
    published = load(release)
    if "places" in settings:
        settings["places"] = _stops(published, settings["places"], settings.get("origin", "origin"))
    print(written(published, out, chosen, **settings))
    return 0


def _stops(release: Release, path: str, origin: str) -> Stops:
    from cbdp_features.places import stops

    dimensions = release.features.universe.dimensions
    whole = origin in dimensions and all(isinstance(v, int) for v in dimensions[origin].values)
    return stops(Path(path), ids=int if whole else str)


# Shuttle fleets on a release


@program.group()
def fleet() -> None:
    """Size shuttle fleets on a release, compare with the real trips."""


def _plugin_names(kind: str) -> list[str]:
    from cbdp.transit.plugins import PLUGIN_TABLES

    return list(PLUGIN_TABLES[kind].names())


def _built_in_city() -> str:
    from cbdp.app.fleet.riders import BUILT_IN

    return (
        f"a table of stops (CSV: stop, lat and lon or x and y, and optionally zone and hub), a GTFS folder or zip, or {BUILT_IN} (default: "
        "the stops of the release, with its zones; a hub in the middle of each, and a bus every 10 minutes between them)"
    )


def _units() -> str:
    from cbdp.transit.city import KM, KM_PER_UNIT

    return f"of x and y in a table of stops: {' or '.join(KM_PER_UNIT)} (default: {KM})"


def _driving(what: str, name: str) -> str:
    from cbdp.transit.city import Driving
    from cbdp.transit.city_sources import URBAN_DRIVING

    usual, built_in = getattr(URBAN_DRIVING, name), getattr(Driving(), name)
    return f"{what} (default: {usual:g}; the built-in city: {built_in:g})"


def _default_rule(text: str, name: str) -> str:
    from cbdp.app.fleet.riders import FleetRules

    return text.format(getattr(FleetRules(), name))


COMMAND_OR_NAME = "package.module:attribute or command:…"
RULES = (
    option("--city", type=FILE, about=_built_in_city),
    option("--lines", type=FILE, about="bus lines of a city from CSV: line, stop, headway"),
    option("--times", type=FILE, about="travel times of a city from CSV: from, to, seconds"),
    option(
        "--zones", type=FILE, about="zones of a GTFS feed's stops: CSV with stop, zone, and optionally hub"
    ),
    option("--units", about=_units),
    option("--hours", about="part of the day, for example 08:00-10:00"),
    option(
        "--sizer",
        type=name_of(lambda: _plugin_names("sizer")),
        about=lambda: f"plug-in that sizes the fleet: {', '.join(_plugin_names('sizer'))}, {COMMAND_OR_NAME}",
    ),
    option(
        "--dispatcher",
        type=name_of(lambda: _plugin_names("dispatcher")),
        about=lambda: (
            f"plug-in that assigns riders to shuttles: {', '.join(_plugin_names('dispatcher'))}, {COMMAND_OR_NAME}"
        ),
    ),
    option(
        "--modes",
        type=name_of(lambda: _plugin_names("modes")),
        about=lambda: (
            f"plug-in that says how each trip is served: {', '.join(_plugin_names('modes'))} or package.module:attribute"
        ),
    ),
    option("--speed", type=float, about=lambda: _driving("of shuttles, in km/h", "speed")),
    option(
        "--detour",
        type=float,
        about=lambda: _driving("length of a way, as a multiple of the straight line", "detour"),
    ),
    option("--only", multiple=True, metavar="DIMENSION=VALUE", about="trips of one day, day type …"),
    option(
        "--limit",
        type=int,
        about=lambda: _default_rule("longest mean wait, in seconds (default: {})", "limit"),
    ),
    option(
        "--period",
        type=int,
        about=lambda: _default_rule(
            "length in seconds of the parts of the day that keep the limit (default: {}; 0: only the day as a whole)",
            "period",
        ),
    ),
    option("--seed", type=int, about="seed for the seconds at which trips begin (default: 0)"),
    option("--page", metavar="HTML", type=FILE, about="also write a picture of the service"),
)


def rules_options(command: Callable[..., int]) -> Callable[..., int]:
    """How a fleet is to serve, and where."""
    for decorated in reversed(RULES):
        command = decorated(command)
    return command


def _rules(options: Mapping[str, Any]) -> FleetRules:
    from cbdp.app.fleet.riders import FleetRules

    return FleetRules(**{name: value for name, value in options.items() if value is not None})


@fleet.command("size")
@argument("source", "folder of a release, or a configuration (reads real trips: internal)", type=FILE)
@rules_options
def size_fleet(source: str, page: str | None, **rules: Any) -> int:
    """Size a fleet on a release, run it, print its service."""
    from cbdp.app.fleet import size

    return size(source, _rules(rules), page=page)


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
    """A release's fleet on the real trips: the paper's Table 1 row."""
    from cbdp.app.fleet import compare

    return compare(release, trips, _rules(rules), page=page)


def _plugin_kinds() -> list[str]:
    from cbdp.transit.plugins import PLUGIN_TABLES

    return sorted(PLUGIN_TABLES)


@fleet.command("check-plugin")
@argument("kind", lambda: ", ".join(_plugin_kinds()), type=name_of(_plugin_kinds))
@argument("name", "its name, package.module:attribute, or command:…")
@option("--seconds", type=float, default=60.0, about="limit for each answer (default: 60)")
def check_plugin(kind: str, name: str, seconds: float) -> int:
    """Does a plug-in keep the rules? Exit code 1 if not."""
    from cbdp.app.fleet import print_checks

    return print_checks(kind, name, seconds=seconds)


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
    from cbdp.app.audit.run import audit_release, check_output_path, lines
    from cbdp.app.new_file import write_new
    from cbdp.audit.page import build
    from cbdp.progress import in_quarters, watched

    outputs = [Path(p) for p in (out, json_file) if p is not None]
    for path in outputs:
        check_output_path(path, Path(release), sensitive=trips is not None)
    if len({p.absolute() for p in outputs}) < len(outputs):
        raise InputError(f"--out and --json both name {str(outputs[0])!r}: choose two files")
    with watched(in_quarters(say)) if sys.stderr.isatty() else nullcontext():
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
