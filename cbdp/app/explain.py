"""What a plan would release, in plain words and in numbers, before anything is spent or any row is read."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cbdp.app.config import did_you_mean
from cbdp.app.plan import Plan
from cbdp.errors import InputError
from cbdp.features import SINGLETON, TOTAL, FeatureDag
from cbdp.measuring.dense import shares
from cbdp.measuring.noise import DiscreteLaplace
from cbdp.mechanisms import ConstraintBased, Hierarchical, Laplace
from cbdp.mechanisms.laplace import LAWS
from cbdp.privacy.allocation import LEAVES, OPTIMAL, Facts, expected_errors, named
from cbdp.privacy.budget import Number, positive
from cbdp.privacy.unit import Person

DIGITS = 3  # of an ε that is worked out: it is rounded up to so many
WIDTH = 110
LARGEST = 2**40  # an ε beyond which none is looked for


@dataclass(frozen=True)
class Noise:
    """The noise on a measured table, by its law alone: post-processing, which mostly makes it smaller, comes after."""

    feature: str
    elements: int
    epsilon: Fraction
    delta: Fraction
    scale: Fraction
    half_width: int  # in trips, at the plan's confidence
    expected: Fraction | None  # trips in an element of average size, from the public order of magnitude

    @property
    def relative(self) -> float | None:
        """The half width as a part of the expected count."""
        return None if self.expected is None else float(self.half_width / self.expected)


@dataclass(frozen=True)
class Explanation:
    """What `cbdp check` says; its text is `str`, its numbers are fields."""

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
    noise: tuple[Noise, ...]
    choices: Mapping[str, Mapping[str, float]]  # budget → feature → expected error of a count, in trips
    unmeasured: tuple[str, ...]
    warnings: tuple[str, ...]
    files: tuple[str, ...]
    request: str
    text: str

    def __str__(self) -> str:
        return self.text


def explain(plan: Plan) -> Explanation:
    """Everything worth knowing before a release. Spends nothing, reads no row."""
    cost = plan.mechanism.claim().cost
    measured = noise(plan)
    return Explanation(
        dataset=plan.dataset,
        mechanism=plan.mechanism.name,
        claim=str(plan.mechanism.claim()),
        epsilon=cost.epsilon,
        delta=cost.delta,
        dimensions={name: len(d) for name, d in plan.universe.dimensions.items()},
        types=plan.universe.size,
        mermaid=plan.features.mermaid(),
        tree=tree(plan.features),
        confidence=plan.confidence,
        noise=measured,
        choices=choices(plan),
        unmeasured=_unmeasured(plan, measured),
        warnings=tuple(_warnings(plan, measured)),
        files=files(plan),
        request=plan.request,
        text="\n".join(_text(plan, measured)) + "\n",
    )


# Numbers


def measured_features(plan: Plan) -> FeatureDag:
    """The features that are measured: those of the plan, or the tree the mechanism makes of them."""
    mechanism = plan.mechanism
    return mechanism.tree_features if isinstance(mechanism, Hierarchical) else plan.features


def spends(plan: Plan) -> dict[str, tuple[Fraction, Fraction]]:
    """ε and δ by measured feature."""
    cost: Any = plan.mechanism.claim().cost
    if isinstance(plan.mechanism, Laplace):
        return {SINGLETON: (cost.epsilon, cost.delta)}
    return {part.what: (part.epsilon, part.delta) for part in cost.parts}


def noise(plan: Plan) -> tuple[Noise, ...]:
    """The noise on each measured table."""
    dag = measured_features(plan)
    found = []
    for name, (epsilon, delta) in spends(plan).items():
        scale = plan.unit.sensitivity / epsilon
        expected = None if plan.expected_trips is None else Fraction(plan.expected_trips, dag.size(name))
        half = _law(plan, scale).half_width(plan.confidence)
        found.append(Noise(name, dag.size(name), epsilon, delta, scale, half, expected))
    return tuple(found)


def choices(plan: Plan) -> dict[str, dict[str, float]]:
    """What each way to share ε would do to each table: the expected error of a count in trips, by `cbdp.privacy.allocation`'s model.

    The configured one comes first.
    """
    mechanism = plan.mechanism
    if not isinstance(mechanism, ConstraintBased):
        return {}
    facts = Facts(plan.unit.sensitivity, plan.expected_trips, plan.config.data.expected_filled)
    own = mechanism.budget if isinstance(mechanism.budget, str) else "as given"
    given = {own: {name: epsilon for name, (epsilon, _) in spends(plan).items()}}
    for name in (*LEAVES, "uniform"):
        if name not in given:
            given[name] = shares(
                plan.features, mechanism.spent, name, mechanism.measured, enough=mechanism.enough
            )
    return {name: expected_errors(plan.features, shared, facts) for name, shared in given.items()}


def _law(plan: Plan, scale: Fraction) -> Any:
    return (LAWS[plan.mechanism.law] if isinstance(plan.mechanism, Laplace) else DiscreteLaplace)(scale)


def _share_of(plan: Plan, feature: str, given: Mapping[str, Fraction]) -> Callable[[Fraction], Fraction]:
    """What a feature would get of any ε, shared as the plan shares it: in proportion, or by a budget that gives tables enough."""
    mechanism = plan.mechanism
    if isinstance(mechanism, ConstraintBased) and mechanism.budget == "leaves":
        return lambda epsilon: named(list(given), epsilon, "leaves", mechanism.enough)[feature]
    part = given[feature] / sum(given.values())
    return lambda epsilon: part * epsilon


def epsilon_for(
    plan: Plan,
    feature: str,
    relative: Number,
    confidence: float | None = None,
    expected_trips: int | None = None,
) -> Fraction:
    """The least ε of the whole release, rounded up to three digits, that brings a feature within a part of its counts.

    Within means: the noise on an element of average size is at most `relative` of its count with this confidence. It is
    worked out by the law of the noise before post-processing, with ε shared among the features as the plan shares it.
    """
    given = spends(plan)
    if feature not in given:
        raise InputError(f"{feature!r} is not measured: {did_you_mean(feature, list(given))}")
    trips = expected_trips or plan.expected_trips
    if trips is None:
        raise InputError("how many trips are there, about? Say so in data.expected_trips")
    share = _share_of(plan, feature, {name: epsilon for name, (epsilon, _) in given.items()})
    allowed = positive(relative, "relative") * trips / measured_features(plan).size(feature)
    sure = plan.confidence if confidence is None else confidence

    def enough(epsilon: Fraction) -> bool:
        return bool(_law(plan, plan.unit.sensitivity / share(epsilon)).half_width(sure) <= allowed)

    high = Fraction(1)
    while not enough(high):
        high *= 2
        if high > LARGEST:
            raise InputError(
                f"with this budget {feature!r} does not get within {_percent(float(positive(relative)))} by any ε: "
                "use budget 'balanced' or 'tables', or state a target"
            )
    while high > Fraction(1, 10**12) and enough(high / 2):
        high /= 2
    low = high / 2
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return _rounded_up(high)


def answer(
    plan: Plan, feature: str, within: str, confidence: float | None = None, expected_trips: int | None = None
) -> str:
    """Which ε brings a feature within so many per cent, as a sentence."""
    part = positive(within.replace("%", "").strip(), "within") / 100
    epsilon = epsilon_for(plan, feature, part, confidence, expected_trips)
    mean = Fraction(expected_trips or plan.expected_trips or 0, measured_features(plan).size(feature))
    sure = plan.confidence if confidence is None else confidence
    return (
        f"For {feature!r} to be within {_percent(float(part))} ({_trips(part * mean)} of {_trips(mean)} trips on average) "
        f"with {_percent(sure)} confidence, ε of the whole release must be at least {_number(epsilon)}. "
        "This is by the law of the noise before post-processing, with ε shared as configured."
    )


def answers(plan: Plan, wishes: Sequence[str]) -> list[str]:
    """The answers to wishes like "zone=5", all of them or, if one cannot be answered, none."""
    made = []
    for wish in wishes:
        feature, equals, percent = wish.partition("=")
        if not equals:
            raise InputError(f"{wish!r} is no wish for precision: write it like zone=5, in per cent")
        made.append(answer(plan, feature, percent))
    return made


def _rounded_up(value: Fraction) -> Fraction:
    step = Fraction(10) ** (math.floor(math.log10(value)) + 1 - DIGITS)
    return math.ceil(value / step) * step


# Words


def _text(plan: Plan, measured: tuple[Noise, ...]) -> Iterator[str]:
    table, remarks = _noise_table(plan, measured), _noise_remarks(plan, measured)
    warned = [f"- {warning}" for warning in _warnings(plan, measured)] or ["none"]
    written = [f"{plan.output}/", *(f"  {file}" for file in files(plan))]
    yield from _section("What would be released", _wrapped(_what(plan)))
    yield from _section("How strongly it is protected", _wrapped(_protection(plan)))
    yield from _section(
        "What is counted (each table is made of those below it)", tree(plan.features).split("\n")
    )
    yield from _section(f"Noise at {_percent(plan.confidence)} confidence", [*table, "", *_wrapped(remarks)])
    if isinstance(plan.mechanism, ConstraintBased):
        yield from _section(
            "What budgets would do: expected error of a count in trips",
            [*_choice_table(plan), "", *_wrapped(_choice_remarks(plan))],
        )
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
    return lines


def _protection(plan: Plan) -> list[str]:
    claim, unit = plan.mechanism.claim(), plan.unit
    if not claim.holds:
        return [f"Mechanism {plan.mechanism.name}: {claim}."]
    whom = f"any one person (up to {unit.max_trips} trips)" if isinstance(unit, Person) else "any one trip"
    factor = f"e^{_number(claim.cost.epsilon)} = {math.exp(min(700.0, float(claim.cost.epsilon))):.3g}"
    lines = [
        f"Mechanism {plan.mechanism.name}: {claim}.",
        f"In words: whether {whom} is in the data changes the odds of any conclusion by at most a factor {factor}"
        + (f", but for a chance of {float(claim.cost.delta):.1e}." if claim.cost.delta else "."),
    ]
    if isinstance(unit, Person):
        lines.append(
            f"Of a person with more than {unit.max_trips} trips, {unit.max_trips} chosen at random are counted."
        )
    return lines


def _noise_table(plan: Plan, measured: tuple[Noise, ...]) -> list[str]:
    told = plan.expected_trips is not None
    rows = [("table", "elements", "ε", "scale", "half width", *(("trips each", "relative") if told else ()))]
    for n in measured:
        row = (
            n.feature,
            f"{n.elements:,}",
            _number(n.epsilon),
            f"{float(n.scale):,.3g}",
            f"±{n.half_width:,}",
        )
        rows.append((*row, *((_trips(n.expected), _percent(n.relative)) if told else ())))
    return _aligned(rows)


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    wide = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    return [
        "  ".join(
            [row[0].ljust(wide[0]), *(cell.rjust(w) for cell, w in zip(row[1:], wide[1:], strict=True))]
        )
        for row in rows
    ]


def _choice_table(plan: Plan) -> list[str]:
    made = choices(plan)
    rows = [("budget", *plan.features.features)]
    for n, (name, errors) in enumerate(made.items()):
        mark = f"{name} (configured)" if n == 0 else name
        rows.append((mark, *(f"{errors[f]:,.3g}" for f in plan.features.features)))
    return _aligned(rows)


def _choice_remarks(plan: Plan) -> Iterator[str]:
    mechanism = plan.mechanism
    assert isinstance(mechanism, ConstraintBased)
    yield "Root mean square errors by a model of noise and post-processing that knows public facts only; uniform is the paper's."
    if plan.expected_trips is None:
        yield "How far small counts are shrunk is not known: state data.expected_trips, and data.expected_filled if known."
    if mechanism.estimator == "projection":
        yield "The estimator is projection, which shrinks less: single trip types come out worse where trips are few."
    if mechanism.budget == OPTIMAL and mechanism.target is not None:
        wanted = ", ".join(f"{name} {_number(weight)}" for name, weight in mechanism.target.items())
        yield f"The budget is worked out for the target {wanted}."
    else:
        yield "To have ε shared for what matters to you, state it: privacy.target = { singleton = 1, zone = 2 }."


def _noise_remarks(plan: Plan, measured: tuple[Noise, ...]) -> Iterator[str]:
    yield "Half widths are in trips, by the law of the noise, before post-processing makes the tables agree."
    if plan.expected_trips is not None:
        yield (
            f"Trips each: about {plan.expected_trips:,} trips spread evenly; elements with more have less relative noise."
        )
    else:
        yield "Relative noise is not known: state a public order of magnitude, like data.expected_trips = 100000."
    left = _unmeasured(plan, measured)
    if left:
        yield f"Published but not measured on their own: {', '.join(left)}. They add up from the others."


def _unmeasured(plan: Plan, measured: tuple[Noise, ...]) -> tuple[str, ...]:
    known = {n.feature for n in measured}
    return tuple(n for n in plan.features.features if n not in known)


def _account(plan: Plan) -> list[str]:
    account = plan.account
    state = "" if account.exists else " (does not exist yet: the release creates it)"
    cost = account.left - account.after
    lines = [
        f"Ledger {account.path}{state}, data set {plan.dataset!r}",
        f"cap {account.cap}, spent {account.spent}, this release {cost}, left after it {account.after}",
    ]
    if account.finished is not None:
        lines.append(
            f"An identical request was released to {account.finished.path}: it is returned, nothing is spent."
        )
    lines.append(f"Request {plan.request}")
    return lines


def _warnings(plan: Plan, measured: tuple[Noise, ...]) -> Iterator[str]:
    claim = plan.mechanism.claim()
    if not claim.holds:
        yield f"{plan.mechanism.name} with these settings is {claim}; `cbdp release` refuses it"
    bound = plan.config.output.noise_bound
    for n in measured:
        if n.relative is not None and n.relative > bound:
            yield (
                f"{n.feature}: expected relative noise {_percent(n.relative)} is above the bound of {_percent(bound)} "
                f"(output.noise_bound); {_cure(plan, n.feature, bound)}"
            )
    if len(plan.features.features) == 2 and not isinstance(plan.mechanism, Laplace):
        yield "there is no table between the total and single trip types: add a [[feature]] or a preset"
    if not plan.account.exists and plan.config.privacy.cap is None:
        yield (
            f"privacy.cap is not stated: the ledger would be created with a cap of {plan.account.cap}, so that no "
            "second release fits"
        )
    if plan.account.unfinished:
        yield "an identical request was charged and never released: unless its folder is whole, it is charged again"


def _cure(plan: Plan, feature: str, bound: float) -> str:
    try:
        needed = _number(epsilon_for(plan, feature, repr(bound)))
    except InputError:
        return "no ε meets it with this budget: use another, or a coarser table"
    return f"to meet it ε would have to be {needed}, or the table coarser"


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


def _number(value: Fraction) -> str:
    """A fraction as people write it: 1/3 stays, 1/5 is 0.2."""
    decimal = f"{float(value):.6g}"
    return decimal if Fraction(decimal) == value or value.denominator > 10**4 else str(value)


def _trips(value: Fraction | None) -> str:
    return "" if value is None else f"{float(value):,.0f}" if value >= 100 else f"{float(value):.3g}"


def _percent(part: float | None) -> str:
    if part is None:
        return ""
    hundred = 100 * part
    return f"{hundred:,.0f} %" if hundred >= 10 else f"{hundred:.2g} %"
