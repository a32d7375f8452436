"""The public report of a release: one self-contained page, made of published values only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cbdp.features import SINGLETON, TOTAL
from cbdp.numbers import amount_text, confidence_text, percent
from cbdp.privacy.accounting import cost_amount
from cbdp.release.release import Release
from cbdp.release.roles import Roles, counted_noun, enumerated, roles
from cbdp.release.summary import (
    bounding_text,
    contents_text,
    delta_rho_text,
    epsilon_text,
    protected_text,
    title_of,
    where_and_when,
)
from cbdp.release.views import MAX_REGROUPED_ELEMENTS, Published, published_view
from cbdp.report.charts import Chart, chart_data, display_labels
from cbdp.report.diagrams import DagDiagram, dag_diagram
from cbdp.report.explore import demand_panel, explore_panels
from cbdp.report.protection import protection_of
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
