"""The public report of a release: one self-contained page, made of published values only; with its section on what was protected, how strongly, and
what was not, in plain words, and precisely for reviewers. Pictures that do not change (how tables fit together) are laid out here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np

from cbdp.arrays import Ints
from cbdp.estimation.invariants import INVARIANTS_NOTE
from cbdp.features import SINGLETON, TOTAL, FeatureDag
from cbdp.numbers import (
    MAX_PICTURABLE_EPSILON,
    amount_text,
    confidence_text,
    factor_text,
    percent,
    percent_at_most,
    probability_at_most,
)
from cbdp.privacy.accounting import (
    PrivacyGuarantee,
    cost_amount,
    epsilon_delta_curve,
    epsilon_of,
    readable_epsilon,
)
from cbdp.privacy.noise import DiscreteGaussian, DiscreteLaplace
from cbdp.privacy.unit import RELEASE, Person, Unit
from cbdp.release.release import Release
from cbdp.release.views import (
    MAX_REGROUPED_ELEMENTS,
    TRIP_NOUN,
    Noun,
    Published,
    Roles,
    bounding_text,
    contents_text,
    counted_noun,
    delta_rho_text,
    enumerated,
    epsilon_text,
    left_out,
    protected_text,
    published_view,
    roles,
    title_of,
    where_and_when,
)
from cbdp.report.charts import Chart, chart_data, demand_panel, display_labels, explore_panels
from cbdp.report.reliability import (
    attribute_words,
    concentrates_trips,
    has_expected_counts,
    published_features,
    supported,
    verdicts_of,
)
from cbdp.report.rendering import Tile, render
from cbdp_features.places import Stops

IMPRINT_FIELDS = {
    "publisher": "Publisher",
    "licence": "Licence",
    "contact": "Contact",
    "timezone": "Time zone",
}
GLOSSARY_TERMS = {
    "Differential privacy": "A property of the way numbers are made, not of the numbers themselves: whether one unit (a trip, a "
    "person) is in the data changes the chance of any result by a limited factor only. It holds whatever else anybody knows, now or later.",
    "Unit of protection": "What is protected: one trip, one person, or what one person does in one period (day, week, month).",
    "ε (epsilon), the budget": "How strong the protection is. The odds of any conclusion change by at most a factor of e^ε. Smaller "
    "is safer. When several answers are given about the same data, their ε add up.",
    "Odds": "How much more likely something is than not: odds of 3 to 1 are a chance of 75 %.",
    "δ (delta)": "A small probability by which the bound set by ε may be exceeded. It is 0 unless this report says otherwise.",
    "ρ (rho)": "Another measure of what answers cost, for Gaussian noise. It adds up like ε, and gives an ε for every δ.",
    "Noise": "Random numbers that are added to counts on purpose, so that no single trip or person can be found in them.",
    "Noise scale": "How large the noise added to each count is, in trips. Typical noise is about as large as its scale; noise "
    "of more than three times the scale occurs in about one count of twenty (geometric noise) or of 370 (Gaussian noise).",
    "Measurement": "A true count with noise added. It may be below zero.",
    "Estimate": "What the measurements together say about a count, made consistent and not negative, before it is rounded to whole trips.",
    "Published count": "The number in a table: the estimate as a whole number of trips.",
    "Interval": "From a lower to an upper end (low and high): it contains the true count with the stated confidence. It accounts for the noise and for "
    "everything done afterwards. A count may stand at one end of its interval, because the two are worked out in different ways. Intervals are computed "
    "from the release alone, so they cost no privacy.",
    "Confidence": "How often such intervals are right: of many intervals, this share contains the true count, and the others miss it.",
    "Range": "Some sums have no interval. Then the lower ends of their parts are added up, and so are the upper ends. A range is usually much "
    "wider than an interval would be, and no confidence is stated for it.",
    "Table (feature)": "A way to group trips, for example by origin zone, destination zone and time, and the count of each group.",
    "Singleton": "The table with the most detail: a count for every combination of everything that describes a trip, for example one origin, one "
    "destination and one period. Such a combination is also called a trip type.",
    "Consistent": "The tables agree: adding up a more detailed one gives the coarser one exactly.",
    "Structural zero": "A combination that cannot occur, declared publicly beforehand: no noise is added there.",
    "Post-processing": "What is computed from the noisy counts alone, such as making them consistent, not negative and whole. It "
    "cannot weaken the protection.",
}


def build(
    release: Release, *, places: Stops | None = None, manifest: Mapping[str, object] | None = None
) -> str:
    """The report of a release as HTML, which opens offline and asks nothing of any server.

    `places` gives the stops' coordinates for the map, `manifest` what is folded at its end; a release that carries
    its own needs neither. The same release gives the same page to the byte.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"]}
    >>> release = cbdp.ConstraintBased(features, epsilon=1).simulate(trips, seed=0)
    >>> page = build(release)
    >>> page.startswith("<!doctype html>")
    True
    """
    published = published_view(release, places, manifest)
    parts, data = roles(published.dag), chart_data(published)
    noun = counted_noun(published.dag.universe)
    demand, explore = demand_panel(published, data), explore_panels(parts, data)
    sections = {
        "protection": "What is protected, and how strongly",
        "demand": demand and demand.heading,
        "explore": explore and explore.heading,
        "trust": "How far each table can be trusted",
        "budget": "Where the privacy budget went",
        "tables": "How the tables fit together",
        "manifest": "Manifest" if published.manifest else None,
        "glossary": "Glossary",
    }
    mark = "" if release.secure else "Simulation: "
    return render(
        "report/release.html.jinja",
        data=data,
        title=f"{mark}{title_of(release, parts)}: report",
        release=release,
        noun=noun,
        say=noun.say,
        confidence=confidence_text(published.confidence),
        sections={key: name for key, name in sections.items() if name is not None},
        head=_head(published, parts, data),
        protection=protection_of(published),
        demand=demand,
        explore=explore,
        verdicts=verdicts_of(published),
        budget=_budget_shares(published),
        consistency=consistency_of(published),
        manifest=json.dumps(published.manifest, indent=2, sort_keys=True, ensure_ascii=False, default=str),
        glossary=GLOSSARY_TERMS,
    )


# Where the budget went: a bar for each answer, as long as its share


@dataclass(frozen=True)
class BudgetShare:
    """What one table got of the budget. `length` is that of its bar, of 100."""

    table: str
    length: str
    amount: str


@dataclass(frozen=True)
class BudgetShares:
    """The whole budget in a sentence, its δ in another, and what each table got."""

    whole: str
    delta: str
    shares: list[BudgetShare]


def _budget_shares(published: Published) -> BudgetShares:
    claim = published.release.promise
    amounts = {name: cost_amount(cost) for name, cost in published.costs().items()}
    sign, total = ("ρ" if claim.cost.currency == "rho" else "ε"), cost_amount(claim.cost)
    whole, most = f"{sign} = {amount_text(total)}", max(amounts.values(), default=total)
    return BudgetShares(
        f"The whole budget is {whole}."
        if claim.holds
        else f"The noise is as large as a budget of {whole} would make it, but nothing is promised.",
        f" δ in total: {float(claim.cost.delta):.2g}." if claim.cost.delta and sign == "ε" else "",
        [
            BudgetShare(
                name,
                f"{float(amount / most) * 100:.2f}",
                f"{sign} {amount_text(amount)} ({float(100 * amount / total):.3g} %)",
            )
            for name, amount in amounts.items()
        ],
    )


# The head: what this is, who publishes it, and the first numbers one asks for


@dataclass(frozen=True)
class Head:
    """The head of the page; `setting` is place and period, `imprint` who publishes it."""

    title: str
    setting: str | None
    contents: str
    tiles: list[Tile]
    imprint: dict[str, str]


def _head(published: Published, parts: Roles, data: Chart) -> Head:
    release = published.release
    texts = {} if release.about is None else release.about.texts()
    many = len(published_features(published))
    agree = "" if release.tables else " that add up to each other"
    noise = "protected by random noise" if release.promise.holds else "with random noise"
    return Head(
        title_of(release, parts),
        where_and_when(release),
        f"{contents_text(release, parts)}. Published as {many} table{'s' if many > 1 else ''}{agree}, {noise}.",
        [*headline_tiles(published, data), _protection_tile(release)],
        {name: texts[key] for key, name in IMPRINT_FIELDS.items() if key in texts},
    )


def _protection_tile(release: Release) -> Tile:
    claim = release.promise
    about = "see below" if release.secure else "this is a simulation"
    if claim.holds:
        sure = delta_rho_text(claim) if claim.cost.delta else f", without exception{delta_rho_text(claim)}"
        about = f"for each {protected_text(claim.unit, counted_noun(release.features.universe))}{sure}"
    return Tile("Protection", epsilon_text(claim), about, "epsilon")


def headline_tiles(published: Published, data: Chart) -> list[Tile]:
    """Tiles for a first look. What no measurement supports is left out; the number of trips is marked."""
    tiles = [
        _total_tile(published, data),
        _busiest_period_tile(published, data),
        _largest_pair_tile(published, data),
    ]
    shares = [tile for share in data["shares"] if (tile := _most_common_tile(published, share)) is not None]
    return [tile for tile in (*tiles, *shares[:1]) if tile is not None]


def _total_tile(published: Published, data: Chart) -> Tile:
    whole = published.grouped()
    note = "published"
    if published.release.recipe.public:
        note = "public, and met exactly"
    elif published.release.tables:
        note = "in the table with the fewest counts"
    elif data["total"] and not supported(published, (), 0, data["total"]):
        note = "a guess: no measurement tells how many"
    elif whole.low is not None and whole.high is not None and whole.exact:
        note = f"{confidence_text(published.confidence)} interval {int(whole.low):,}–{int(whole.high):,}"
    noun = counted_noun(published.dag.universe)
    only = bounding_text(published.release.claim.unit, noun)
    about = f"{note}; {only}, so the true number may be higher" if only else note
    return Tile(noun.say("Trips"), f"{data['total']:,}", about)


def _busiest_period_tile(published: Published, data: Chart) -> Tile | None:
    demand = data["demand"]
    if not demand or len(demand["labels"]) < 2 or len(demand["series"]) > 1 or not data["total"]:
        return None
    best = int(np.argmax(demand["series"][0]["count"]))
    if not supported(published, (demand["time"],), best, demand["series"][0]["count"][best]):
        return None
    note = _count_with_interval(demand["series"][0], best, demand["exact"], published)
    return Tile("Busiest period", demand["names"][best], note)


def _largest_pair_tile(published: Published, data: Chart) -> Tile | None:
    matrix = data["matrix"]
    if not matrix or matrix["kind"] == "other" or not data["total"]:
        return None
    best = int(np.argmax(matrix["cells"][0]["count"]))
    row, column = divmod(best, len(matrix["columns"]))
    kind = "zone" if matrix["kind"] == "zones" else "stop"
    pair = [
        display_labels(published, matrix[k]).index(matrix[f"{k}s"][at])
        for k, at in (("row", row), ("column", column))
    ]
    place = pair[0] * published.label_count(matrix["column"]) + pair[1]
    if not supported(published, (matrix["row"], matrix["column"]), place, matrix["cells"][0]["count"][best]):
        return None
    note = _count_with_interval(matrix["cells"][0], best, matrix["exact"], published)
    return Tile(f"Largest {kind} pair", f"{matrix['rows'][row]} → {matrix['columns'][column]}", note)


def _most_common_tile(published: Published, share: Chart) -> Tile | None:
    bars, counts = share["bars"][0], share["bars"][0]["count"]
    if not sum(counts):
        return None
    best = int(np.argmax(counts))
    if not supported(published, (share["name"],), best, counts[best]):
        return None
    noun = counted_noun(published.dag.universe)
    note = f"{percent(counts[best] / sum(counts))} of {noun.many}: {_count_with_interval(bars, best, share['exact'], published)}"
    return Tile(f"Most {noun.many}, by {attribute_words(share['name'])}", share["labels"][best], note)


def _count_with_interval(bars: Chart, place: int, exact: bool, published: Published) -> str:
    count = counted_noun(published.dag.universe).number(bars["count"][place])
    if "low" not in bars:
        return count
    sure = f"{confidence_text(published.confidence)} interval" if exact else "range"
    return f"{count} ({sure} {bars['low'][place]:,}–{bars['high'][place]:,})"


# How the tables fit together: what holds among the numbers, checked for this release while its page is written


@dataclass(frozen=True)
class Consistency:
    """How tables are made of each other, what is true of their counts, and how near the estimates are to an optimum."""

    diagram: DagDiagram
    ends: str
    checks: str
    optimum: str | None


def consistency_of(published: Published) -> Consistency:
    dag, noun = published.dag, counted_noun(published.dag.universe)
    names = [attribute_words(name) for name in dag.universe.dimensions]
    every = f"every combination of {enumerated(names)}" if len(names) > 1 else f"every {names[0]}"
    ends = f"“{TOTAL}” is all {noun.many} together; “{SINGLETON}” has a count for {every} ({dag.universe.size:,} of them)."
    if published.release.tables:
        hidden = noun.say("Small counts were left out: a zero may stand for a few trips. ")
        return Consistency(dag_diagram(dag), ends, hidden + _disagreement_note(published), None)
    checks = (
        "All tables are sums of the same published trips, so they add up to each other exactly, on this page and in the files. "
        f"{_rounding_note(published)}{_concentration_note(published)}"
    )
    return Consistency(dag_diagram(dag), ends, noun.say(checks), _certificate_note(published))


def _disagreement_note(published: Published) -> str:
    dag = published.dag
    checked = [
        n for n in published.release.tables if n != SINGLETON and dag.size(n) <= MAX_REGROUPED_ELEMENTS
    ]
    pairs = [(f, c) for f in checked for c in checked if f != c and (f, c) in dag.graph.edges]
    apart = "Noise was added to each table separately"
    if not pairs:
        return f"{apart}, so they need not agree."
    off = sum(not _adds_up(published, fine, coarse) for fine, coarse in pairs)
    some = f"{off} {'does' if off == 1 else 'do'} not"
    return f"{apart}. Of {len(pairs)} pairs of tables that should add up, {some}: do not combine numbers of different tables."


def _adds_up(published: Published, fine: str, coarse: str) -> bool:
    total = np.zeros(published.dag.size(coarse), dtype=np.int64)
    np.add.at(total, published.dag.map_elements(fine, coarse), published.release.counts(fine))
    return bool((total == published.release.counts(coarse)).all())


def _rounding_note(published: Published) -> str:
    release = published.release
    violated = {name: off for name, off in (release.violations or {}).items() if off}
    if violated:
        counts = [f"{n:,} {'count' if n == 1 else 'counts'} of {name}" for name, n in violated.items()]
        return (
            "The tables overlap in too many ways for rounding to keep all of them exact: "
            f"it moved {enumerated(counts)} by one trip or more, and no other count."
        )
    if release.estimate is None:
        return ""
    names = [
        n
        for n in published.dag.features
        if n != SINGLETON and published.dag.size(n) <= MAX_REGROUPED_ELEMENTS
    ]
    moved = max(float(np.abs(release.counts(n) - release.estimate.counts(n)).max(initial=0)) for n in names)
    return (
        "Rounding to whole trips changed every count in these tables by less than one trip."
        if moved < 1
        else ""
    )


def _concentration_note(published: Published) -> str:
    if not concentrates_trips(published.release):
        return ""
    return (
        f" Where no table tells combinations apart, trips were put on those that are most likely to be used. Every count in a table is still its estimate, "
        f"rounded down or up. To read a single number of “{SINGLETON}”, use the estimate in the files, not the count."
    )


def _certificate_note(published: Published) -> str | None:
    solution = getattr(published.release.estimate, "solution", None)
    residual = getattr(solution, "kkt_residual", None)
    if residual is None:
        return None
    to = (
        "what is to be expected after all measurements"
        if has_expected_counts(published.release)
        else "the measurements"
    )
    return (
        f"The estimates are the consistent numbers, none below zero, that are closest to {to}. This was checked afterwards, independently "
        f"of the solver: the conditions for an optimum hold up to {residual:.1e} (KKT residual)."
    )


NOISE_DESCRIPTIONS = {
    DiscreteLaplace.name: "two-sided geometric (discrete Laplace) on whole numbers: P(z) ∝ exp(−|z|/scale)",
    DiscreteGaussian.name: "discrete Gaussian on whole numbers: P(z) ∝ exp(−z²/(2·scale²))",
}


@dataclass(frozen=True)
class Odds:
    """What one ε, or a promise in ρ, means: a factor e^exponent, a δ, and what somebody with a suspicion could learn at most.

    `rare` and `others` are for ρ: how rarely a belief may exceed `sure`, and the same promise at other δ.
    """

    suspicion: str
    question: str
    sure: str
    exponent: str
    factor: str
    delta: str | None = None
    rare: str | None = None
    others: str | None = None


@dataclass(frozen=True)
class ProtectedPerson:
    """The unit of protection where it is a person, or what one does in a period."""

    what: str
    together: str
    habit: str
    left_out: str
    column: str


@dataclass(frozen=True)
class ExpectedTrips:
    """How many trips were expected before anything was counted, how many are published, and the share that bounding may have left out."""

    trips: float
    published: int
    share: str


@dataclass(frozen=True)
class Protection:
    """What the page says of it. `odds` is None where nothing is promised; `several` is the factor for several trips of a person."""

    odds: Odds | None
    person: ProtectedPerson | None
    several: str
    expected: ExpectedTrips | None
    formal: dict[str, str]
    public_inputs: dict[str, str]
    public_counts: str | None


def protection_of(published: Published) -> Protection:
    """Protection of a release in words."""
    claim, noun = published.release.promise, counted_noun(published.dag.universe)
    unit = claim.unit
    return Protection(
        _odds(claim, noun) if claim.holds else None,
        _person(unit, noun) if isinstance(unit, Person) else None,
        enumerated([f"{factor_text(_group_epsilon(claim, k))} for {k} {noun.many}" for k in (2, 5)]) if claim.holds else "",
        _expected_trips(published),
        {
            "Guarantee": noun.say(str(claim)),
            "Neighbouring data sets": noun.say(f"differ by {unit}"),
            "Sensitivity of a table": f"{unit.sensitivity} (the most by which all its counts together can change)",
            "Mechanism": published.release.mechanism,
            **_noise(published),
        },
        _public_inputs(published),
        _public_counts(published),
    )  # fmt: skip


def _odds(claim: PrivacyGuarantee, noun: Noun) -> Odds:
    cost, unit = claim.cost, claim.unit
    epsilon, delta = float(cost.epsilon), float(cost.delta)
    sure = percent_at_most(1 / (1 + math.exp(-min(epsilon, 700.0))))
    factor = factor_text(epsilon) if epsilon > MAX_PICTURABLE_EPSILON else f"less than {factor_text(epsilon)}"
    asked = adversary_suspicion(unit, noun), adversary_question(unit, noun), sure
    if cost.currency != "rho":
        return Odds(*asked, amount_text(cost.epsilon), factor, f"{delta:.2g}" if delta else None)
    # the tail of the privacy loss under ρ-zCDP: it exceeds ε with a probability of at most exp(−(ε − ρ)²/4ρ) (Bun and Steinke 2016)
    rho = float(cost.rho)
    rare = math.exp(-((epsilon - rho) ** 2) / (4 * rho)) if epsilon > rho else 1.0
    pairs = [
        f"e^{readable_epsilon(e)} with δ = {float(d):.0e}" for e, d in epsilon_delta_curve(cost.rho)[1::3]
    ]
    others = f"All of these hold at once: {', '.join(pairs)}. They follow from ρ = {rho:.4g} (zero-concentrated differential privacy)."
    return Odds(
        *asked, readable_epsilon(cost.epsilon), factor, probability_at_most(delta), probability_at_most(rare), others
    )  # fmt: skip


def _group_epsilon(claim: PrivacyGuarantee, trips: int) -> float:
    """The ε of several trips together; under ρ, k of them cost k² times ρ (Bun and Steinke 2016)."""
    cost = claim.cost
    if cost.currency == "rho":
        return float(epsilon_of(trips * trips * cost.rho, cost.delta))
    return float(trips * cost.epsilon)


def _person(unit: Person, noun: Noun) -> ProtectedPerson:
    if unit.per == RELEASE:
        what, together, habit = "one person", f"All {noun.many} of a person", ""
    else:
        what = f"one {unit.per} of one person"
        together = f"All {noun.many} of a person {'on' if unit.per == 'day' else 'in'} one {unit.per}"
        habit = (
            f" A habit that shows on many {unit.per}s is protected less: over several {unit.per}s, ε adds up."
        )
    return ProtectedPerson(what, together, habit, left_out(unit, noun), unit.column)


def _expected_trips(published: Published) -> ExpectedTrips | None:
    """How many trips bounding may have left out, where a public figure tells: what the publisher expected before anything was counted."""
    release = published.release
    expected, total = release.recipe.settings.get("expected_trips"), int(published.grouped().counts.sum())
    if not isinstance(expected, int | float) or release.recipe.public or not 0 < total < expected:
        return None
    return ExpectedTrips(expected, total, percent(1 - total / expected))


def _noise(published: Published) -> dict[str, str]:
    measured = [m for m in published.release.measurements if m.scale is not None and len(m.values)]
    laws = {m.law for m in measured}
    if len(laws) != 1 or not laws <= set(NOISE_DESCRIPTIONS):
        return {}
    return {"Noise": NOISE_DESCRIPTIONS[laws.pop()]}


def _public_counts(published: Published) -> str | None:
    """Counts that were public: unlike the inputs, they depend on the trips."""
    public = published.release.recipe.public
    if not public:
        return None
    names = [n for n in published.dag.features if n in public]
    shown = [
        f"{n} ({sum(public[n]):,} trips{f' in {len(public[n]):,} counts' if len(public[n]) > 1 else ''})"
        for n in names
    ]
    return f"{enumerated(shown)}. {INVARIANTS_NOTE}"


def _public_inputs(published: Published) -> dict[str, str]:
    """What was given, not learnt from trips."""
    universe = published.dag.universe

    def values(name: str, many: int) -> str:
        return f"{attribute_words(name)} ({'1 value' if many == 1 else f'{many:,} values'})"

    dimensions = [values(name, len(d)) for name, d in universe.dimensions.items()]
    extra = [
        values(name, len(a.labels))
        for name, a in universe.attributes.items()
        if name not in universe.dimensions
    ]
    lines = {f"What describes a {counted_noun(universe).one}:": f"{enumerated(dimensions)}."}
    if extra:
        lines["What follows from that:"] = f"{enumerated(extra)}."
    if universe.zeros:
        tied = [" and ".join(of) for of, _ in universe.zeros]
        lines["What cannot happen:"] = (
            f"some combinations of {enumerated(tied)} were declared impossible. They have no noise and no count."
        )
    if published.places is not None:
        lines["Coordinates and names"] = "of the stops."
    lines["Settings:"] = "which tables are counted, the budget, the noise, the method and its software."
    return lines


# What somebody could learn at most


def adversary_question(unit: Unit, noun: Noun = TRIP_NOUN) -> str:
    """What nobody can be sure of."""
    if isinstance(unit, Person):
        who = "one person" if unit.per == RELEASE else f"one {unit.per} of one person"
        return f"any {who} is in the data"
    if unit.neighbours == "add-remove":
        return f"any one {noun.one} is in the data"
    return f"any one {noun.one} was this one or another"


def adversary_suspicion(unit: Unit, noun: Noun = TRIP_NOUN) -> str:
    """What somebody may think has happened, as far as one unit goes: of a person whose days are protected, what they did on one day.

    >>> adversary_suspicion(Person("card", 4, per="day")), adversary_suspicion(Person("card", 4))
    ('a certain person travelled on a certain day', 'a certain person is in the data')
    """
    if not isinstance(unit, Person):
        return f"a certain {noun.one} was made"
    if unit.per == RELEASE:
        return "a certain person is in the data"
    return f"a certain person travelled {'on' if unit.per == 'day' else 'in'} a certain {unit.per}"


# Where the parts of pictures stand that do not change: our own layout


# in pixels: letters and lines of text, between boxes and between layers of them, above a scatter diagram, beside boxes that an arrow passes
LETTER_WIDTH, LINE_HEIGHT, BOX_GAP, LAYER_GAP, SCATTER_TOP, LANE_WIDTH = 7.1, 18, 26, 54, 26, 14
MAX_POINTS = 2_000  # of a scatter diagram: more cannot be told apart


@dataclass(frozen=True)
class Box:
    """A table: its corner, its size, its middle, and its lines with their heights."""

    x: str
    y: str
    width: str
    height: str
    middle: str
    lines: list[tuple[str, str]]


@dataclass(frozen=True)
class DagDiagram:
    """Coarse features above, those they are made of below; an arrow (a path) from each to the coarser one it adds up to."""

    width: str
    height: str
    description: str
    boxes: list[Box]
    arrows: list[str]


def dag_diagram(dag: FeatureDag) -> DagDiagram:
    layers = list(nx.topological_generations(dag.reduction.reverse(copy=True)))
    texts = {
        n: [n, *_grouping_lines(f.by), f"{dag.size(n):,} counts" if n != "total" else "1 count"]
        for n, f in dag.features.items()
    }
    wide = {n: max(24 + LETTER_WIDTH * max(map(len, lines)), 90) for n, lines in texts.items()}
    tall = {n: 14 + LINE_HEIGHT * len(lines) for n, lines in texts.items()}
    rows = [sorted(layer, key=list(dag.features).index) for layer in layers]
    full = (
        max(sum(wide[n] for n in row) + BOX_GAP * (len(row) - 1) for row in rows) + 8 + 2 * _lanes(dag, rows)
    )
    place, top = {}, 4.0
    for row in rows:
        left = (full - sum(wide[n] for n in row) - BOX_GAP * (len(row) - 1)) / 2
        for name in row:
            place[name] = (left, top)
            left += wide[name] + BOX_GAP
        top += max(tall[n] for n in row) + LAYER_GAP
    return DagDiagram(
        f"{full:.0f}",
        f"{top - LAYER_GAP + 4:.0f}",
        "; ".join(f"{fine} adds up to {coarse}" for fine, coarse in dag.edges),
        [_box(*place[n], wide[n], tall[n], lines) for n, lines in texts.items()],
        [_arrow(place, wide, tall, fine, coarse, rows) for fine, coarse in dag.edges],
    )


def _grouping_lines(by: Sequence[str]) -> list[str]:
    """What a feature groups by, in lines of about 24 letters."""
    lines: list[str] = []
    for name in by or ("everything",):
        piece = name if not lines else f"× {name}"
        if lines and len(lines[-1]) + len(piece) < 24:
            lines[-1] += f" {piece}"
        else:
            lines.append(piece)
    return lines


def _arrow(
    place: Mapping[str, tuple[float, float]],
    wide: Mapping[str, float],
    tall: Mapping[str, float],
    fine: str,
    coarse: str,
    rows: Sequence[Sequence[str]],
) -> str:
    """Straight up, or around the tables that lie between: on the side that is nearer."""
    x0, y0 = place[fine][0] + wide[fine] / 2, place[fine][1]
    x1, y1 = place[coarse][0] + wide[coarse] / 2, place[coarse][1] + tall[coarse] + 3
    bend = (y0 - y1) / 2
    path = f"M{x0:.1f},{y0:.1f} C{x0:.1f},{y0 - bend:.1f} {x1:.1f},{y1 + bend:.1f} {x1:.1f},{y1:.1f}"
    between = [n for row in rows for n in row if y1 < place[n][1] < y0 - 1 and n != coarse]
    if between:
        left, right = min(place[n][0] for n in between), max(place[n][0] + wide[n] for n in between)
        x = left - LANE_WIDTH if (x0 + x1) / 2 < (left + right) / 2 else right + LANE_WIDTH
        top, bottom = min(place[n][1] for n in between), max(place[n][1] + tall[n] for n in between)
        path = (
            f"M{x0:.1f},{y0:.1f} C{x0:.1f},{y0 - LAYER_GAP / 2:.1f} {x:.1f},{bottom + LAYER_GAP / 2:.1f} {x:.1f},{bottom:.1f} "
            f"L{x:.1f},{top:.1f} C{x:.1f},{top - LAYER_GAP / 2:.1f} {x1:.1f},{y1 + LAYER_GAP / 2:.1f} {x1:.1f},{y1:.1f}"
        )
    return path


def _lanes(dag: FeatureDag, rows: Sequence[Sequence[str]]) -> float:
    """Room beside the tables for arrows that go around some of them."""
    layer = {n: i for i, row in enumerate(rows) for n in row}
    return LANE_WIDTH + 4 if any(abs(layer[a] - layer[b]) > 1 for a, b in dag.edges) else 0


def _box(x: float, y: float, wide: float, tall: float, lines: Sequence[str]) -> Box:
    heights = (f"{y + LINE_HEIGHT * (place + 1):.1f}" for place in range(len(lines)))
    return Box(
        f"{x:.1f}", f"{y:.1f}", f"{wide:.1f}", f"{tall:.1f}", f"{x + wide / 2:.1f}", list(zip(lines, heights, strict=True))
    )  # fmt: skip


@dataclass(frozen=True)
class ScatterDiagram:
    """Published against true counts on scales of square roots; on the diagonal both agree. Points and ticks (with their count) as places."""

    left: int
    top: int
    side: int
    points: list[tuple[str, str]]
    ticks: list[tuple[int, str, str]]


def scatter_diagram(published: Ints, true: Ints) -> ScatterDiagram:
    """For the curator only."""
    side, left, most = 300, 64, max(1, int(max(published.max(initial=0), true.max(initial=0))))

    def seat(true: int, published: int) -> tuple[str, str]:
        x, y = (math.sqrt(max(n, 0) / most) * side for n in (true, published))
        return f"{left + x:.1f}", f"{SCATTER_TOP + side - y:.1f}"

    points = np.unique(np.column_stack([true, published]), axis=0)
    if len(points) > MAX_POINTS:
        points = points[np.linspace(0, len(points) - 1, MAX_POINTS).astype(int)]
    ticks = sorted({0, most // 16, most // 4, most})
    return ScatterDiagram(
        left, SCATTER_TOP, side, [seat(t, p) for t, p in points.tolist()], [(t, *seat(t, t)) for t in ticks]
    )
