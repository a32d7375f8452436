"""What `cbdp check` prints, on one screen or (`--all`) in full: what is protected, what each table would tell, the account, and warnings last."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from cbdp.config.sections import format_parts
from cbdp.errors import InputError
from cbdp.estimation.invariants import INVARIANTS_NOTE
from cbdp.features import SINGLETON, TOTAL, FeatureDag
from cbdp.forecast import errors as plan_errors
from cbdp.forecast.account import missing_ledger
from cbdp.forecast.errors import (
    CAREFUL_EPSILON,
    MAX_MEANINGFUL_EPSILON,
    ExpectedNoise,
    ExpectedTable,
    Gap,
    NoiseComparison,
    change_title,
    compare_noise,
    determined_by_other_tables,
    epsilon_for,
    errors_by_budget,
    example,
    expected_tables,
    gaps,
    level_of,
    meaningful,
    noise_by_table,
    noise_comparison_remarks,
    noise_comparison_table,
    number,
    percent,
    posterior_belief,
    range_text,
    reason,
    sensitivity_remarks,
    sensitivity_table,
    sign_of,
    trips_text,
    unmeasured,
)
from cbdp.forecast.plan import PlannedRelease
from cbdp.forecast.running import running_lines
from cbdp.numbers import percent_at_most
from cbdp.privacy.accounting import PrivacyGuarantee, epsilon_delta_curve, readable_epsilon
from cbdp.privacy.unit import RELEASE, Person
from cbdp.release.views import counted_noun
from cbdp.report.reliability import USES
from cbdp.text import aligned
from cbdp_features.calendar import day_dimension

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


@dataclass(frozen=True)
class Explanation:
    """What `cbdp check` says: `str` is one screen, `text` is all of it, and the numbers are fields."""

    dataset: str
    mechanism: str
    claim: str
    epsilon: Fraction
    delta: Fraction
    dimensions: dict[str, int]
    types: int
    mermaid: str
    tree: str
    confidence: float
    noise: tuple[ExpectedNoise, ...]
    expected: tuple[ExpectedTable, ...]  # of published tables, by the model of errors
    choices: Mapping[str, Mapping[str, float]]  # budget → feature → expected error of a count, in trips
    laws: NoiseComparison | None  # both laws of noise, for the same (ε, δ)
    unmeasured: tuple[str, ...]
    gaps: tuple[Gap, ...]  # dimensions and attributes that no measured table covers
    warnings: tuple[str, ...]
    files: tuple[str, ...]
    request: str
    screen: str
    text: str

    def __str__(self) -> str:
        return self.screen


def explain(plan: PlannedRelease) -> Explanation:
    """Everything worth knowing before a release. Spends nothing, reads no row."""
    cost = plan.mechanism.claim().cost
    measured, tables, laws = noise_by_table(plan), expected_tables(plan), compare_noise(plan)
    warned = tuple(warnings(plan, measured, tables))
    return Explanation(
        dataset=plan.dataset,
        mechanism=plan.mechanism.name,
        claim=str(plan.mechanism.claim()),
        epsilon=cost.epsilon,
        delta=cost.delta,
        dimensions={name: len(d) for name, d in plan.universe.dimensions.items()},
        types=plan.universe.size,
        mermaid=plan.features.mermaid(),
        tree=feature_tree(plan.features),
        confidence=plan.confidence,
        noise=measured,
        expected=tables,
        choices=errors_by_budget(plan),
        laws=laws,
        unmeasured=unmeasured(plan),
        gaps=gaps(plan),
        warnings=warned,
        files=files_of_release(plan),
        request=plan.request,
        screen="\n".join(screen_lines(plan, measured, tables, laws, warned)) + "\n",
        text="\n".join(section_lines(plan, measured, tables, laws, warned)) + "\n",
    )


# The screen


SCREEN_WIDTH = 100  # characters of a line
NO_BREAK_PERCENT = "\u00a0%"  # what no line ends before
GOOD_FROM_HEAD = "±20 % from"
MUCH_NARROWER = 2  # times narrower than the noise, from which the screen explains why
NAME_WIDTH = 12  # of the column that names each part
TYPICAL_HEADS = ("a count of", "is published as", "within")
COMMUTER_UNITS_PER_MONTH = {"trip": 40, "day": 20, "week": 4}  # of a commuter in a month


def screen_lines(
    plan: PlannedRelease,
    measured: Sequence[ExpectedNoise],
    expected: Sequence[ExpectedTable],
    laws: NoiseComparison | None,
    warned: Sequence[str],
) -> Iterator[str]:
    """One screen, line by line."""
    yield from _part("Release", _what_part(plan))
    yield from _part("Protection", _protection_part(plan))
    yield ""
    yield from _tables_part(plan, measured, expected)
    yield ""
    yield from _part("Noise", _noise_part(plan, laws))
    yield from _part("Account", _account_part(plan))
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
        head = (name if not n else "").ljust(NAME_WIDTH)
        yield from wrapped([line], head, " " * NAME_WIDTH)


def wrapped(lines: Iterable[str], first: str = "", rest: str = "") -> Iterator[str]:
    """Lines of readable length; paths stay whole, and a number keeps its sign."""
    for line in lines:
        for part in textwrap.wrap(
            line.replace(" %", NO_BREAK_PERCENT), SCREEN_WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
        ):  # fmt: skip
            yield part.replace(NO_BREAK_PERCENT, " %")


def _what_part(plan: PlannedRelease) -> Iterator[str]:
    universe, noun = plan.universe, counted_noun(plan.universe)
    sizes = " × ".join(f"{len(d):,} {name}" for name, d in universe.dimensions.items())
    yield f"{plan.dataset}: {sizes} = {universe.size:,} combinations" + (
        "" if plan.expected_trips is None else f", about {noun.number(plan.expected_trips)}"
    )
    if plan.slot is None and day_dimension(universe.dimensions) is None:
        yield noun.say("All days in the trips are added up; to tell days apart, state universe.days.")


def _protection_part(plan: PlannedRelease) -> Iterator[str]:
    claim, unit, noun = plan.mechanism.claim(), plan.unit, counted_noun(plan.universe)
    if not claim.holds:
        yield f"none: {claim}"
        return
    cost = claim.cost
    epsilon = float(cost.epsilon)
    paid = f"ρ = {float(cost.rho):.4g}, so " if cost.currency == "rho" else ""
    delta = f" at δ = {float(cost.delta):.3g}" if cost.delta else ""
    yield f"{paid}ε = {readable_epsilon(cost.epsilon)}{delta} for {noun.say(str(unit))}. {level_of(epsilon).judgement}"
    yield (
        f"Somebody who thinks it 50 % likely that {_question(plan)} can become at most {percent_at_most(posterior_belief(0.5, epsilon))} sure"
        + (" (except with a small probability)." if cost.delta else ".")
    )
    many = COMMUTER_UNITS_PER_MONTH.get("trip" if not isinstance(unit, Person) else unit.per)
    if many is not None and cost.currency == "epsilon" and not cost.delta:
        what = noun.many if not isinstance(unit, Person) else f"{unit.per}s"
        yield (
            f"{what.capitalize()} of one person add up: for a commuter with {many} {what} in the data, ε = {readable_epsilon(many * cost.epsilon)}."
        )


def _question(plan: PlannedRelease) -> str:
    unit = plan.unit
    if not isinstance(unit, Person):
        return f"a certain {counted_noun(plan.universe).one} was made"
    return (
        "a certain person took part"
        if unit.per == "release"
        else f"a person travelled {'on' if unit.per == 'day' else 'in'} a certain {unit.per}"
    )


def _tables_part(
    plan: PlannedRelease, measured: Sequence[ExpectedNoise], expected: Sequence[ExpectedTable]
) -> Iterator[str]:
    """By table: its share, its noise, and what would be published."""
    noise, tables = {n.feature: n for n in measured}, {e.feature: e for e in expected}
    typical = any(e.use is not None for e in expected)  # somebody says how many trips there are
    rows = [["table", "counts", sign_of(plan), "noise"]]
    rows[0] += [
        *(TYPICAL_HEADS if typical else ()),
        *([GOOD_FROM_HEAD] if tables else ()),
        *(["good for"] if typical else ()),
    ]
    for name in tables or noise:
        n, e = noise.get(name), tables.get(name)
        size = plan.mechanism.measured_features.size(name)
        row = [name, f"{size:,}", *(("–", "–") if n is None else (number(n.epsilon), f"±{n.half_width:,}"))]
        rows.append([*row, *([] if e is None else _expected_cells(e, typical))])
    last = len(rows[0]) - 1
    yield from aligned(rows, right=[n for n in range(1, len(rows[0])) if n != last or not typical])
    yield from wrapped(map(counted_noun(plan.universe).say, _legend(plan, bool(tables), typical)))
    if any(e.half * MUCH_NARROWER < noise[name].half_width for name, e in tables.items() if name in noise):
        yield from wrapped(
            ["A range much narrower than the noise: other tables, added up, tell the count better."]
        )
    left = unmeasured(plan)
    if left and not plan.public:
        yield from wrapped([f"Not measured, but added up from the others: {', '.join(left)}."])


def _expected_cells(e: ExpectedTable, typical: bool) -> list[str]:
    """The average count, how it would be published and what that is good for; and from which count on counts are good."""
    good = "all" if e.good == 1 else f"{e.good:,}"
    if not typical:
        return [good]
    use = "" if e.use is None else e.use.name
    return [f"{e.count:,.0f}", range_text(e), percent(e.relative), good, use]


def _legend(plan: PlannedRelease, modelled: bool, typical: bool) -> Iterator[str]:
    sure = percent(plan.confidence)
    if not modelled:
        yield f"In trips. Noise holds with {sure} confidence, before tables are made to agree."
        return
    least = f"“{GOOD_FROM_HEAD}”: counts of so many trips or more are within 20 %"
    yield f"In trips, with {sure} confidence. “noise”: how far noise alone moves a count; the other tables often make up for some of it. {least}."
    if typical:
        judged = ", ".join(f"“{use.name}” within {percent(use.within)}" for use in USES if use.within <= 1)
        yield (
            f"“a count of”: the average count, trips ÷ counts; by it a table is judged (“good for”: {judged}). “within”: how far off it may be. "
            "Where trips are spread unevenly, many counts are smaller. “singleton”: every combination on its own."
        )
    else:
        yield "State data.expected_trips, a round number, to see what each table is good for."


def _noise_part(plan: PlannedRelease, either: NoiseComparison | None) -> Iterator[str]:
    law = getattr(plan.mechanism, "law", "geometric")
    budget = getattr(plan.mechanism, "budget", None)
    shared = f"; budget {budget if isinstance(budget, str) else 'as given'}" if budget is not None else ""
    better = ""
    if either is not None and either.better not in (None, law):
        better = f"; {either.better} noise would have {1 / either.ratio:.2g} times smaller errors (--all)"
    yield f"{plan.mechanism.name}, {law} noise{shared}{better}"


def _account_part(plan: PlannedRelease) -> Iterator[str]:
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
    text = f"Nothing was spent, and no row of the {counted_noun(plan.universe).many} was read. More: --all, --picture, --json"
    if not modelled:  # there is no page without a model of errors
        return f"{text}."
    return f"{text}; try other settings: cbdp plan {plan.config.source.path} --page plan.html"


# Warnings, before anything is spent


def warnings(
    plan: PlannedRelease, measured: Sequence[ExpectedNoise], expected: Sequence[ExpectedTable]
) -> Iterator[str]:
    """One line each, the gravest first."""
    yield from _protection_warnings(plan)
    yield from _noise_warnings(plan, measured, expected)
    yield from _table_warnings(plan)
    yield from _account_warnings(plan)


def _protection_warnings(plan: PlannedRelease) -> Iterator[str]:
    """What is promised, and what that is worth."""
    claim = plan.mechanism.claim()
    if not claim.holds:
        yield f"{plan.mechanism.name} with these settings is {claim}; `cbdp release` refuses it"
    elif claim.cost.epsilon > MAX_MEANINGFUL_EPSILON:
        yield (
            f"ε = {readable_epsilon(claim.cost.epsilon)} protects hardly anybody: it is above {MAX_MEANINGFUL_EPSILON:g}, and "
            f"{reason(float(claim.cost.epsilon))}. Below {CAREFUL_EPSILON:g} counts as a careful choice (NIST). Longer periods, larger zones or fewer "
            "tables need less: `cbdp plan` shows how much"
        )


def _noise_warnings(
    plan: PlannedRelease, measured: Sequence[ExpectedNoise], expected: Sequence[ExpectedTable]
) -> Iterator[str]:
    """Tables whose average count may be off by more than is wanted: as the screen says, or by the noise alone where nothing else is known."""
    bound, modelled = plan.config.output.noise_bound, {e.feature: e.relative for e in expected}
    for n in measured:
        if n.relative is None or n.relative <= bound or determined_by_other_tables(plan, n, bound):
            continue
        off = modelled.get(n.feature, n.relative)
        if off > bound:
            yield (
                f"{n.feature}: its average count, {trips_text(n.expected)}, may be off by {percent(off)}, more than the {percent(bound)} of "
                f"output.noise_bound; {_noise_cure(plan, n.feature, bound)}"
            )


def _table_warnings(plan: PlannedRelease) -> Iterator[str]:
    """What is counted, and what is not."""
    if len(plan.features.features) == 2 and plan.mechanism.asks_tables:
        yield "there is no table between the total and single trip types: add a [[feature]] or a preset"
    for gap in plan_errors.uncovered_gaps(plan_errors.gaps(plan)):
        yield counted_noun(plan.universe).say(str(gap))
    if plan.unbought and isinstance(plan.unit, Person):
        yield f"max_trips is bought by `cbdp choose`, which was not done yet: what is shown goes by {plan.unit.max_trips}"
    if plan.public and isinstance(plan.unit, Person):
        yield (
            f"privacy.public states {', '.join(plan.public)}, and at most {plan.unit.max_trips} trips of each person{plan.unit.period} are counted: if "
            "the public counts are of all trips, the release is scaled up to them"
        )
    yield from plan.schema_warnings()


def _account_warnings(plan: PlannedRelease) -> Iterator[str]:
    if not plan.account.exists and plan.config.privacy.cap is None:
        yield (
            f"privacy.cap is not stated: the ledger will be created with a cap of {plan.account.cap}, so that no "
            "second release fits, and none at all if the first run dies after it has paid. For one retry, which costs as much again, state twice that"
        )
    elif not plan.account.exists and plan.config.series is None and not _retry_fits(plan):
        yield (
            f"the cap of {plan.account.caps} leaves no room for a retry: if a run dies after it has paid (a power cut), it stays paid and the release is lost. "
            "A cap of twice the cost allows one; riders are then promised twice the cost in the worst case. It is fixed when the ledger is created"
        )
    if plan.account.forgotten:
        yield f"`cbdp release` will refuse: {plan.account.forgotten}"
    if plan.account.unfinished:
        yield "an identical request was charged and never released: unless its folder is whole, it is charged again"


def _retry_fits(plan: PlannedRelease) -> bool:
    """Whether the cap has room for the release twice."""
    charge = plan.account.charge
    return (charge + charge).within(plan.account.left)


def _noise_cure(plan: PlannedRelease, feature: str, bound: float) -> str:
    try:
        needed = epsilon_for(plan, feature, repr(bound))
    except InputError:
        return f"no {sign_of(plan)} meets it with this budget: use another, or a coarser table"
    allowed = (
        Fraction(repr(bound)) * (plan.expected_trips or 0) / plan.mechanism.measured_features.size(feature)
    )
    if not meaningful(plan, needed, allowed):
        return f"no {sign_of(plan)} that still protects meets it: merge periods or zones, or read sums of its counts only"
    return f"to meet it {sign_of(plan)} would have to be {number(needed)}, or the table coarser"


# `cbdp check --json`: the numbers of a plan, for programs


def plan_as_json(plan: PlannedRelease, explanation: Explanation, answers: Sequence[str]) -> dict[str, object]:
    """ε, δ and shares as numbers, and as exact fractions where they are no decimals."""
    cost = plan.mechanism.claim().cost
    return {
        "dataset": explanation.dataset,
        "mechanism": explanation.mechanism,
        "claim": explanation.claim,
        "epsilon": float(cost.epsilon),
        "delta": float(cost.delta),
        "rho": float(cost.rho) if cost.currency == "rho" else None,
        "unit": str(plan.unit),
        "dimensions": explanation.dimensions,
        "types": explanation.types,
        "expected_trips": plan.expected_trips,
        "confidence": explanation.confidence,
        "tables": _tables_as_json(plan, explanation),
        "budgets": {name: dict(errors) for name, errors in explanation.choices.items()},
        "account": {
            "ledger": plan.account.path.name,
            "exists": plan.account.exists,
            "cap": str(plan.account.caps),
            "spent": str(plan.account.spent),
            "cost": str(plan.account.left - plan.account.after),
        },
        "files": list(explanation.files),
        "request": explanation.request,
        "answers": list(answers),
        "warnings": list(explanation.warnings),
    }


def _tables_as_json(plan: PlannedRelease, explanation: Explanation) -> list[dict[str, object]]:
    """By table what is measured and what is to be expected; None where that is not known."""
    noise, expected = {n.feature: n for n in explanation.noise}, {e.feature: e for e in explanation.expected}
    features = plan.mechanism.measured_features
    rows = []
    for name in dict.fromkeys([*expected, *noise]):
        n, e = noise.get(name), expected.get(name)
        rows.append(
            {
                "table": name,
                "counts": features.size(name),
                "share": None if n is None else float(n.epsilon),
                "share_exact": None if n is None else str(n.epsilon),
                "scale": None if n is None else float(n.scale),
                "noise": None if n is None else n.half_width,
                "error": None if e is None else e.error,
                "count": None if e is None else e.count,
                "low": None if e is None else e.low,
                "high": None if e is None else e.high,
                "within": None if e is None else e.relative,
                "good_from": None if e is None else e.good,
                "good_for": None if e is None or e.use is None else e.use.can,
                "example": None if e is None else example(features.features[name].by, e),
            }
        )
    return rows
