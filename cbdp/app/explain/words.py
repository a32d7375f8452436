"""What a plan means in words: the sections that `cbdp check` prints."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from cbdp.app.explain import gaps as told
from cbdp.app.explain.changes import change_remarks, change_table, title
from cbdp.app.explain.laws import law_choice, law_remarks, law_table
from cbdp.app.explain.numbers import (
    ExpectedNoise,
    choices,
    epsilon_for,
    number,
    percent,
    sign_of,
    told_by_others,
    trips_text,
    unmeasured,
)
from cbdp.app.explain.running import running_lines
from cbdp.app.inspecting.tables import read_as_trips, unused_counts
from cbdp.app.plan import Plan
from cbdp.app.plan.account import missing
from cbdp.app.plan.bought import GUESS, unbought
from cbdp.app.printing import aligned
from cbdp.errors import InputError
from cbdp.estimate.public import MEANING
from cbdp.features import SINGLETON, TOTAL, FeatureDag
from cbdp.privacy.accounting import curve, in_words
from cbdp.privacy.claim import Claim
from cbdp.privacy.unit import RELEASE, Person

WIDTH = 110


def words(plan: Plan, measured: Sequence[ExpectedNoise]) -> Iterator[str]:
    """What `cbdp check` prints, line by line."""
    table, remarks = _noise_table(plan, measured), _noise_remarks(plan)
    warned = [f"- {warning}" for warning in warnings(plan, measured)] or ["none"]
    written = [f"{plan.output}/", *(f"  {file}" for file in files(plan))]
    yield from _section("What would be released", _wrapped(_what(plan)))
    yield from _section("How strongly it is protected", _wrapped(_protection(plan)))
    if isinstance(plan.unit, Person):
        changes = [*change_table(plan, plan.unit), "", *_wrapped(change_remarks(plan.unit))]
        yield from _section(title(plan.unit), changes)
    yield from _section(
        "What is counted (each table is made of those below it)", tree(plan.features).split("\n")
    )
    yield from _section(f"Noise at {percent(plan.confidence)} confidence", [*table, "", *_wrapped(remarks)])
    if choices(plan):
        yield from _section(
            "What budgets would do: expected error of a count in trips",
            [*_choice_table(plan), "", *_wrapped(_choice_remarks(plan))],
        )
    either = law_choice(plan)
    if either is not None:
        yield from _section(
            "What either law of noise would do", [*law_table(either), "", *_wrapped(law_remarks(either))]
        )
    running = running_lines(plan)
    if running:
        yield from _section(
            "What running totals would cost, and do", [p for n in running for p in _wrapped([n]) or [""]]
        )
    found = told.gaps(plan)
    if found:
        yield from _section("What no table tells apart", _wrapped(f"- {gap}" for gap in found))
    yield from _section("Account", _wrapped(_account(plan)))
    yield from _section("What would be written", written)
    yield from _section("Warnings", _wrapped(warned))
    yield from _section("The same tables as a Mermaid graph", plan.features.mermaid().split("\n"))
    yield "Nothing was spent, nothing was written, and no row of the trips was read."


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    yield title
    yield from (f"  {line}".rstrip() for line in lines)
    yield ""


def _wrapped(lines: Iterable[str]) -> list[str]:
    """Sentences on lines of readable length; paths and hashes stay whole."""
    return [
        part
        for line in lines
        for part in textwrap.wrap(
            line, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    ]


def _what(plan: Plan) -> list[str]:
    universe = plan.universe
    sizes = " × ".join(f"{len(d):,} {name}" for name, d in universe.dimensions.items())
    zeros = f", less {', '.join(' = '.join(of) for of, _ in universe.zeros)}" if universe.zeros else ""
    between = [n for n in plan.features.features if n not in (SINGLETON, TOTAL)]
    tables = f", and tables by {', '.join(between)}" if between else ""
    lines = [
        f"The trips of data set {plan.dataset!r}, counted by {', '.join(universe.dimensions)}{tables}.",
        f"Universe: {sizes}{zeros}: {universe.size:,} trip types. Trips outside it are left out.",
    ]
    if plan.stops is not None:
        zones = f" in {len(set(plan.stops.zone))} zones" if plan.stops.zone else ""
        lines.append(f"Public stops: {len(plan.stops):,}{zones}.")
    for name, column in plan.columns.items():
        if name != column:
            lines.append(f"{name} is read from the column {column!r}.")
    if plan.about is not None:
        said = [f"{name} {text!r}" for name, text in plan.about.texts().items()]
        lines.append(f"It says about itself: {', '.join(said)}.")
    return lines


def _protection(plan: Plan) -> list[str]:
    claim, unit = plan.mechanism.claim(), plan.unit
    if not claim.holds:
        return [f"Mechanism {plan.mechanism.name}: {claim}."]
    whom = "any one trip"
    if isinstance(unit, Person):
        whose = "any one person" if unit.per == RELEASE else f"any one {unit.per} of any one person"
        whom = f"{whose} (up to {unit.max_trips} trips)"
    if claim.cost.currency == "rho":
        odds = _concentrated(claim, whom)
    else:
        factor = f"e^{number(claim.cost.epsilon)} = {math.exp(min(700.0, float(claim.cost.epsilon))):.3g}"
        odds = (
            f"In words: whether {whom} is in the data changes the odds of any conclusion by at most a factor {factor}"
            + (f", but for a chance of {float(claim.cost.delta):.1e}." if claim.cost.delta else ".")
        )
    lines = [
        f"Mechanism {plan.mechanism.name}: {claim}.",
        odds,
    ]
    if isinstance(unit, Person):
        lines += _bounding(unit)
    if plan.public:
        lines.append(f"Public already: {', '.join(plan.public)}. {MEANING}")
    return lines


def _concentrated(claim: Claim, whom: str) -> str:
    """What ρ means at the δ that is stated, and at others."""
    cost = claim.cost
    others = [f"e^{in_words(e)} at δ = {float(d):.0e}" for e, d in curve(cost.rho)[::4] if d != cost.delta]
    return (
        f"In words: whether {whom} is in the data changes the chance of any conclusion by at most a factor e^{in_words(cost.epsilon)} = "
        f"{math.exp(min(700.0, float(cost.epsilon))):.3g}, plus δ = {float(cost.delta):.0e}. δ is how far the factor may be exceeded: keep it well below "
        f"one over the number of riders. The same promise at other δ: {', '.join(others)}."
    )


def _bounding(unit: Person) -> list[str]:
    """What of a person's trips is counted, and what is not protected."""
    lines = [
        f"Of a person with more than {unit.max_trips} trips{unit.period}, {unit.max_trips} chosen at random are counted."
    ]
    if unit.bought is not None:
        lines.append(
            f"How many are counted is bought for ε = {number(unit.bought.epsilon)} of the release's ε, as what "
            f"{percent(float(unit.bought.quantile))} of persons do not exceed; the rest is for the tables."
        )
    if unit.apart is not None:
        lines.insert(
            0,
            f"Of trips of a person with the same {unit.apart} (and day, where days are counted), one chosen at random is counted.",
        )
    if unit.per != RELEASE:
        lines.append(
            f"What is protected is one {unit.per} of a person, not a habit: over several {unit.per}s of the release, ε adds up."
        )
    return lines


def _noise_table(plan: Plan, measured: Sequence[ExpectedNoise]) -> list[str]:
    told = plan.expected_trips is not None
    rows = [
        ("table", "elements", sign_of(plan), "scale", "margin", *(("trips each", "relative") if told else ()))
    ]
    for n in measured:
        row = (
            n.feature,
            f"{n.elements:,}",
            number(n.epsilon),
            f"{float(n.scale):,.3g}",
            f"±{n.half_width:,}",
        )
        rows.append((*row, *((trips_text(n.expected), percent(n.relative)) if told else ())))
    return aligned(rows, right=range(1, len(rows[0])))


def _choice_table(plan: Plan) -> list[str]:
    made = choices(plan)
    rows = [("budget", *plan.features.features)]
    for n, (name, errors) in enumerate(made.items()):
        mark = f"{name} (configured)" if n == 0 else name
        rows.append((mark, *(f"{errors[f]:,.3g}" for f in plan.features.features)))
    return aligned(rows, right=range(1, len(rows[0])))


def _choice_remarks(plan: Plan) -> Iterator[str]:
    yield "Root mean square errors by a model of noise and post-processing that knows public facts only; uniform is the paper's."
    if plan.expected_trips is None:
        yield "How far small counts are shrunk is not known: state data.expected_trips, and data.expected_filled if known."
    yield from plan.mechanism.remarks()


def _noise_remarks(plan: Plan) -> Iterator[str]:
    yield "Margins are in trips: how far the noise alone moves a count, before post-processing makes the tables agree."
    if plan.expected_trips is not None:
        yield (
            f"Trips each: about {plan.expected_trips:,} trips spread evenly; elements with more have less relative noise."
        )
    else:
        yield "Relative noise is not known: state a public order of magnitude, like data.expected_trips = 100000."
    left = unmeasured(plan)
    if left:
        yield f"Published but not measured on their own: {', '.join(left)}. They add up from the others."


def _account(plan: Plan) -> list[str]:
    account = plan.account
    state = "" if account.exists else " (does not exist yet)"
    cost = account.left - account.after
    left = "" if account.cap.is_unlimited else f", left after it {account.after}"
    lines = [
        f"Ledger {account.path}{state} of {account.owner}",
        f"cap {account.caps}, spent {account.spent}, this release {cost}{left}",
    ]
    if not account.exists:
        said = missing(plan.config, account)
        lines.append(f"{said[0].upper()}{said[1:]}.")
    if account.unpublished.nano:
        lines.append(
            f"Of what was spent, {account.unpublished} went to runs that were never published. It stays spent: "
            "docs/threat-model.md says why."
        )
    if account.finished is not None:
        lines.append(
            f"An identical request was released to {account.finished.path}: it is returned, nothing is spent."
        )
    lines.append(f"Request {plan.asked}")
    return lines


def warnings(plan: Plan, measured: Sequence[ExpectedNoise]) -> Iterator[str]:
    claim = plan.mechanism.claim()
    if not claim.holds:
        yield f"{plan.mechanism.name} with these settings is {claim}; `cbdp release` refuses it"
    bound = plan.config.output.noise_bound
    for n in measured:
        if n.relative is not None and n.relative > bound and not told_by_others(plan, n, bound):
            yield (
                f"{n.feature}: expected relative noise {percent(n.relative)} is above the bound of {percent(bound)} "
                f"(output.noise_bound); {_cure(plan, n.feature, bound)}"
            )
    if len(plan.features.features) == 2 and plan.mechanism.asks_tables:
        yield "there is no table between the total and single trip types: add a [[feature]] or a preset"
    if not plan.account.exists and plan.config.privacy.cap is None:
        yield (
            f"privacy.cap is not stated: the ledger will be created with a cap of {plan.account.cap}, so that no "
            "second release fits"
        )
    for gap in told.missing(told.gaps(plan)):
        yield str(gap)
    if unbought(plan.config, plan.universe, plan.columns, plan.clock, plan.unit):
        yield f"max_trips is bought by `cbdp choose`, which was not done yet: what is shown goes by {GUESS}"
    if plan.public and isinstance(plan.unit, Person):
        yield (
            f"privacy.public states {', '.join(plan.public)}, and at most {plan.unit.max_trips} trips of each person{plan.unit.period} are counted: if "
            "the public counts are of all trips, the release is scaled up to them"
        )
    counts = None if plan.schema is None else unused_counts(plan.schema, plan.columns, plan.unit)
    if counts is not None:
        cause = read_as_trips(counts)
        yield f"{cause.what}: {cause.cure}; `cbdp release` stops otherwise"
    if plan.account.forgotten:
        yield f"`cbdp release` will refuse: {plan.account.forgotten}"
    if plan.account.unfinished:
        yield "an identical request was charged and never released: unless its folder is whole, it is charged again"


def _cure(plan: Plan, feature: str, bound: float) -> str:
    try:
        needed = number(epsilon_for(plan, feature, repr(bound)))
    except InputError:
        return f"no {sign_of(plan)} meets it with this budget: use another, or a coarser table"
    return f"to meet it {sign_of(plan)} would have to be {needed}, or the table coarser"


def files(plan: Plan) -> tuple[str, ...]:
    """What a release would write, inside its folder, and what is exported from it."""
    tables = [f"features/{name}.parquet" for name in plan.features.features]
    exports = [f"and beside it {plan.output.name}-{name}" for name in plan.exports]
    return ("trips.parquet", *tables, "universe/", "manifest.json", "report.html", *exports)


def tree(features: FeatureDag) -> str:
    """The DAG as an indented tree, coarse above fine; a table with several above it is drawn in full once.

    >>> from cbdp.features import Feature, Universe
    >>> print(tree(FeatureDag(Universe(origin=["A", "B"], time=["am", "pm"]), [Feature("time", by="time")])))
    total: everything (1)
    `- time: time (2)
       `- singleton: origin × time (4)
    """
    finer: dict[str, list[str]] = {name: [] for name in features.features}
    for fine, coarse in features.edges:
        finer[coarse].append(fine)
    drawn: set[str] = set()

    def draw(name: str, first: str, rest: str) -> Iterator[str]:
        if name in drawn:
            yield f"{first}{name} (as above)"
            return
        drawn.add(name)
        by = " × ".join(features.features[name].by) or "everything"
        yield f"{first}{name}: {by} ({features.size(name):,})"
        for child in finer[name]:
            last = child == finer[name][-1]
            yield from draw(child, rest + ("`- " if last else "|- "), rest + ("   " if last else "|  "))

    return "\n".join(draw(TOTAL, "", ""))
