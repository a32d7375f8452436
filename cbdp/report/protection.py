"""What was protected, how strongly, and what was not: in plain words, and precisely for reviewers."""

from __future__ import annotations

import math

from cbdp.estimate.public import MEANING
from cbdp.privacy.accounting import epsilon_of
from cbdp.privacy.laws.gaussian import Gaussian
from cbdp.privacy.laws.geometric import Geometric
from cbdp.privacy.unit import RELEASE, Person
from cbdp.release.counted import Noun, counted
from cbdp.release.published import Published
from cbdp.release.roles import listed
from cbdp.release.words import factor, left_out, price
from cbdp.report.concentrated import concentrated, question_of, suspected
from cbdp.report.markup import Html, join, tag
from cbdp.report.text import at_most, bounded, percent, spoken

NOISE = {
    Geometric.name: "two-sided geometric (discrete Laplace) on whole numbers: P(z) ∝ exp(−|z|/scale)",
    Gaussian.name: "discrete Gaussian on whole numbers: P(z) ∝ exp(−z²/(2·scale²))",
}


def protection(published: Published) -> Html:
    holds, noun = published.release.promise.holds, counted(published.dag.universe)
    summary = tag("summary", "For reviewers: the exact statement")
    return join(
        *((_odds(published), _unit(published)) if holds else (_nothing(published),)),
        tag("details", summary, tag("dl", _precisely(published), class_="facts")),
        tag("h3", "What was not protected"),
        tag("p", noun.say("These facts are public. They were fixed before any trip was counted, and would be the same whatever trips were made:")),
        tag("ul", _public_inputs(published)),
        _public_counts(published),
    )  # fmt: skip


def _nothing(published: Published) -> Html:
    release = published.release
    what, who = ("release", f"“{release.mechanism}”: ") if release.secure else ("simulation", "")
    unit, noun = release.claim.unit, counted(published.dag.universe)
    nothing = tag(
        "p", tag("strong", f"This {what} promises no differential privacy. "), f"Reason: {who}{release.promise.caveat}.", class_="warning"
    )  # fmt: skip
    return join(nothing, _not_counted(unit, noun) if isinstance(unit, Person) else None)


def _not_counted(unit: Person, noun: Noun) -> Html:
    """What a bound on each person's trips leaves out."""
    return tag(
        "p", tag("strong", f"Not every {noun.one} is counted. "),
        f"{left_out(unit, noun)} (The column “{unit.column}” says who made a {noun.one}.)", id="not-counted",
    )  # fmt: skip


def _odds(published: Published) -> Html:
    """The protection as a sentence, and as what a sceptic could learn at most."""
    claim, noun = published.release.promise, counted(published.dag.universe)
    if claim.cost.currency == "rho":
        return concentrated(claim, noun)
    epsilon, delta = float(claim.cost.epsilon), claim.cost.delta
    sure = math.exp(min(epsilon, 700.0)) / (1 + math.exp(min(epsilon, 700.0)))
    failing = f" This may fail with a probability of at most δ = {float(delta):.2g}." if delta else ""
    example = tag(
        "p", f"Suppose somebody thinks there is a 50 % chance that {suspected(claim.unit, noun)}. This release can "
        f"raise that to at most {at_most(sure)}, whatever else they know.{failing}", class_="lead",
    )  # fmt: skip
    bound = join("e", tag("sup", price(claim.cost.epsilon)), f", which is {bounded(epsilon)}")
    said = tag(
        "p", f"In general: whether {question_of(claim.unit, noun)} changes the odds of any conclusion by at most a factor of ",
        tag("strong", bound, id="factor"), ".",
    )  # fmt: skip
    return join(example, said)


def _unit(published: Published) -> Html:
    """Who or what is protected, and what that means for people with many trips."""
    protects, epsilon = published.release.claim.unit, published.release.claim.cost.epsilon
    if isinstance(protects, Person):
        return join(*_person(protects, counted(published.dag.universe)), _missing(published))
    words = "added or removed" if protects.neighbours == "add-remove" else "replaced by another"
    cost, noun = published.release.claim.cost, counted(published.dag.universe)
    several = [f"{factor(float(k * epsilon))} for {k} {noun.many}" for k in (2, 5)]
    if cost.currency == "rho":  # k trips cost k² times ρ
        several = [
            f"{factor(float(epsilon_of(k * k * cost.rho, cost.delta)))} for {k} {noun.many}" for k in (2, 5)
        ]
    return tag(
        "p", tag("strong", f"The unit of protection is one {noun.one}"),
        f" ({words}): each single {noun.one} is protected, but not all {noun.many} of a person together. For a person who made several {noun.many} the "
        f"factor is larger: {listed(several)}.",
    )  # fmt: skip


def _person(unit: Person, noun: Noun) -> tuple[Html, Html]:
    whole = unit.per == RELEASE
    what = "one person" if whole else f"one {unit.per} of one person"
    together = (
        f"All {noun.many} of a person"
        if whole
        else f"All {noun.many} of a person {'on' if unit.per == 'day' else 'in'} one {unit.per}"
    )
    habit = (
        ""
        if whole
        else f" A habit that shows on many {unit.per}s is protected less: over several {unit.per}s, ε adds up."
    )
    return tag(
        "p",
        tag("strong", f"The unit of protection is {what}. "),
        f"{together} are protected together.{habit}",
    ), _not_counted(unit, noun)


def _missing(published: Published) -> Html | None:
    """How many trips bounding may have left out, where a public figure tells: what the publisher expected before anything was counted."""
    release = published.release
    expected = release.recipe.settings.get("expected_trips")
    total, noun = int(published.grouped().counts.sum()), counted(published.dag.universe)
    if not isinstance(expected, int | float) or release.recipe.public or not 0 < total < expected:
        return None
    return tag(
        "p", f"Before anything was counted, about {expected:,.0f} {noun.many} were expected; {total:,} are published. If that was right, the "
        f"{noun.many} that were left out may be up to {percent(1 - total / expected)} of all.",
    )  # fmt: skip


def _precisely(published: Published) -> Html:
    claim, noun = published.release.promise, counted(published.dag.universe)
    return join(
        tag("dt", "Guarantee"), tag("dd", noun.say(str(claim))),
        tag("dt", "Neighbouring data sets"), tag("dd", noun.say(f"differ by {claim.unit}")),
        tag("dt", "Sensitivity of a table"), tag("dd", f"{claim.unit.sensitivity} (the most by which all its counts together can change)"),
        tag("dt", "Mechanism"), tag("dd", published.release.mechanism),
        _noise_law(published),
    )  # fmt: skip


def _noise_law(published: Published) -> Html | None:
    measured = [m for m in published.release.measurements if m.scale is not None and len(m.values)]
    laws = {m.law for m in measured}
    if len(laws) != 1 or not laws <= set(NOISE):
        return None
    return join(tag("dt", "Noise"), tag("dd", NOISE[laws.pop()]))


def _public_counts(published: Published) -> Html | None:
    """Counts that were public: unlike the inputs above, they depend on the trips."""
    public = published.release.recipe.public
    if not public:
        return None
    names = [n for n in published.dag.features if n in public]
    shown = [
        f"{n} ({sum(public[n]):,} trips{f' in {len(public[n]):,} counts' if len(public[n]) > 1 else ''})"
        for n in names
    ]
    return tag("p", tag("strong", "Public counts: "), f"{listed(shown)}. {MEANING}", id="public-counts")


def _values(many: int) -> str:
    return "1 value" if many == 1 else f"{many:,} values"


def _public_inputs(published: Published) -> list[Html]:
    """What was given, not learnt from trips."""
    universe = published.dag.universe
    dimensions = [f"{spoken(name)} ({_values(len(d))})" for name, d in universe.dimensions.items()]
    extra = [
        f"{spoken(n)} ({_values(len(a.labels))})"
        for n, a in universe.attributes.items()
        if n not in universe.dimensions
    ]
    lines = [tag("li", tag("strong", f"What describes a {counted(universe).one}: "), listed(dimensions), ".")]
    if extra:
        lines.append(tag("li", tag("strong", "What follows from that: "), listed(extra), "."))
    if universe.zeros:
        tied = [" and ".join(of) for of, _ in universe.zeros]
        impossible = (
            f"some combinations of {listed(tied)} were declared impossible. They have no noise and no count."
        )
        lines.append(tag("li", tag("strong", "What cannot happen: "), impossible))
    if published.places is not None:
        lines.append(tag("li", tag("strong", "Coordinates and names "), "of the stops."))
    settings = "which tables are counted, the budget, the noise, the method and its software."
    return [*lines, tag("li", tag("strong", "Settings: "), settings)]
