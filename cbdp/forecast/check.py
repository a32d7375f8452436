"""What `cbdp check` prints: what is protected, what each table would tell, the account, and warnings last."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from cbdp.errors import InputError
from cbdp.forecast import errors as plan_errors
from cbdp.forecast.alternatives import NoiseComparison, compare_noise, meaningful
from cbdp.forecast.errors import (
    CAREFUL_EPSILON,
    MAX_MEANINGFUL_EPSILON,
    ExpectedNoise,
    ExpectedTable,
    Gap,
    determined_by_other_tables,
    epsilon_for,
    errors_by_budget,
    example,
    expected_tables,
    gaps,
    level_of,
    noise_by_table,
    number,
    percent,
    posterior_belief,
    range_text,
    reason,
    sign_of,
    trips_text,
    unmeasured,
)
from cbdp.forecast.plan import PlannedRelease
from cbdp.forecast.sections import feature_tree, files_of_release, retry_lines, section_lines
from cbdp.numbers import percent_at_most
from cbdp.privacy.accounting import readable_epsilon
from cbdp.privacy.unit import Person
from cbdp.release.roles import counted_noun
from cbdp.report.reliability import USES
from cbdp.text import aligned
from cbdp_features.calendar import day_dimension


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
