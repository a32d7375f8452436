"""What a plan would release, in plain words and in numbers, before anything is spent or any row is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from cbdp.app.explain.gaps import Gap, gaps
from cbdp.app.explain.laws import LawChoice, law_choice
from cbdp.app.explain.numbers import (
    ExpectedNoise,
    choices,
    epsilon_for,
    noise,
    number,
    percent,
    sign_of,
    trips_text,
    unmeasured,
)
from cbdp.app.explain.words import files, tree, warnings, words
from cbdp.app.plan import Plan
from cbdp.errors import InputError
from cbdp.privacy.numbers import positive


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
    noise: tuple[ExpectedNoise, ...]
    choices: Mapping[str, Mapping[str, float]]  # budget → feature → expected error of a count, in trips
    laws: LawChoice | None  # both laws of noise, for the same (ε, δ)
    unmeasured: tuple[str, ...]
    gaps: tuple[Gap, ...]  # dimensions and attributes that no measured table covers
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
        laws=law_choice(plan),
        unmeasured=unmeasured(plan),
        gaps=gaps(plan),
        warnings=tuple(warnings(plan, measured)),
        files=files(plan),
        request=plan.request,
        text="\n".join(words(plan, measured)) + "\n",
    )


def answer(
    plan: Plan, feature: str, within: str, confidence: float | None = None, expected_trips: int | None = None
) -> str:
    """Which ε brings a feature within so many per cent, as a sentence."""
    part = positive(within.replace("%", "").strip(), "within") / 100
    epsilon = epsilon_for(plan, feature, part, confidence, expected_trips)
    mean = Fraction(
        expected_trips or plan.expected_trips or 0, plan.mechanism.measured_features.size(feature)
    )
    sure = plan.confidence if confidence is None else confidence
    return (
        f"For {feature!r} to be within {percent(float(part))} ({trips_text(part * mean)} of {trips_text(mean)} trips on average) "
        f"with {percent(sure)} confidence, {sign_of(plan)} of the whole release must be at least {number(epsilon)}. "
        f"This is by the law of the noise before post-processing, with {sign_of(plan)} shared as configured."
    )


def answers(plan: Plan, wishes: Sequence[str]) -> list[str]:
    """The answers to wishes like "zone=5", all of them or, if one cannot be answered, none."""
    made = []
    for wish in wishes:
        feature, equals, percent = wish.partition("=")
        if not equals:
            raise InputError(f"--within takes FEATURE=PERCENT, for example zone=5, not {wish!r}")
        made.append(answer(plan, feature, percent))
    return made
