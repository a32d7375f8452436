"""What `cbdp check` prints: one screen. What is protected, what each table would tell, the account, and warnings last."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from cbdp.app.explain.examples import range_text
from cbdp.app.explain.expected import ExpectedTable
from cbdp.app.explain.laws import LawChoice
from cbdp.app.explain.meaning import believed, level_of
from cbdp.app.explain.numbers import ExpectedNoise, number, percent, sign_of, unmeasured
from cbdp.app.explain.words import retry_lines
from cbdp.app.plan.facts import PlannedRelease
from cbdp.app.printing import aligned
from cbdp.features.calendar import day_dimension
from cbdp.privacy.accounting import in_words
from cbdp.privacy.unit import Person
from cbdp.release.counted import counted
from cbdp.report.text import at_most
from cbdp.report.uses import USES

WIDTH = 100
TIED = "\u00a0%"  # what no line ends before
FROM = "±20 % from"
MUCH = 2  # times as narrow
NAME = 12  # of the column that names each part
TYPICAL = ("a count of", "is published as", "within")
COMMUTER = {"trip": 40, "day": 20, "week": 4}  # of a commuter in a month


def screen(
    plan: PlannedRelease,
    measured: Sequence[ExpectedNoise],
    expected: Sequence[ExpectedTable],
    laws: LawChoice | None,
    warned: Sequence[str],
) -> Iterator[str]:
    """One screen, line by line."""
    yield from _part("Release", _what(plan))
    yield from _part("Protection", _protection(plan))
    yield ""
    yield from _tables(plan, measured, expected)
    yield ""
    yield from _part("Noise", _noise(plan, laws))
    yield from _part("Account", _account(plan))
    yield from _part(
        "Folder", [f"{plan.output}: trips, {len(plan.features.features)} tables, report, manifest"]
    )
    yield ""
    yield "Warnings" if warned else "No warnings."
    yield from wrapped([f"- {warning}" for warning in warned], "  ", "    ")
    yield from wrapped([_more(plan, bool(expected))])


def _part(name: str, lines: Iterable[str]) -> Iterator[str]:
    """Sentences beside the name of what they are about."""
    for n, line in enumerate(lines):
        head = (name if not n else "").ljust(NAME)
        yield from wrapped([line], head, " " * NAME)


def wrapped(lines: Iterable[str], first: str = "", rest: str = "") -> Iterator[str]:
    """Lines of readable length; paths stay whole, and a number keeps its sign."""
    for line in lines:
        for made in textwrap.wrap(
            line.replace(" %", TIED), WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
        ):  # fmt: skip
            yield made.replace(TIED, " %")


def _what(plan: PlannedRelease) -> Iterator[str]:
    universe, noun = plan.universe, counted(plan.universe)
    sizes = " × ".join(f"{len(d):,} {name}" for name, d in universe.dimensions.items())
    yield f"{plan.dataset}: {sizes} = {universe.size:,} combinations" + (
        "" if plan.expected_trips is None else f", about {noun.number(plan.expected_trips)}"
    )
    if plan.slot is None and day_dimension(universe.dimensions) is None:
        yield noun.say("All days in the trips are added up; to tell days apart, state universe.days.")


def _protection(plan: PlannedRelease) -> Iterator[str]:
    claim, unit, noun = plan.mechanism.claim(), plan.unit, counted(plan.universe)
    if not claim.holds:
        yield f"none: {claim}"
        return
    cost = claim.cost
    epsilon = float(cost.epsilon)
    paid = f"ρ = {float(cost.rho):.4g}, so " if cost.currency == "rho" else ""
    delta = f" at δ = {float(cost.delta):.3g}" if cost.delta else ""
    yield f"{paid}ε = {in_words(cost.epsilon)}{delta} for {noun.say(str(unit))}. {level_of(epsilon).said}"
    yield (
        f"Somebody who thinks it 50 % likely that {_question(plan)} can become at most {at_most(believed(0.5, epsilon))} sure"
        + (" (except with a small probability)." if cost.delta else ".")
    )
    many = COMMUTER.get("trip" if not isinstance(unit, Person) else unit.per)
    if many is not None and cost.currency == "epsilon" and not cost.delta:
        what = noun.many if not isinstance(unit, Person) else f"{unit.per}s"
        yield (
            f"{what.capitalize()} of one person add up: for a commuter with {many} {what} in the data, ε = {in_words(many * cost.epsilon)}."
        )


def _question(plan: PlannedRelease) -> str:
    unit = plan.unit
    if not isinstance(unit, Person):
        return f"a certain {counted(plan.universe).one} was made"
    return (
        "a certain person took part"
        if unit.per == "release"
        else f"a person travelled {'on' if unit.per == 'day' else 'in'} a certain {unit.per}"
    )


def _tables(
    plan: PlannedRelease, measured: Sequence[ExpectedNoise], expected: Sequence[ExpectedTable]
) -> Iterator[str]:
    """By table: its share, its noise, and what would be published."""
    noise, told = {n.feature: n for n in measured}, {e.feature: e for e in expected}
    typical = any(e.use is not None for e in expected)  # somebody says how many trips there are
    rows = [["table", "counts", sign_of(plan), "noise"]]
    rows[0] += [*(TYPICAL if typical else ()), *([FROM] if told else ()), *(["good for"] if typical else ())]
    for name in told or noise:
        n, e = noise.get(name), told.get(name)
        size = plan.mechanism.measured_features.size(name)
        row = [name, f"{size:,}", *(("–", "–") if n is None else (number(n.epsilon), f"±{n.half_width:,}"))]
        rows.append([*row, *([] if e is None else _expected(e, typical))])
    last = len(rows[0]) - 1
    yield from aligned(rows, right=[n for n in range(1, len(rows[0])) if n != last or not typical])
    yield from wrapped(map(counted(plan.universe).say, _legend(plan, bool(told), typical)))
    if any(e.half * MUCH < noise[name].half_width for name, e in told.items() if name in noise):
        yield from wrapped(
            ["A range much narrower than the noise: other tables, added up, tell the count better."]
        )
    left = unmeasured(plan)
    if left and not plan.public:
        yield from wrapped([f"Not measured, but added up from the others: {', '.join(left)}."])


def _expected(e: ExpectedTable, typical: bool) -> list[str]:
    """The average count, how it would be published and what that is good for; and from which count on counts are good."""
    good = "all" if e.good == 1 else f"{e.good:,}"
    if not typical:
        return [good]
    use = "" if e.use is None else e.use.name
    return [f"{e.count:,.0f}", range_text(e), percent(e.relative), good, use]


def _legend(plan: PlannedRelease, told: bool, typical: bool) -> Iterator[str]:
    sure = percent(plan.confidence)
    if not told:
        yield f"In trips. Noise holds with {sure} confidence, before tables are made to agree."
        return
    least = f"“{FROM}”: counts of so many trips or more are within 20 %"
    yield f"In trips, with {sure} confidence. “noise”: how far noise alone moves a count; the other tables often make up for some of it. {least}."
    if typical:
        judged = ", ".join(f"“{use.name}” within {percent(use.within)}" for use in USES if use.within <= 1)
        yield (
            f"“a count of”: the average count, trips ÷ counts; by it a table is judged (“good for”: {judged}). “within”: how far off it may be. "
            "Where trips are spread unevenly, many counts are smaller. “singleton”: every combination on its own."
        )
    else:
        yield "State data.expected_trips, a round number, to see what each table is good for."


def _noise(plan: PlannedRelease, either: LawChoice | None) -> Iterator[str]:
    law = getattr(plan.mechanism, "law", "geometric")
    budget = getattr(plan.mechanism, "budget", None)
    shared = f"; budget {budget if isinstance(budget, str) else 'as given'}" if budget is not None else ""
    better = ""
    if either is not None and either.better not in (None, law):
        better = f"; {either.better} noise would have {1 / either.ratio:.2g} times smaller errors (--all)"
    yield f"{plan.mechanism.name}, {law} noise{shared}{better}"


def _account(plan: PlannedRelease) -> Iterator[str]:
    account = plan.account
    cost = account.left - account.after
    left = "" if account.cap.is_unlimited else f", left after it {account.after}"
    state = "" if account.exists else " (does not exist yet)"
    yield f"{account.path.name}{state}: cap {account.caps}, spent {account.spent}, this release {cost}{left}"
    yield from retry_lines(plan)
    if not account.exists:
        yield f"Create it once: cbdp ledger create {plan.config.source.path}"
    if account.finished is not None:
        yield f"An identical request was released to {account.finished.path}: it is returned, nothing is spent."


def _more(plan: PlannedRelease, modelled: bool) -> str:
    said = f"Nothing was spent, and no row of the {counted(plan.universe).many} was read. More: --all, --picture, --json"
    if not modelled:  # there is no page without a model of errors
        return f"{said}."
    return f"{said}; try other settings: cbdp plan {plan.config.source.path} --page plan.html"
