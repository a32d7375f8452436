"""The report's words: what was protected, what was not, and what the terms mean."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cbdp.estimate import ESTIMATORS
from cbdp.features import SINGLETON
from cbdp.privacy.unit import Person
from cbdp.report.charts import Chart
from cbdp.report.markup import Html, join, tag
from cbdp.report.pictures import price
from cbdp.report.published import LISTED, Published
from cbdp.report.roles import Roles, listed, period_names
from cbdp.report.trust import gathers

GLOSSARY = {
    "Differential privacy": "A property of how numbers are made, not of the numbers: whether one unit (a trip, a person) is in the "
    "data hardly changes the chance of any result. It holds whatever else anybody knows, and for all time.",
    "ε (epsilon), the budget": "How strong the protection is. The odds of any conclusion change by at most a factor of e^ε. Smaller is safer. "
    "Answers about the same data add up their ε.",
    "δ (delta)": "A small probability with which the bound by ε may fail. It is 0 here unless the report says otherwise.",
    "Noise scale": "How large the random noise added to each count is, in trips. Typical noise is about as large as its scale; three times "
    "the scale is exceeded about once in twenty.",
    "Interval": "The range in which the true count lies with the stated confidence. Its ends account for the noise and for everything done "
    "afterwards. Made from the release alone, so it costs no privacy.",
    "Range": "Where a sum has no interval of its own, the ends of its parts’ intervals are added up. Errors of parts cancel, so such a range is usually "
    "much wider than an interval would be. No confidence is stated for it.",
    "Table (feature)": "A way to group trips, for example by origin zone, destination zone and time. Each group's count was measured with noise.",
    "Trip type": "One combination of all dimensions, for example origin, destination and period.",
    "Consistent": "Tables agree: adding up a finer one gives the coarser one exactly.",
    "Structural zero": "A combination that cannot occur, declared in public beforehand: no noise is added there.",
    "Post-processing": "What is computed from noisy counts alone: making them consistent, non-negative and whole. It cannot weaken the protection.",
}


def number(value: float) -> str:
    """Whole numbers with separators, others with three digits.

    >>> number(37709), number(2.71828), number(22026.47), number(1e9)
    ('37,709', '2.72', '22,026', '1,000,000,000')
    """
    if value >= 1e15:
        return f"{value:.2e}"
    return f"{value:,.0f}" if value >= 100 or float(value).is_integer() else f"{value:.3g}"


def percent(share: float) -> str:
    """A share to read: small ones with two digits, and never 100 % for less than all.

    >>> percent(0.731), percent(0.011), percent(0.004), percent(0), percent(0.999), percent(2.75)
    ('73 %', '1.1 %', '0.4 %', '0 %', '99.9 %', '275 %')
    """
    value = 100 * share
    if 99 < value < 100:  # not everything
        return f"{min(math.floor(10 * value) / 10, 99.9)} %"
    return f"{value:,.0f} %" if value >= 10 else f"{value:.2g} %"


def factor(epsilon: float) -> str:
    """e^ε, as far as it can be written."""
    if epsilon > 30:
        return "more than 10 million million"
    value = math.exp(epsilon)
    return number(value) if value >= 100 else f"{value:.2f}" if value < 1.995 else f"{value:.1f}"


def what(published: Published, parts: Roles, total: int) -> str:
    """One sentence: how many trips, between what, over which time."""
    universe = published.dag.universe
    if parts.ends is not None:
        ends = [len(universe.dimension(end)) for end in parts.ends]
        between = (
            f"between {ends[0]:,} stops" if ends[0] == ends[1] else f"from {ends[0]:,} to {ends[1]:,} stops"
        )
    else:
        sizes = [f"{len(d):,} values of {n}" for n, d in universe.dimensions.items() if n != parts.time]
        between = f"by {listed(sizes)}" if sizes else ""
    when = f", {span(published, parts)}" if parts.time is not None else ""
    return f"{total:,} {'trip' if total == 1 else 'trips'} {between}{when}"


def span(published: Published, parts: Roles) -> str:
    """The time that the trips are from."""
    assert parts.time is not None
    dimension = published.dag.universe.dimension(parts.time)
    names = period_names(dimension)
    if dimension.edges is None:
        return f"in {len(names)} periods" if len(names) > 1 else f"in one period ({names[0]})"
    first, last = names[0].split("–")[0], names[-1].split("–")[-1]
    return f"{first}–{last} in {len(names)} periods" if len(names) > 1 else f"{first}–{last}"


def odds(published: Published) -> Html:
    """The protection as a sentence, and as what a sceptic could learn at most."""
    claim = published.release.claim
    if not claim.holds:
        return join(
            tag("p", tag("strong", "This release promises no differential privacy. "), f"The mechanism “{published.release.mechanism}”: {claim.caveat}.", class_="warning"),
        )  # fmt: skip
    epsilon, delta = float(claim.cost.epsilon), claim.cost.delta
    who = "any one person" if isinstance(claim.unit, Person) else "any one trip"
    bound = join("e", tag("sup", price(claim.cost.epsilon)), f" = {factor(epsilon)}")
    question = f"{who} is in the data"
    if not isinstance(claim.unit, Person) and claim.unit.neighbours == "replace":
        question = f"{who} was this one or another"
    sure = math.exp(min(epsilon, 700.0)) / (1 + math.exp(min(epsilon, 700.0)))
    said = tag("p", f"Whether {question} changes the odds of any conclusion by at most a factor of ", tag("strong", bound, id="factor"), ".", class_="lead")  # fmt: skip
    example = (
        f"For example: somebody who holds it for as likely as not (50 %) that {who.replace('any one', 'a given')} "
        f"{'took part' if isinstance(claim.unit, Person) else 'was made'} can be at most {percent(min(sure, 0.999999))} "
        "sure after studying this release, whatever else they know."
    )
    failing = f" This may fail with a probability of at most δ = {float(delta):.2g}." if delta else ""
    return join(said, tag("p", example, failing))


def unit(published: Published) -> Html:
    """Who or what is protected, and what that means for people with many trips."""
    protects, epsilon = published.release.claim.unit, published.release.claim.cost.epsilon
    if isinstance(protects, Person):
        return tag(
            "p", tag("strong", "The unit is one person. "),
            f"All trips of a person together are protected. At most {protects.max_trips} trips of each (told apart by “{protects.column}”) were counted, "
            "chosen at random; further ones were left out before anything was measured. So true totals may be higher, and intervals do not account for that.",
        )  # fmt: skip
    words = "added or removed" if protects.neighbours == "add-remove" else "replaced by another"
    several = [f"{factor(float(k * epsilon))} for {k} trips together" for k in (2, 5)]
    return tag(
        "p", tag("strong", "The unit is one trip"), f" ({words}). A person who made several trips is protected less: the factor is ", f"{listed(several)}.",
    )  # fmt: skip


def not_protected(published: Published) -> list[Html]:
    """The public inputs: they were given, not learnt from trips."""
    universe = published.dag.universe
    dimensions = [f"{name} ({len(d):,} values)" for name, d in universe.dimensions.items()]
    extra = [
        f"{n} ({len(a.labels):,} values)"
        for n, a in universe.attributes.items()
        if n not in universe.dimensions
    ]
    lines = [tag("li", tag("strong", "Dimensions: "), listed(dimensions), ".")]
    if extra:
        lines.append(tag("li", tag("strong", "Attributes: "), listed(extra), "."))
    if universe.zeros:
        tied = [" and ".join(of) for of, _ in universe.zeros]
        lines.append(tag("li", tag("strong", "Structural zeros: "), f"combinations of {listed(tied)} that were declared impossible."))  # fmt: skip
    if published.places is not None:
        lines.append(tag("li", tag("strong", "Coordinates and names "), "of the stops."))
    lines.append(
        tag(
            "li",
            tag("strong", "Settings: "),
            "which tables are counted, the budget, the noise, the method and its software.",
        )
    )
    return lines


def consistency(published: Published) -> Html:
    """What holds among the numbers: checked for this release while this page was written."""
    release, dag = published.release, published.dag
    whole = "Every published count is a whole number of at least 0. "
    hidden = "Counts that came out small were suppressed: a zero may stand for a few trips. "
    if release.tables:
        known = [n for n in release.tables if n != SINGLETON and dag.size(n) <= LISTED]
        edges = [(f, c) for f in known for c in known if f != c and (f, c) in dag.graph.edges]
        off = [(f, c) for f, c in edges if not _adds_up(published, f, c)]
        said = (
            f"The tables were noised one by one. Of {len(edges)} pairs that should add up, {len(off)} do not"
        )
        return tag("p", whole, hidden, f"{said}: do not mix numbers of different tables." if edges else "The tables were noised one by one and need not agree.")  # fmt: skip
    adds = "All tables are sums of the same published trips, so they add up to each other exactly, in this page and in the files. "
    return join(tag("p", whole, adds, _rounding(published), _gathered(published)), _certificate(published))


def _adds_up(published: Published, fine: str, coarse: str) -> bool:
    total = np.zeros(published.dag.size(coarse), dtype=np.int64)
    np.add.at(total, published.dag.map_elements(fine, coarse), published.release.counts(fine))
    return bool((total == published.release.counts(coarse)).all())


def _rounding(published: Published) -> str:
    release = published.release
    violated = {name: off for name, off in (release.violations or {}).items() if off}
    if violated:
        named = listed([f"{count:,} of {name}" for name, count in violated.items()])
        return f"Tables cross so often that rounding could not keep all of them: it moved {named} by one trip or more, and no other count."
    if release.estimate is None:
        return ""
    names = [n for n in published.dag.features if n != SINGLETON and published.dag.size(n) <= LISTED]
    moved = max(float(np.abs(release.counts(n) - release.estimate.counts(n)).max(initial=0)) for n in names)
    return (
        "Rounding to whole trips moved every count of every table of sums by less than one trip."
        if moved < 1
        else ""
    )


def _gathered(published: Published) -> str:
    if not gathers(published.release):
        return ""
    return (
        " Within a group of trip types that no table tells apart, trips were put on the types that are likeliest to be used. "
        "Every count of a table is still its estimate rounded down or up; of a single trip type, read the estimate in the files, not the count."
    )


def _certificate(published: Published) -> Html | None:
    solution = getattr(published.release.estimate, "solution", None)
    residual = getattr(solution, "kkt_residual", None)
    if residual is None:
        return None
    estimator = published.release.recipe.estimator
    expected = estimator is not None and ESTIMATORS.get(estimator).expects
    to = "what is to be expected given all noisy answers" if expected else "the noisy answers"
    return tag(
        "p", f"The estimates are the consistent, non-negative ones closest to {to}. The optimality of that was checked afterwards, "
        f"independently of the solver: the conditions hold up to {residual:.1e} (KKT residual).",
    )  # fmt: skip


def findings(published: Published, data: Chart) -> list[tuple[str, str, str]]:
    """Tiles for a first look: a heading, a number, and what it is."""
    found = [_trips(published, data)]
    demand = data["demand"]
    if demand and len(demand["labels"]) > 1 and len(demand["series"]) == 1 and data["total"]:
        best = int(np.argmax(demand["series"][0]["count"]))
        found.append(
            (
                "Busiest period",
                demand["names"][best],
                _ranged(demand["series"][0], best, demand["exact"], published),
            )
        )
    matrix = data["matrix"]
    if matrix and matrix["kind"] != "other" and data["total"]:
        best = int(np.argmax(matrix["cells"][0]["count"]))
        row, column = divmod(best, len(matrix["columns"]))
        pair = f"{matrix['rows'][row]} → {matrix['columns'][column]}"
        found.append(
            (
                f"Largest {'zone' if matrix['kind'] == 'zones' else 'stop'} pair",
                pair,
                _ranged(matrix["cells"][0], best, matrix["exact"], published),
            )
        )
    for share in data["shares"][:1]:
        bars, counts = share["bars"][0], share["bars"][0]["count"]
        if sum(counts):
            best = int(np.argmax(counts))
            part = percent(counts[best] / sum(counts))
            found.append(
                (
                    f"Largest {share['name']}",
                    share["labels"][best],
                    f"{part} of trips: {_ranged(bars, best, share['exact'], published)}",
                )
            )
    return found


def _trips(published: Published, data: Chart) -> tuple[str, str, str]:
    whole = published.grouped()
    said = "published"
    if published.release.tables:
        said = "in the table with the fewest counts"
    elif whole.low is not None and whole.high is not None and whole.exact:
        said = f"{confident(published)} interval {int(whole.low):,}–{int(whole.high):,}"
    return "Trips", f"{data['total']:,}", said


def _ranged(bars: Chart, place: int, exact: bool, published: Published) -> str:
    count = f"{bars['count'][place]:,} trips"
    if "low" not in bars:
        return count
    sure = f"{confident(published)} interval" if exact else "range"
    return f"{count} ({sure} {bars['low'][place]:,}–{bars['high'][place]:,})"


def confident(published: Published) -> str:
    return f"{100 * published.confidence:g} %"


def tables(published: Published) -> Sequence[str]:
    """The features that are published, coarse ones first."""
    named = published.release.tables
    return [n for n in published.dag.features if n in named or not named]
