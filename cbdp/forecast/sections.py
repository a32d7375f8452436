"""What a plan means in words: the sections that `cbdp check --all` prints."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from cbdp.config.sections import format_parts
from cbdp.estimation.invariants import INVARIANTS_NOTE
from cbdp.features import SINGLETON, TOTAL, FeatureDag
from cbdp.forecast import errors as plan_errors
from cbdp.forecast.account import missing_ledger
from cbdp.forecast.alternatives import (
    NoiseComparison,
    change_title,
    noise_comparison_remarks,
    noise_comparison_table,
    sensitivity_remarks,
    sensitivity_table,
)
from cbdp.forecast.errors import (
    ExpectedNoise,
    ExpectedTable,
    errors_by_budget,
    example,
    number,
    percent,
    sign_of,
    trips_text,
    unmeasured,
)
from cbdp.forecast.plan import PlannedRelease
from cbdp.forecast.running import running_lines
from cbdp.privacy.accounting import PrivacyGuarantee, epsilon_delta_curve, readable_epsilon
from cbdp.privacy.unit import RELEASE, Person
from cbdp.release.roles import counted_noun
from cbdp.text import aligned

SECTION_WIDTH = 110  # characters of a line


def section_lines(
    plan: PlannedRelease,
    measured: Sequence[ExpectedNoise],
    expected: Sequence[ExpectedTable],
    laws: NoiseComparison | None,
    warned: Sequence[str],
) -> Iterator[str]:
    """What `cbdp check --all` prints, line by line."""
    table, remarks, say = _noise_table(plan, measured), _noise_remarks(plan), counted_noun(plan.universe).say
    written = [f"{plan.output}/", *(f"  {file}" for file in files_of_release(plan))]
    yield from _section("What would be released", _wrapped(_what_lines(plan)))
    yield from _section("How strongly it is protected", _wrapped(_protection_lines(plan)))
    if isinstance(plan.unit, Person):
        changes = [
            *sensitivity_table(plan, plan.unit),
            "",
            *_wrapped(map(say, sensitivity_remarks(plan.unit))),
        ]
        yield from _section(change_title(plan.unit), changes)
    yield from _section(
        "What is counted (each table is made of those below it)", feature_tree(plan.features).split("\n")
    )
    yield from _section(f"Noise at {percent(plan.confidence)} confidence", [*table, "", *_wrapped(remarks)])
    if expected:
        yield from _section(
            f"What would be published, at {percent(plan.confidence)} confidence",
            _wrapped(_example_lines(plan, expected)),
        )
    if errors_by_budget(plan):
        yield from _section(
            say("What budgets would do: expected error of a count in trips"),
            [*_choice_table(plan), "", *_wrapped(_choice_remarks(plan))],
        )
    if laws is not None:
        compared = [*noise_comparison_table(laws), "", *_wrapped(map(say, noise_comparison_remarks(laws)))]
        yield from _section("What either law of noise would do", compared)
    running = running_lines(plan)
    if running:
        yield from _section(
            "What running totals would cost, and do", [p for n in running for p in _wrapped([n]) or [""]]
        )
    undetermined = plan_errors.gaps(plan)
    if undetermined:
        yield from _section(
            "What no table tells apart", _wrapped(f"- {say(str(gap))}" for gap in undetermined)
        )
    yield from _section("Account", _wrapped(_account_lines(plan)))
    yield from _section("What would be written", written)
    yield from _section("Warnings", _wrapped([f"- {warning}" for warning in warned] or ["none"]))
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
            line, SECTION_WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    ]


def _what_lines(plan: PlannedRelease) -> list[str]:
    universe, noun = plan.universe, counted_noun(plan.universe)
    sizes = " × ".join(f"{len(d):,} {name}" for name, d in universe.dimensions.items())
    zeros = f", less {', '.join(' = '.join(of) for of, _ in universe.zeros)}" if universe.zeros else ""
    between = [n for n in plan.features.features if n not in (SINGLETON, TOTAL)]
    tables = f", and tables by {', '.join(between)}" if between else ""
    lines = [
        f"The {noun.many} of data set {plan.dataset!r}, counted by {', '.join(universe.dimensions)}{tables}.",
        f"Universe (every combination that can be counted): {sizes}{zeros}: {universe.size:,} {noun.one} types. {noun.say('Trips')} outside it are left out.",
    ]
    if plan.stops is not None:
        zones = f" in {len(set(plan.stops.zone))} zones" if plan.stops.zone else ""
        lines.append(f"Public stops: {len(plan.stops):,}{zones}.")
    for name, column in plan.columns.items():
        if name != column:
            lines.append(f"{name} is read from the column {column!r}.")
    if plan.about is not None:
        texts = [f"{name} {text!r}" for name, text in plan.about.texts().items()]
        lines.append(f"It says about itself: {', '.join(texts)}.")
    return lines


def _protection_lines(plan: PlannedRelease) -> list[str]:
    claim, unit, noun = plan.mechanism.claim(), plan.unit, counted_noun(plan.universe)
    if not claim.holds:
        return [f"Mechanism {plan.mechanism.name}: {claim}."]
    whom = f"any one {noun.one}"
    if isinstance(unit, Person):
        whose = "any one person" if unit.per == RELEASE else f"any one {unit.per} of any one person"
        whom = f"{whose} (up to {noun.number(unit.max_trips)})"
    if claim.cost.currency == "rho":
        odds = _concentrated(claim, whom)
    else:
        factor = f"e^{number(claim.cost.epsilon)} = {math.exp(min(700.0, float(claim.cost.epsilon))):.3g}"
        odds = (
            f"In words: whether {whom} is in the data changes the odds of any conclusion by at most a factor {factor}"
            + (f", except with a probability of {float(claim.cost.delta):.1e}." if claim.cost.delta else ".")
        )
    shares = ", ".join(f"{a.feature} {number(a.share)}" for a in plan.mechanism.answers())
    lines = [f"Mechanism {plan.mechanism.name}. Shares of {sign_of(plan)}: {shares}.", odds]
    if isinstance(unit, Person):
        lines += map(noun.say, _bounding(unit))
    if plan.public:
        lines.append(f"Public already: {', '.join(plan.public)}. {INVARIANTS_NOTE}")
    return [*lines, noun.say(f"For reviewers: {claim}.")]


def _concentrated(claim: PrivacyGuarantee, whom: str) -> str:
    """What ρ means at the δ that is stated, and at others."""
    cost = claim.cost
    others = [
        f"e^{readable_epsilon(e)} at δ = {float(d):.0e}"
        for e, d in epsilon_delta_curve(cost.rho)[::4]
        if d != cost.delta
    ]
    return (
        f"In words: whether {whom} is in the data changes the chance of any conclusion by at most a factor e^{readable_epsilon(cost.epsilon)} = "
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


def _noise_table(plan: PlannedRelease, measured: Sequence[ExpectedNoise]) -> list[str]:
    sized = plan.expected_trips is not None
    rows = [
        (
            "table",
            "counts",
            sign_of(plan),
            "scale",
            "margin",
            *((f"{counted_noun(plan.universe).many} each", "relative") if sized else ()),
        )
    ]
    for n in measured:
        row = (
            n.feature,
            f"{n.elements:,}",
            number(n.epsilon),
            f"{float(n.scale):,.3g}",
            f"±{n.half_width:,}",
        )
        rows.append((*row, *((trips_text(n.expected), percent(n.relative)) if sized else ())))
    return aligned(rows, right=range(1, len(rows[0])))


def _example_lines(plan: PlannedRelease, expected: Sequence[ExpectedTable]) -> Iterator[str]:
    """An example of each table, and what it is good for."""
    noun = counted_noun(plan.universe)
    for e in expected:
        use = (
            ""
            if e.use is None
            else f" Good enough to {e.use.can}."
            if e.use.within < math.inf
            else f" But {e.use.why}."
        )
        least = f" Counts of {noun.number(e.good)} or more are within 20 %." if e.good > 1 else ""
        yield f"{e.feature}: {noun.say(example(plan.features.features[e.feature].by, e))}{use}{least}"


def _choice_table(plan: PlannedRelease) -> list[str]:
    by_budget = errors_by_budget(plan)
    rows = [("budget", *plan.features.features)]
    for n, (name, errors) in enumerate(by_budget.items()):
        mark = f"{name} (configured)" if n == 0 else name
        rows.append((mark, *(f"{errors[f]:,.3g}" for f in plan.features.features)))
    return aligned(rows, right=range(1, len(rows[0])))


def _choice_remarks(plan: PlannedRelease) -> Iterator[str]:
    yield (
        "How far published counts are off on average (the root of the mean square: large errors weigh more). A model of the noise and of what is done afterwards says so, from public facts "
        'only; "uniform" is the paper\'s.'
    )
    if plan.expected_trips is None:
        yield "How far small counts are shrunk is not known: state data.expected_trips, and data.expected_filled if known."
    yield from plan.mechanism.remarks()


def _noise_remarks(plan: PlannedRelease) -> Iterator[str]:
    noun = counted_noun(plan.universe)
    yield f"Margins are in {noun.many}: how far the noise alone moves a count, before post-processing makes the tables agree."
    if plan.expected_trips is not None:
        yield (
            f"{noun.say('Trips')} each: about {noun.number(plan.expected_trips)} spread evenly; counts above that have less relative noise."
        )
    else:
        yield "Relative noise is not known: state roughly how many trips there are, a public round number, like data.expected_trips = 100000."
    left = unmeasured(plan)
    if left:
        yield f"Published but not measured on their own: {', '.join(left)}. They add up from the others."


def retry_lines(plan: PlannedRelease) -> Iterator[str]:
    """What a run that dies after the charge costs, where the cap has room to repeat it."""
    account = plan.account
    repeatable = plan.config.series is None and account.finished is None and not account.cap.is_unlimited
    if repeatable and (account.charge + account.charge).within(account.left):
        both = account.spent + account.charge + account.charge
        yield (
            f"A run that dies after it has paid stays paid. The cap has room for a retry, which costs {account.charge} again: {both} in all, "
            "in the worst case."
        )


def _account_lines(plan: PlannedRelease) -> list[str]:
    account = plan.account
    state = "" if account.exists else " (does not exist yet)"
    cost = account.left - account.after
    left = "" if account.cap.is_unlimited else f", left after it {account.after}"
    lines = [
        f"Ledger {account.path}{state} of {account.owner}",
        f"cap {account.caps}, spent {account.spent}, this release {cost}{left}",
    ]
    lines += retry_lines(plan)
    if not account.exists:
        message = missing_ledger(plan.config, account)
        lines.append(f"{message[0].upper()}{message[1:]}.")
    if account.unpublished.nano:
        lines.append(
            f"Of what was spent, {account.unpublished} went to runs that were never published. It stays spent: "
            "docs/explanation/threat-model.md says why."
        )
    if account.finished is not None:
        lines.append(
            f"An identical request was released to {account.finished.path}: it is returned, nothing is spent."
        )
    lines.append(f"Request {plan.asked}")
    return lines


def files_of_release(plan: PlannedRelease) -> tuple[str, ...]:
    """What a release would write, inside its folder, and what is exported from it."""
    tables = [f"features/{name}.parquet" for name in plan.features.features]
    exports = [f"and beside it {format_parts().get(name).beside(plan.output.name)}" for name in plan.exports]
    documents = ("README.md", "report.html", "manifest.json", "datapackage.json", "deployment.yaml")
    return ("trips.parquet", *tables, "universe/", *documents, *exports)


def feature_tree(features: FeatureDag) -> str:
    """The DAG as an indented tree, coarse above fine; a table with several above it is drawn in full once.

    >>> from cbdp.features import Feature, Universe
    >>> print(feature_tree(FeatureDag(Universe(origin=["A", "B"], time=["am", "pm"]), [Feature("time", by="time")])))
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
