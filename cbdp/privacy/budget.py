"""How ε is shared among the measured features before any data is seen: what an allocation is, and all of them by name or as a mapping that sums to ε.

Allocations go by position, or serve trip types, tables or both, or a stated target best (lexicographic minimax).

The feature `singleton` tells all trip types (single points of the universe, the leaves of the quadratic program) apart.

A *specialist* for a feature spends all of ε on it. The errors that a split leaves are so many times the specialists', and what is minimised is the
worst of weight × ratio over the features of the target (then the second worst, and so on: lexicographic minimax, Ogryczak 1997). Twice the
weight asks for half the ratio. Ratios are free of scale: no feature counts for more because its counts are larger. Errors are those of
`cbdp.privacy.expected_error`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations, permutations
from typing import ClassVar

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.errors import BudgetError, InputError
from cbdp.features import SINGLETON, FeatureDag
from cbdp.numbers import Number, positive
from cbdp.parts import Parts, instance_of
from cbdp.privacy.expected_error import DemandFacts, ErrorModel, error_model
from cbdp.privacy.noise import NoiseDistribution
from cbdp.privacy.unit import Sensitivity
from cbdp_features.dag import EXTRA_FEATURES

Target = Mapping[str, Number]  # feature → how much its error matters


@dataclass(frozen=True, eq=False)
class AllocationProblem:
    """What ε (or ρ, where the noise is paid for in it) is to be shared among, and what may be known about it.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> AllocationProblem(features, ("total", "time", "singleton"), Fraction(1)).levels
    ('total', 'time', 'singleton')
    """

    features: FeatureDag
    levels: tuple[str, ...]  # the measured features, coarse ones first
    epsilon: Fraction
    target: Target | None = None  # how much the error of each feature matters
    facts: DemandFacts = field(default_factory=DemandFacts)
    enough: Fraction | None = (
        None  # the most that all tables need, where the estimator learns the rest from the leaves
    )


@dataclass(frozen=True)
class SpecialistRatios:
    """How shares serve a target. A specialist for a feature spends all of ε on it.

    `worst` is the largest weight × error / error of the specialist over the features of the target, with weights as parts of the largest
    one; `bound` is the least that this could be with any shares that give single trip types as much as `leaves`.

    >>> round(SpecialistRatios({"time": Fraction(1)}, worst=1.8, bound=1.75).worst, 1)
    1.8
    """

    target: Mapping[str, Fraction]
    worst: float
    bound: float
    leaves: Fraction = Fraction(0)
    sign: str = "ε"  # of what is shared

    def __str__(self) -> str:
        serves = ", ".join(f"{name} {weight}" for name, weight in self.target.items())
        alike = len({*self.target.values()}) == 1
        weighed = "" if alike else ", times its weight (1 for the largest),"
        others = f" that give {self.leaves} of {self.sign} to single trip types" if self.leaves else ""
        return (
            f"Shares are worked out for the target {serves}. The worst error among these{weighed} is {self.worst:.2f} times what it would be if "
            f"all of {self.sign} went to that table alone. No shares{others} bring it below {self.bound:.2f}."
        )


@dataclass(frozen=True)
class Budget(ABC):
    """A named way to share ε. Subclass it, set the class data, implement `split`.

    >>> from cbdp.privacy.budget import BUDGETS
    >>> isinstance(BUDGETS.get("uniform"), Budget)
    True
    """

    name: ClassVar[str]
    about: ClassVar[str] = ""
    needs_target: ClassVar[bool] = False
    proportional: ClassVar[bool] = True  # shares grow in proportion to ε

    @abstractmethod
    def split(self, problem: AllocationProblem) -> dict[str, Fraction]:
        """Shares for the levels, in their order; they add up to ε exactly."""

    def specialist_ratios(self, problem: AllocationProblem) -> SpecialistRatios | None:  # noqa: ARG002
        """How well its shares serve what they are for; None for a budget that goes by position alone."""
        return None


# The table


BUDGETS: Parts[Budget] = Parts(
    "budget",
    "cbdp.budget",
    {
        "balanced": "cbdp.privacy.budget:BalancedBudget",
        "leaves": "cbdp.privacy.budget:LeavesBudget",
        "tables": "cbdp.privacy.budget:TablesBudget",
        "uniform": "cbdp.privacy.budget:UniformBudget",
        "geometric": "cbdp.privacy.budget:GeometricBudget",
        "optimal": "cbdp.privacy.budget:OptimalBudget",
    },
    instance_of(Budget),
    base="cbdp.privacy.budget.Budget",
)
BudgetLike = str | Budget | Mapping[str, Number]  # a name, a budget, or feature → share


def measured_features(features: FeatureDag, only: Sequence[str] | None = None) -> tuple[str, ...]:
    """The measured features, coarse ones first: all, or those named.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> measured_features(features), measured_features(features, ["singleton", "time"])
    (('total', 'time', 'singleton'), ('time', 'singleton'))
    """
    measured = list(features.features) if only is None else list(only)
    for name in measured:
        if measured.count(name) > 1:
            raise InputError(
                f"feature {name!r} is listed twice: a second answer would cost a second share of ε"
            )
        if name not in features:
            raise InputError(f"unknown feature {name!r}: there are {', '.join(features.features)}")
    if not measured:
        raise InputError("there is nothing to spend a budget on: measure at least one feature")
    order = list(features.features)
    return tuple(sorted(measured, key=lambda n: (features.size(n), order.index(n))))


def allocate(
    features: FeatureDag,
    epsilon: Number,
    budget: BudgetLike,
    only: Sequence[str] | None = None,
    *,
    target: Target | None = None,
    facts: DemandFacts | None = None,
    enough: Fraction | None = None,
) -> dict[str, Fraction]:
    """What each measured feature gets of ε, coarse ones first; it adds up to ε exactly.

    `target` and `facts` are what a budget "optimal" goes by, `enough` is the most that tables get with "leaves".

    >>> from cbdp.features import Universe
    >>> dag = FeatureDag(Universe(origin=["A", "B"], time=["am", "pm"]), [])
    >>> {name: str(e) for name, e in allocate(dag, 1, "balanced").items()}
    {'total': '3/5', 'singleton': '2/5'}
    """
    levels, whole = measured_features(features, only), positive(epsilon)
    if isinstance(budget, Mapping):
        return _checked_mapping(levels, whole, budget)
    return BUDGETS.get(budget).split(
        AllocationProblem(features, levels, whole, target, facts or DemandFacts(), enough)
    )


def _checked_mapping(
    levels: Sequence[str], epsilon: Fraction, budget: Mapping[str, Number]
) -> dict[str, Fraction]:
    for name in budget:
        if name not in levels:
            raise InputError(f"a budget for {name!r}, which is not measured: there are {', '.join(levels)}")
    missing = [name for name in levels if name not in budget]
    if missing:
        raise InputError(f"no budget for {missing[0]!r}: name every measured feature")
    shares = {name: positive(budget[name], f"the budget of {name!r}") for name in levels}
    if sum(shares.values()) > epsilon:
        raise BudgetError(f"the budgets add up to {sum(shares.values())}, more than epsilon {epsilon}")
    if sum(shares.values()) < epsilon:
        raise InputError(
            f"the budgets add up to {sum(shares.values())}, less than epsilon {epsilon}: spend all of it"
        )
    return shares


# By position alone


LEVEL_RATIO = Fraction(
    1259921, 1000000
)  # 2^(1/3) per level: best for quadtrees with Laplace noise (Cormode and others 2012), borrowed from there


@dataclass(frozen=True)
class UniformBudget(Budget):
    """Every feature gets the same, as in the CBDP paper (Fioretto, Lee and Van Hentenryck 2018)."""

    name: ClassVar[str] = "uniform"
    about: ClassVar[str] = "the same for every feature, as in the CBDP paper"

    def split(self, problem: AllocationProblem) -> dict[str, Fraction]:
        return dict.fromkeys(problem.levels, problem.epsilon / len(problem.levels))


@dataclass(frozen=True)
class GeometricBudget(Budget):
    """More for finer levels, by the constant ratio of the geometric budget for quadtrees (Cormode and others 2012), which is not fitted to other features."""

    name: ClassVar[str] = "geometric"
    about: ClassVar[str] = "a constant ratio more from each level to the next finer one"

    def split(self, problem: AllocationProblem) -> dict[str, Fraction]:
        parts = [LEVEL_RATIO**depth for depth in range(len(problem.levels))]
        return {
            name: problem.epsilon * part / sum(parts)
            for name, part in zip(problem.levels, parts, strict=True)
        }


# Lexicographic minimax: whole parts of ε, dealt out so that the worst of some ratios is least, then the second worst, and so on. A part is moved from one feature to another as long as that helps, first in large steps and in the end one by one. There are several valleys
# (a table may be bought by itself, or with the finer ones that add up to it), so the search begins in each. It is all whole numbers and
# comparisons to nine digits: the same facts give the same parts on every machine.


Objective = Callable[
    [Ints], Floats
]  # splits (rows of whole parts) → the logarithms of what is to be small, one column each

MAX_FEATURES_ALL_SUBSETS = 5  # features of which every selection is tried
LOG_RATIO_DIGITS = 9  # digits of a logarithm after the point: less is no difference


def lexicographic_minimax(objective: Objective, units: int, least: Ints) -> Ints:
    """The split of so many parts, none below its least, whose worst value is smallest."""
    minima = [_local_search(objective, start, least) for start in _starting_splits(units, least)]
    best = minima[_lexicographically_least(objective, np.array(minima))]
    while True:
        further = [_local_search(objective, start, least) for start in _one_at_minimum(best, least)]
        place = _lexicographically_least(objective, np.array([best, *further]))
        if not place:
            return best
        best = further[place - 1]


def _starting_splits(units: int, least: Ints) -> Iterator[Ints]:
    """What can be dealt out, evenly on any of the features; where these are many, on one of them, all, or all but one."""
    many, spare = len(least), units - int(least.sum())
    sizes = range(1, many + 1) if many <= MAX_FEATURES_ALL_SUBSETS else (1, many - 1, many)
    for chosen in (of for size in sizes for of in combinations(range(many), size)):
        start = least.copy()
        start[list(chosen)] += _even_split(spare, len(chosen))
        yield start


def _one_at_minimum(at: Ints, least: Ints) -> Iterator[Ints]:
    """What each feature has beyond its least in turn dealt to the others, by what they have."""
    for donor in np.flatnonzero(at > least):
        others = np.where(np.arange(len(at)) == donor, 0, at - least)
        spare = int(at[donor] - least[donor])
        dealt = spare * np.cumsum(others) // max(1, int(others.sum()))
        if others.any():
            yield least + others + np.diff(dealt, prepend=0)


def _even_split(parts: int, many: int) -> Ints:
    split: Ints = parts // many + (np.arange(many) < parts % many)
    return split


def _local_search(objective: Objective, start: Ints, least: Ints) -> Ints:
    at, step = start, 1 << max(0, int(start.sum()) // 4).bit_length()
    while step:
        tried = np.vstack([at, _transfers(at, step, least)])
        best = _lexicographically_least(objective, tried)
        at, step = tried[best], step if best else step // 2
    return at


def _transfers(at: Ints, step: int, least: Ints) -> Ints:
    """Every split where one feature gives a step to another, two to one, or one to two."""
    tried: Ints = at + step * _transfer_directions(len(at))
    allowed: Ints = tried[(tried >= least).all(axis=1)]
    return allowed


@lru_cache(maxsize=32)
def _transfer_directions(many: int) -> Ints:
    unit = np.eye(many, dtype=np.int64)
    simple = [unit[b] - unit[a] for a, b in permutations(range(many), 2)]
    double = [
        2 * unit[c] - unit[a] - unit[b]
        for a, b in combinations(range(many), 2)
        for c in range(many)
        if c not in (a, b)
    ]
    return np.array([*simple, *double, *(-d for d in double)], dtype=np.int64).reshape(-1, many)


def _lexicographically_least(objective: Objective, splits: Ints) -> int:
    """The row whose values, largest first, come first in order; of equals the first row."""
    values = -np.sort(-np.round(objective(splits), LOG_RATIO_DIGITS), axis=1)
    return int(np.lexsort(values.T[::-1])[0])


# The split of ε that serves a target best, in thousandths. Every measured feature gets at least a hundredth, or less so that those outside
# the target cost at most 4 % together: they are published all the same, and help to tell what to expect of each trip type.


BUDGET_PARTS = 1000  # parts that ε is dealt out in
MIN_PARTS_PER_FEATURE = 10  # parts that every measured feature gets, as far as the next limit allows
MAX_RESERVED_PARTS = 40  # parts that features get only because they are measured, all together
COMPARISON_PARTS = 10 * BUDGET_PARTS  # parts of the best split, which is compared with and not spent
MAX_CACHED_SPLITS = 1000  # splits that are remembered


@dataclass(frozen=True)
class OptimalBudget(Budget):
    """The split that serves a stated target best."""

    name: ClassVar[str] = "optimal"
    about: ClassVar[str] = "for a target: how much the error of each table matters"
    needs_target: ClassVar[bool] = True

    def split(self, problem: AllocationProblem) -> dict[str, Fraction]:
        return optimal_shares(
            problem.features, problem.levels, problem.epsilon, self.target(problem), problem.facts
        )

    def specialist_ratios(self, problem: AllocationProblem) -> SpecialistRatios:
        return specialist_ratios(problem.features, self.split(problem), self.target(problem), problem.facts)

    def target(self, problem: AllocationProblem) -> dict[str, Fraction]:
        """What is asked for, checked."""
        if problem.target is None:
            raise InputError("budget 'optimal' without a target: say what matters, like {'singleton': 1}")
        return check_target(problem.target, problem.features)


def check_target(target: object, features: FeatureDag) -> dict[str, Fraction]:
    """How much the error of each feature matters: numbers above 0."""
    if not isinstance(target, Mapping) or not target:
        raise InputError(f"target is {target!r}: say how much features matter, like {{'singleton': 1}}")
    for name in target:
        if name not in features:
            cure = f": add it with extra=({name!r},)" if name in EXTRA_FEATURES else ""
            raise InputError(
                f"a target for {name!r}, which is not a feature: there are {', '.join(features.features)}{cure}"
            )
    return {name: positive(weight, f"the target of {name!r}") for name, weight in target.items()}


def optimal_shares(
    features: FeatureDag,
    levels: Sequence[str],
    epsilon: Fraction,
    target: Target,
    facts: DemandFacts | None = None,
    leaves: Fraction | None = None,
) -> dict[str, Fraction]:
    """Shares of ε that serve a target best, in the order of the levels; they add up to ε exactly.

    `leaves` is the part of ε that single trip types get at least.

    >>> from cbdp.features import Universe
    >>> dag = FeatureDag(Universe(origin=["A", "B", "C"], time=range(8)), [])
    >>> shares = optimal_shares(dag, ["total", "singleton"], Fraction(1), {"singleton": 3, "total": 1})
    >>> {name: str(e) for name, e in shares.items()}
    {'total': '27/125', 'singleton': '98/125'}
    """
    weights = check_target(target, features)
    parts = _optimal_split(error_model(features, levels, epsilon, facts or DemandFacts()), weights, leaves)
    return {name: epsilon * part for name, part in zip(levels, parts, strict=True)}


def _optimal_split(of: ErrorModel, target: Mapping[str, Fraction], leaves: Fraction | None) -> list[Fraction]:
    levels, many = of.measured, len(of.measured)
    units = max(BUDGET_PARTS, 2 * many)
    leaf_parts = int((leaves or 0) * units)
    spare = (
        MAX_RESERVED_PARTS - leaf_parts
        if leaf_parts <= MAX_RESERVED_PARTS and SINGLETON not in target
        else MAX_RESERVED_PARTS
    )
    least = np.full(many, max(1, min(MIN_PARTS_PER_FEATURE, spare // max(1, many - 1))))
    if SINGLETON in levels:
        least[levels.index(SINGLETON)] = max(leaf_parts, least[0])
    return [
        Fraction(int(n), units) for n in _allocated_parts(_SpecialistRatioObjective(of, target, units), least)
    ]


def _allocated_parts(objective: _SpecialistRatioObjective, least: Ints) -> Ints:
    """The split that is best by the objective; the same features are asked about again and again, also as new objects."""
    key = (objective.content, least.tobytes())
    split = _SPLITS.get(key)
    if split is None:
        if len(_SPLITS) >= MAX_CACHED_SPLITS:
            _SPLITS.clear()
        split = _SPLITS[key] = lexicographic_minimax(objective, objective.units, least)
    return split


_SPLITS: dict[Hashable, Ints] = {}


def specialist_ratios(
    features: FeatureDag,
    shares: Mapping[str, Fraction],
    target: Target,
    facts: DemandFacts | None = None,
    leaves: Fraction = Fraction(0),
) -> SpecialistRatios:
    """How shares serve a target, by the model of errors, beside any that give single trip types such a part of ε."""
    epsilon, weights = sum(shares.values(), Fraction(0)), check_target(target, features)
    of = error_model(features, list(shares), epsilon, facts or DemandFacts())
    objective = _SpecialistRatioObjective(of, weights, COMPARISON_PARTS)
    least = np.array([int(leaves * COMPARISON_PARTS) if name == SINGLETON else 0 for name in shares])
    best = _allocated_parts(objective, least)
    precision = of.precision(np.array([float(share / epsilon) for share in shares.values()]))
    worst, bound = (
        float(np.exp(objective.of_precision(p).max()))
        for p in (precision, objective.bought[best, np.arange(len(best))])
    )
    return SpecialistRatios(
        weights, worst, min(worst, bound), leaves, "ρ" if of.law.currency == "rho" else "ε"
    )


class _SpecialistRatioObjective:
    """Splits in whole parts → logarithms of weight × ratio to the specialist, for each feature of the target."""

    def __init__(self, of: ErrorModel, target: Mapping[str, Fraction], units: int) -> None:
        self.of, self.units = of, units
        self.content = (of.content, tuple(target.items()), units)
        self.target_columns = [of.names.index(name) for name in target]
        weight = np.array([float(weight) for weight in target.values()])
        self.base: Floats = np.log(weight / weight.max()) - 0.5 * np.log(of.alone()[self.target_columns])

    @cached_property
    def bought(self) -> Floats:
        """The precision of each measured feature (last axis) for any number of parts."""
        parts = np.arange(self.units + 1)[:, None] / self.units
        return self.of.precision(np.repeat(parts, len(self.of.measured), axis=1))

    def __call__(self, parts: Ints) -> Floats:
        return self.of_precision(self.bought[parts, np.arange(parts.shape[-1])])

    def of_precision(self, precision: Floats) -> Floats:
        log_ratios: Floats = self.base + 0.5 * np.log(self.of.errors(precision)[..., self.target_columns])
        return log_ratios


# Named after what they serve: single trip types (leaves), tables, or both. Each is a target of one optimiser.
#
# They take nothing for granted about the trips: their parts follow from the features and the law of the noise, and are the same for every ε.


MAX_TABLE_EPSILON = Fraction(1, 50)
"""Of ε for one trip, for all tables: tells the number of trips to within a few hundred, and the leaves tell the rest."""
WIDE_NOISE_EPSILON = Fraction(
    1, 10
)  # an ε at which noise is far wider than a trip, so that only ratios of ε count


@dataclass(frozen=True)
class TableBudget(Budget):
    """Leaves get their part of ε, and the rest makes the tables as good as they can be together: none is left behind."""

    leaves: ClassVar[Fraction]

    def split(self, problem: AllocationProblem) -> dict[str, Fraction]:
        target, facts = dict.fromkeys(measured_tables(problem), 1), _without_demand(problem.facts)
        shares = optimal_shares(
            problem.features, problem.levels, WIDE_NOISE_EPSILON, target, facts, self.leaves
        )
        return {name: share / WIDE_NOISE_EPSILON * problem.epsilon for name, share in shares.items()}

    def specialist_ratios(self, problem: AllocationProblem) -> SpecialistRatios:
        return _wide_noise_ratios(problem, self.split(problem), measured_tables(problem), self.compared)

    @property
    def compared(self) -> Fraction:
        """What those shares give to leaves that these are compared with."""
        return self.leaves


@dataclass(frozen=True)
class BalancedBudget(TableBudget):
    """The default: two fifths, so that the scale of Laplace noise on a trip type is at most two and a half times that of a specialist.

    Standard deviations are so too where noise is wide. Discrete noise all but vanishes at a large ε, the specialist's first: at ε = 2 the ratio is 2.9, at ε = 8 11.5.
    """

    name: ClassVar[str] = "balanced"
    about: ClassVar[str] = "for both: two fifths on single trip types, the rest as tables need it"
    leaves: ClassVar[Fraction] = Fraction(2, 5)


@dataclass(frozen=True)
class TablesBudget(TableBudget):
    """Leaves get what the tables hardly miss: their worst ratio stays within 5 % of the least there could be."""

    name: ClassVar[str] = "tables"
    about: ClassVar[str] = "for tables: nearly all on them, as they need it"
    leaves: ClassVar[Fraction] = Fraction(1, 25)

    @property
    def compared(self) -> Fraction:
        return Fraction(0)


@dataclass(frozen=True)
class LeavesBudget(Budget):
    """Only single trip types matter: they get all but what tables need to tell the number of trips, which these share evenly.

    That is a tenth of ε, or `enough` where the estimator can make do with that: by trials, for the model has no use for tables here.
    """

    name: ClassVar[str] = "leaves"
    about: ClassVar[str] = "for single trip types: nearly all on them"
    proportional: ClassVar[bool] = False
    spared: ClassVar[Fraction] = Fraction(1, 10)

    def split(self, problem: AllocationProblem) -> dict[str, Fraction]:
        tables = [name for name in problem.levels if name != SINGLETON]
        if not tables or SINGLETON not in problem.levels:
            return dict.fromkeys(problem.levels, problem.epsilon / len(problem.levels))
        spared = problem.epsilon * self.spared
        spared = spared if problem.enough is None else min(spared, problem.enough)
        return {
            n: problem.epsilon - spared if n == SINGLETON else spared / len(tables) for n in problem.levels
        }

    def specialist_ratios(self, problem: AllocationProblem) -> SpecialistRatios:
        served = [name for name in problem.levels if name == SINGLETON] or list(problem.levels)
        return _wide_noise_ratios(problem, self.split(problem), served)


def measured_tables(problem: AllocationProblem) -> list[str]:
    """The measured features that are tables; where there is none, the trip types."""
    return [name for name in problem.levels if name != SINGLETON] or list(problem.levels)


def _wide_noise_ratios(
    problem: AllocationProblem,
    shares: Mapping[str, Fraction],
    served: Sequence[str],
    leaves: Fraction = Fraction(0),
) -> SpecialistRatios:
    """As the shares were worked out: where noise is wide, and nothing is known about the trips."""
    part = {name: share / problem.epsilon * WIDE_NOISE_EPSILON for name, share in shares.items()}
    return specialist_ratios(
        problem.features, part, dict.fromkeys(served, 1), _without_demand(problem.facts), leaves
    )


def _without_demand(facts: DemandFacts) -> DemandFacts:
    """What does not depend on the trips. A change that is the same for all features only scales all noise, and does not matter."""
    alike = len({change for _, change in facts.changes}) <= 1
    return DemandFacts(law=facts.law, public=facts.public, changes=() if alike else facts.changes)


def max_table_share(law: type[NoiseDistribution], sensitivity: Sensitivity) -> Fraction:
    """`MAX_TABLE_EPSILON` for a unit that changes counts so; where noise is paid for in ρ, what makes it as wide: 2(Δ/ε)² = l2²/2ρ."""
    if law.currency == "epsilon":
        return MAX_TABLE_EPSILON * sensitivity.l1
    return MAX_TABLE_EPSILON**2 / 4 * sensitivity.l2_squared
