"""What was protected, how strongly, and what was not: in plain words, and precisely for reviewers."""

from __future__ import annotations

import math

from cbdp.estimation.invariants import INVARIANTS_NOTE
from cbdp.privacy.accounting import PrivacyGuarantee, epsilon_delta_curve, epsilon_of, readable_epsilon
from cbdp.privacy.noise import DiscreteGaussian, DiscreteLaplace
from cbdp.privacy.unit import RELEASE, Person, Unit
from cbdp.release.roles import TRIP_NOUN, Noun, counted_noun, enumerated
from cbdp.release.summary import amount_text, factor_text, left_out
from cbdp.release.views import Published
from cbdp.report.markup import Html, join, tag
from cbdp.report.text import at_most, attribute_words, odds_bound, percent

NOISE_DESCRIPTIONS = {
    DiscreteLaplace.name: "two-sided geometric (discrete Laplace) on whole numbers: P(z) ∝ exp(−|z|/scale)",
    DiscreteGaussian.name: "discrete Gaussian on whole numbers: P(z) ∝ exp(−z²/(2·scale²))",
}


def protection_section(published: Published) -> Html:
    holds, noun = published.release.promise.holds, counted_noun(published.dag.universe)
    summary = tag("summary", "For reviewers: the exact statement")
    return join(
        *((_odds_statement(published), _unit_statement(published)) if holds else (_no_protection(published),)),
        tag("details", summary, tag("dl", _formal_statement(published), class_="facts")),
        tag("h3", "What was not protected"),
        tag("p", noun.say("These facts are public. They were fixed before any trip was counted, and would be the same whatever trips were made:")),
        tag("ul", _public_inputs(published)),
        _public_counts(published),
    )  # fmt: skip


def _no_protection(published: Published) -> Html:
    release = published.release
    what, who = ("release", f"“{release.mechanism}”: ") if release.secure else ("simulation", "")
    unit, noun = release.claim.unit, counted_noun(published.dag.universe)
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


def _odds_statement(published: Published) -> Html:
    """The protection as a sentence, and as what a sceptic could learn at most."""
    claim, noun = published.release.promise, counted_noun(published.dag.universe)
    if claim.cost.currency == "rho":
        return zcdp_statement(claim, noun)
    epsilon, delta = float(claim.cost.epsilon), claim.cost.delta
    sure = math.exp(min(epsilon, 700.0)) / (1 + math.exp(min(epsilon, 700.0)))
    failing = f" This may fail with a probability of at most δ = {float(delta):.2g}." if delta else ""
    example = tag(
        "p", f"Suppose somebody thinks there is a 50 % chance that {adversary_suspicion(claim.unit, noun)}. This release can "
        f"raise that to at most {at_most(sure)}, whatever else they know.{failing}", class_="lead",
    )  # fmt: skip
    bound = join("e", tag("sup", amount_text(claim.cost.epsilon)), f", which is {odds_bound(epsilon)}")
    statement = tag(
        "p", f"In general: whether {adversary_question(claim.unit, noun)} changes the odds of any conclusion by at most a factor of ",
        tag("strong", bound, id="factor"), ".",
    )  # fmt: skip
    return join(example, statement)


def _unit_statement(published: Published) -> Html:
    """Who or what is protected, and what that means for people with many trips."""
    protects, epsilon = published.release.claim.unit, published.release.claim.cost.epsilon
    if isinstance(protects, Person):
        return join(
            *_person_statement(protects, counted_noun(published.dag.universe)), _left_out_estimate(published)
        )
    words = "added or removed" if protects.neighbours == "add-remove" else "replaced by another"
    cost, noun = published.release.claim.cost, counted_noun(published.dag.universe)
    several = [f"{factor_text(float(k * epsilon))} for {k} {noun.many}" for k in (2, 5)]
    if cost.currency == "rho":  # group privacy: k trips cost k² times ρ (Bun and Steinke 2016)
        several = [
            f"{factor_text(float(epsilon_of(k * k * cost.rho, cost.delta)))} for {k} {noun.many}"
            for k in (2, 5)
        ]
    return tag(
        "p", tag("strong", f"The unit of protection is one {noun.one}"),
        f" ({words}): each single {noun.one} is protected, but not all {noun.many} of a person together. For a person who made several {noun.many} the "
        f"factor is larger: {enumerated(several)}.",
    )  # fmt: skip


def _person_statement(unit: Person, noun: Noun) -> tuple[Html, Html]:
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


def _left_out_estimate(published: Published) -> Html | None:
    """How many trips bounding may have left out, where a public figure tells: what the publisher expected before anything was counted."""
    release = published.release
    expected = release.recipe.settings.get("expected_trips")
    total, noun = int(published.grouped().counts.sum()), counted_noun(published.dag.universe)
    if not isinstance(expected, int | float) or release.recipe.public or not 0 < total < expected:
        return None
    return tag(
        "p", f"Before anything was counted, about {expected:,.0f} {noun.many} were expected; {total:,} are published. If that was right, the "
        f"{noun.many} that were left out may be up to {percent(1 - total / expected)} of all.",
    )  # fmt: skip


def _formal_statement(published: Published) -> Html:
    claim, noun = published.release.promise, counted_noun(published.dag.universe)
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
    if len(laws) != 1 or not laws <= set(NOISE_DESCRIPTIONS):
        return None
    return join(tag("dt", "Noise"), tag("dd", NOISE_DESCRIPTIONS[laws.pop()]))


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
    return tag(
        "p", tag("strong", "Public counts: "), f"{enumerated(shown)}. {INVARIANTS_NOTE}", id="public-counts"
    )


def _value_count_text(many: int) -> str:
    return "1 value" if many == 1 else f"{many:,} values"


def _public_inputs(published: Published) -> list[Html]:
    """What was given, not learnt from trips."""
    universe = published.dag.universe
    dimensions = [
        f"{attribute_words(name)} ({_value_count_text(len(d))})" for name, d in universe.dimensions.items()
    ]
    extra = [
        f"{attribute_words(n)} ({_value_count_text(len(a.labels))})"
        for n, a in universe.attributes.items()
        if n not in universe.dimensions
    ]
    lines = [
        tag(
            "li",
            tag("strong", f"What describes a {counted_noun(universe).one}: "),
            enumerated(dimensions),
            ".",
        )
    ]
    if extra:
        lines.append(tag("li", tag("strong", "What follows from that: "), enumerated(extra), "."))
    if universe.zeros:
        tied = [" and ".join(of) for of, _ in universe.zeros]
        impossible = f"some combinations of {enumerated(tied)} were declared impossible. They have no noise and no count."
        lines.append(tag("li", tag("strong", "What cannot happen: "), impossible))
    if published.places is not None:
        lines.append(tag("li", tag("strong", "Coordinates and names "), "of the stops."))
    settings = "which tables are counted, the budget, the noise, the method and its software."
    return [*lines, tag("li", tag("strong", "Settings: "), settings)]


# What one ε, or a promise in ρ, means: a factor, a δ, and what somebody could learn at most


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


def zcdp_statement(claim: PrivacyGuarantee, noun: Noun = TRIP_NOUN) -> Html:
    """The protection as a sentence, and as what a sceptic could learn at most."""
    epsilon, delta = claim.cost.epsilon, claim.cost.delta
    bound = join("e", tag("sup", readable_epsilon(epsilon)), f", which is {odds_bound(float(epsilon))}")
    statement = tag(
        "p", f"In general: whether {adversary_question(claim.unit, noun)} changes the chance of any conclusion by at most a factor of ",
        tag("strong", bound, id="factor"), f", and δ = {_probability_text(float(delta))} on top.",
    )  # fmt: skip
    means = (
        "What δ means: the chance of a conclusion may be larger than the factor allows, by this much and no more. It is not a chance that somebody’s "
        f"{noun.many} become visible: with this noise the protection becomes weaker little by little; it never fails all at once."
    )
    others = tag(
        "details",
        tag("summary", "For reviewers: the same promise with other δ"),
        tag("p", _epsilon_at_deltas(claim)),
    )
    return join(
        tag("p", _zcdp_example(claim, noun), class_="lead"), statement, tag("p", means, id="delta"), others
    )


def _zcdp_example(claim: PrivacyGuarantee, noun: Noun) -> str:
    """By the tail of the privacy loss under ρ-zCDP: it exceeds ε with a probability of at most exp(−(ε − ρ)²/4ρ) (Bun and Steinke 2016)."""
    epsilon, rho = float(claim.cost.epsilon), float(claim.cost.rho)
    sure = 1 / (1 + math.exp(-min(epsilon, 700.0)))
    rare = math.exp(-((epsilon - rho) ** 2) / (4 * rho)) if epsilon > rho else 1.0
    return (
        f"Suppose somebody thinks there is a 50 % chance that {adversary_suspicion(claim.unit, noun)}. "
        f"This release can raise that to at most {at_most(sure)}, whatever else they know, except with a probability of at "
        f"most {_probability_text(rare)}."
    )


def _epsilon_at_deltas(claim: PrivacyGuarantee) -> str:
    """The same promise at other δ."""
    pairs = [
        f"e^{readable_epsilon(e)} with δ = {float(d):.0e}"
        for e, d in epsilon_delta_curve(claim.cost.rho)[1::3]
    ]
    return f"All of these hold at once: {', '.join(pairs)}. They follow from ρ = {float(claim.cost.rho):.4g} (zero-concentrated differential privacy)."


def _probability_text(chance: float) -> str:
    """A small chance to read, rounded up.

    >>> _probability_text(1e-6), _probability_text(1.37e-5), _probability_text(0.3)
    ('1e-06 (one in 1,000,000)', '1.4e-05 (one in 71,428)', '0.3 (one in 3)')
    """
    scale = 10.0 ** (math.floor(math.log10(chance)) - 1)
    up = math.ceil(chance / scale - 1e-9) * scale
    return f"{up:.2g} (one in {math.floor(1 / up + 1e-9):,})"
