"""Constraint-based differential privacy: noisy answers to every feature, then the closest consistent non-negative counts.

Fioretto, Lee and Van Hentenryck 2018; the quadratic program is their Figure 3.

Use it unless there is a reason not to: tables and trip types agree, tables are far more accurate than sums of noisy trip types, and it works in
universes too large to list. The other mechanisms are baselines of the literature, to compare with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self, cast

from numpy.typing import ArrayLike

from cbdp.arrays import Floats
from cbdp.counting import Counts
from cbdp.errors import InputError
from cbdp.estimation import ESTIMATORS, TOLERANCE, Estimator, check_prior, post_process
from cbdp.estimation.compiler import Weights
from cbdp.estimation.continual import GlsUpdate, apply_gls_updates, simulated_answers
from cbdp.estimation.invariants import (
    PublicCounts,
    PublicTables,
    exact_answers,
    public_total,
    read_public_counts,
)
from cbdp.features import SINGLETON, TOTAL
from cbdp.measuring import MAX_DENSE_TRIP_TYPES, cost_argument, measure
from cbdp.mechanisms.base import AdditiveNoiseMechanism
from cbdp.numbers import Number
from cbdp.parts import setting
from cbdp.privacy.accounting import PrivacyGuarantee, Sequential, cost_amount, single_costs
from cbdp.privacy.budget import (
    BUDGETS,
    AllocationProblem,
    Budget,
    BudgetLike,
    OptimalBudget,
    allocate,
    check_target,
    max_table_share,
    measured_features,
)
from cbdp.privacy.entropy import Entropy
from cbdp.privacy.expected_error import DemandFacts, expected_errors
from cbdp.privacy.measurement import Measurement, NoisyAnswer, PlannedAnswer
from cbdp.privacy.unit import Sensitivity
from cbdp.progress import tell
from cbdp.release import Release
from cbdp.release.serialization import Recipe, setting_to_json
from cbdp.release.series import running_total_part
from cbdp.rounding import ROUNDINGS, Rounding
from cbdp.solvers import SOLVERS, Solver

SETTINGS_PRESETS: dict[str, dict[str, str]] = {
    "best": {"budget": "balanced"},
    "paper": {"budget": "uniform", "weights": "size", "estimator": "projection"},
}


@dataclass(frozen=True)
class ConstraintBased(AdditiveNoiseMechanism):
    """Constraint-based differential privacy over any feature DAG; the paper's O3, O4 and O5 with `preset="paper"`.

    All features are measured, or those that `measured` names (`singleton` among them); all are published. In a universe
    of more than `cbdp.measuring.MAX_DENSE_TRIP_TYPES` trip types noise is drawn only where it can matter: the law of the release is the same.

    The estimate is the expected value of every count given all noisy answers, reconciled by the quadratic program
    (`estimator="posterior"`), or the program alone on the noisy answers ("projection"). The preset "paper" is the published
    configuration: ε split evenly, projection, weights by size.

    Whole trips are those nearest to the estimate (`rounding="nearest"`), or, with the posterior, "few": each cell's trips are
    gathered on the types that are likely to be used. That names fewer types that nobody used and suits simulations of riders, but
    single types are further from the truth. Either way, counts of tables are their estimates rounded down or up.

    A `target` says how much the error of each feature matters; ε is then split for it (`budget="optimal"`), from public facts
    alone: sizes, the unit, and about how many trips there are (`expected_trips`) and which share of the trip types is used
    (`expected_filled`), if known.

    Counts that are public already are given as `public`, like `{"total": 37714}` or whole tables by feature: they are met exactly
    and spend nothing, for their features are not measured. They are not part of what ε protects.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"]}
    >>> release = cbdp.ConstraintBased(features, epsilon=1).release(trips)
    >>> release.claim.cost.epsilon, list(release.features.features)
    (Fraction(1, 1), ['total', 'time', 'singleton'])
    """

    name: ClassVar[str] = "constraint-based"
    about: ClassVar[str] = (
        "noisy answers to every feature, made consistent and non-negative by a convex program"
    )

    models_errors: ClassVar[bool] = True

    measured: Sequence[str] | None = setting("the features that are measured; all unless told", "names")
    budget: BudgetLike | None = None
    weights: Weights | None = setting("how features weigh, with the estimator projection", "weights")
    solver: str | Solver = setting("which solver", choices=SOLVERS, default="newton")
    tolerance: float = setting("how far the certificate may be off", "real", default=TOLERANCE)
    sparse: bool | None = None  # None: by the size of the universe
    estimator: str | Estimator | None = setting(
        "how counts are estimated from the noisy answers", choices=ESTIMATORS
    )
    preset: str = setting(
        "best, or paper: as it was published", choices=tuple(SETTINGS_PRESETS), default="best"
    )
    prior: ArrayLike | None = setting(
        "a public CSV or Parquet file of weights by stop, or by dimensions: where trips are expected",
        "file",
        repr=False,
    )
    prior_source: Mapping[str, object] | None = None  # where those weights are from, for the manifest
    target: Mapping[str, Number] | None = None
    expected_trips: float | None = None
    expected_filled: float | None = None
    rounding: str | Rounding | None = setting("how whole trips are chosen", choices=ROUNDINGS)
    public: PublicTables | None = field(default=None, repr=False)
    # what the running totals of a series make of the noisy answers to some tables; only `finish` looks at it
    running: Mapping[str, GlsUpdate] | None = field(default=None, repr=False)
    # shares as a release states them; None: by the budget
    spent: InitVar[Mapping[str, Fraction] | None] = None

    def __post_init__(self, spent: Mapping[str, Fraction] | None) -> None:
        object.__setattr__(self, "_spent", spent)
        super().__post_init__()

    def complete(self) -> Iterator[tuple[str, object]]:
        if self.preset not in SETTINGS_PRESETS:
            raise InputError(
                f"unknown preset {self.preset!r}: use {' or '.join(map(repr, SETTINGS_PRESETS))}"
            )
        yield "public", read_public_counts(self.features, self.public)
        self._check_public()
        if self.target is not None:
            yield from self._budget_of_target(self.target)
        for name, value in SETTINGS_PRESETS[self.preset].items():
            if getattr(self, name) is None:
                yield name, value
        yield from self._complete_estimator()
        if self.rounding is None:
            yield "rounding", "nearest"

    def check(self) -> None:
        self._check_rounding()
        if SINGLETON not in self._shares:
            raise InputError(
                "'singleton' is not among the measured features: every trip type needs a noisy count"
            )
        SOLVERS.get(self.solver)

    def _check_public(self) -> None:
        """What is public already is not measured."""
        for what, names in (("measured", self.measured), ("target", self.target)):
            for name in self.public or ():
                if name in (names or ()):
                    raise InputError(f"{what} names {name!r}, whose counts are public: leave it out of one")

    def _budget_of_target(self, target: Mapping[str, Number]) -> Iterator[tuple[str, object]]:
        """A target takes the place of a budget."""
        if self.budget not in (None, OptimalBudget.name):
            raise InputError(
                f"a target with budget {self.budget!r}, which does not look at it: use budget 'optimal', or no target"
            )
        yield "budget", OptimalBudget.name
        yield "target", check_target(target, self.features)

    def _complete_estimator(self) -> Iterator[tuple[str, object]]:
        """Weights belong to the projection; with the posterior they follow from the variances."""
        # a universe that is not listed needs a table to tell how many trips there are
        alone = self._large and not self.public and set(self.measured or ()) == {SINGLETON}
        default = "projection" if alone or self.weights is not None else "posterior"
        chosen = ESTIMATORS.get(self.estimator or default)
        yield "estimator", self.estimator or default
        yield "weights", chosen.check_weights(self.weights)
        if self.prior is None:
            return
        if not chosen.takes_prior:
            raise InputError(
                f"a prior with estimator {chosen.name!r}, which has no use for it: use 'posterior'"
            )
        if self._large:
            raise InputError(
                f"a prior for {self.features.universe.size:,} trip types, which are not listed: leave it out, or say "
                "sparse=False if all of them fit in memory"
            )
        yield "prior", check_prior(self.prior, self.features.universe.size)

    def _check_rounding(self) -> None:
        if ROUNDINGS.get(self.rounding).needs_expected and not self._estimator.expects:
            raise InputError(
                f"rounding {self.rounding!r} with estimator {self._estimator.name!r}, whose counts do not say how likely "
                "a type is used: use rounding 'nearest', or estimator 'posterior'"
            )

    @property
    def _large(self) -> bool:
        return self.features.universe.size > MAX_DENSE_TRIP_TYPES if self.sparse is None else self.sparse

    @property
    def expects(self) -> bool:
        """Whether the estimate is an expected value."""
        return self._estimator.expects

    @property
    def _estimator(self) -> Estimator:
        return ESTIMATORS.get(self.estimator)

    @property
    def _invariants(self) -> PublicCounts | None:
        return cast("PublicCounts | None", self.public)  # as `complete` keeps it

    # What is promised and planned

    def facts(self) -> DemandFacts:
        """What is public about the trips, for a budget that is worked out."""
        trips = public_total(self._invariants) if self.expected_trips is None else self.expected_trips
        public = tuple(self.public or ())
        return DemandFacts(
            self.protected.sensitivity, trips, self.expected_filled, self.law, public, changes=self.changes()
        )

    def changes(self) -> tuple[tuple[str, Sensitivity], ...]:
        """How much one unit changes the counts of each feature."""
        return tuple((name, self.change(name)) for name in self.features.features)

    @property
    def queried(self) -> Sequence[str] | None:
        """The features that are measured; None: all."""
        if self.measured is not None or not self.public:
            return self.measured
        return [name for name in self.features.features if name not in self.public]

    @cached_property
    def _shares(self) -> dict[str, Fraction]:
        spent: Mapping[str, Fraction] | None = getattr(self, "_spent", None)
        if spent is not None:
            return dict(spent)
        return self._shared(self.budget or "balanced")

    def _shared(self, budget: BudgetLike) -> dict[str, Fraction]:
        return allocate(
            self.features, self.amount, budget, self.queried,
            target=self.target, facts=self.facts(), enough=self._enough,
        )  # fmt: skip

    @property
    def _enough(self) -> Fraction | None:
        """The most that all tables get with the budget "leaves": expected values learn the rest from the leaves."""
        return max_table_share(self.law_kind, self.change(TOTAL)) if self._estimator.expects else None

    def claim(self) -> PrivacyGuarantee:
        spends = [self.spend(name, share) for name, share in self._shares.items()]
        for name, one in (self.running or {}).items():
            spends.append(self.spend(running_total_part(name), one.amount))
        return PrivacyGuarantee(self.protected, self.stated(Sequential(tuple(spends), "features")))

    def answers(self) -> tuple[PlannedAnswer, ...]:
        return tuple(
            PlannedAnswer(name, share, self.noise_for(name, share)) for name, share in self._shares.items()
        )

    def share_of(self, feature: str) -> Callable[[Fraction], Fraction]:
        if isinstance(self.budget, Mapping) or self._budget.proportional:
            return super().share_of(feature)
        return lambda epsilon: self._budget.split(self._to_share(epsilon))[feature]

    def _to_share(self, epsilon: Fraction) -> AllocationProblem:
        """What a budget is asked."""
        levels = measured_features(self.features, self.queried)
        return AllocationProblem(self.features, levels, epsilon, self.target, self.facts(), self._enough)

    @property
    def _budget_name(self) -> str | Mapping[str, Number] | None:
        return self.budget.name if isinstance(self.budget, Budget) else self.budget

    @property
    def _budget(self) -> Budget:
        return BUDGETS.get(self.budget)

    def expected_errors(self, facts: DemandFacts) -> Mapping[str, Mapping[str, float]]:
        configured = self.budget if isinstance(self.budget, str) else "as given"
        shares = {configured: self._shares}
        for name in ("leaves", "balanced", "tables", "uniform"):
            if name not in shares:
                shares[name] = self._shared(name)
        public = dict.fromkeys(self.public or (), 0.0)
        facts = replace(facts, public=tuple(self.public or ()), law=self.law, changes=self.changes())
        return {
            name: expected_errors(self.features, shared, facts) | public for name, shared in shares.items()
        }

    def remarks(self) -> Sequence[str]:
        lines = []
        if self._large and self._estimator.expects and self.features.universe.size > MAX_DENSE_TRIP_TYPES:
            lines.append(
                f"The universe has {self.features.universe.size:,} trip types, too many to reveal a noisy count of each. Tables are as sharp as in a "
                "smaller one. Counts that no table tells apart, as by stop, are less sharp, the more so the larger the universe. "
                f"Releases of up to {MAX_DENSE_TRIP_TYPES:,} trip types each (fewer days or longer periods) avoid that."
            )
        if not self._estimator.expects:
            lines.append(
                f"The estimator is {self._estimator.name}, which shrinks less: single trip types come out worse where trips are few."
            )
        if not isinstance(self.budget, Mapping):
            serves = self._budget.specialist_ratios(self._to_share(self.amount))
            lines += [] if serves is None else [str(serves)]
        if self.target is None:
            lines.append(
                "To have ε shared for what matters to you, state it: privacy.target = { singleton = 1, zone = 2 }."
            )
        return lines

    @property
    def recipe(self) -> Recipe:
        recipe = super().recipe
        stated = {name: setting_to_json(vars(one)) for name, one in (self.running or {}).items()}
        settings = {n: v for n, v in recipe.settings.items() if n != "running"}
        return replace(recipe, settings=settings | ({"running": stated} if stated else {}))

    @classmethod
    def from_recipe(cls, release: Release) -> Self:
        """As of every mechanism, with ε shared as it was spent: a later version may share it in another way."""
        mechanism = super().from_recipe(release)
        spent = {part.what: cost_amount(part) for part in single_costs(release.claim.cost)}
        shares = {name: spent[name] for name in mechanism._shares if name in spent}
        return replace(mechanism, spent=shares)

    # The two functions

    def measure(self, counts: Counts, entropy: Entropy) -> list[NoisyAnswer]:
        tell("measuring")
        return measure(
            counts, self.features, budget=self._shares, only=self.queried, entropy=entropy,
            sparse=self._large, law=self.law, **cost_argument(self, self.amount),
        )  # fmt: skip

    def release_of(self, counts: Counts, entropy: Entropy) -> Release:
        """Where the series keeps running totals, answers drawn anew have noise as theirs: the sums of its history are of other draws."""
        answers = self.measure(counts, entropy)
        if not self.running:
            return self.finish(answers)
        if entropy.secure:
            raise InputError("running totals are of a series: make its releases with `cbdp series run`")
        alone = replace(self, running=None, spent=self._shares)
        return alone.finish(simulated_answers(answers, self.running, entropy))

    def finish(self, answers: Sequence[NoisyAnswer]) -> Release:
        estimate = post_process(
            self.features, [*apply_gls_updates(answers, self.running), *exact_answers(self._invariants)], weights=self.weights, solver=self.solver, tolerance=self.tolerance,
            estimator=self.estimator, prior=self.prior,
        )  # fmt: skip
        tell("rounding")
        whole = ROUNDINGS.get(self.rounding).whole(self.features, *estimate.trips(), self._budget_name)
        measured = [m if isinstance(m, Measurement) else m.measurement() for m in answers]
        return self.publication(
            whole.index,
            whole.value,
            measured,
            estimate=estimate,
            violations=whole.violation,
            rounding_tolerance=whole.tolerance,
            prior=cast("Floats | None", self.prior),
        )
