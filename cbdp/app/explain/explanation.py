"""What a plan would release, in plain words and in numbers, before anything is spent or any row is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from cbdp.app.explain.expected import ExpectedTable, expected
from cbdp.app.explain.gaps import Gap, gaps
from cbdp.app.explain.laws import LawChoice, law_choice
from cbdp.app.explain.numbers import (
    ExpectedNoise,
    choices,
    noise,
    unmeasured,
)
from cbdp.app.explain.screen import screen
from cbdp.app.explain.warned import warnings
from cbdp.app.explain.words import files, tree, words
from cbdp.app.plan.facts import PlannedRelease


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
    laws: LawChoice | None  # both laws of noise, for the same (ε, δ)
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
    measured, told, laws = noise(plan), expected(plan), law_choice(plan)
    warned = tuple(warnings(plan, measured, told))
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
        expected=told,
        choices=choices(plan),
        laws=laws,
        unmeasured=unmeasured(plan),
        gaps=gaps(plan),
        warnings=warned,
        files=files(plan),
        request=plan.request,
        screen="\n".join(screen(plan, measured, told, laws, warned)) + "\n",
        text="\n".join(words(plan, measured, told, laws, warned)) + "\n",
    )
