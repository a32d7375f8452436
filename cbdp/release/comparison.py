"""Two releases compared: the change of every count, with its interval, its p-value and a verdict. No privacy is spent.

All of it is made from the noisy measurements, whose errors are independent between releases whatever was done to the published counts, also
where the second release used the first as a prior. So variances add up, and so do the distributions of the errors: the interval of a change
is read off that of the difference, and is shorter than the sum of both intervals by about a third. Ratios have Fieller's interval (1954), and
among many rows Benjamini and Hochberg's procedure (1995) picks those that stand out.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.estimation.gls import best_linear_unbiased
from cbdp.estimation.intervals import ErrorDistribution, checked_risk, error_distribution, sum_of_errors
from cbdp.estimation.invariants import exact_answers
from cbdp.features import Dimension, Universe
from cbdp.release.about import Dates
from cbdp.release.ask import Where, conditions, grouping_of, names_of
from cbdp.release.layout import universe_hash
from cbdp.release.release import Release
from cbdp.release.views import TRIP_NOUN, Noun, counted_noun, dates_of, days_in, left_out, period_of
from cbdp_features.queries import Filter, Grouping
from cbdp_features.universe import Attribute

ComparisonColumns = dict[str, list[Hashable] | Ints | Floats | list[str]]
CHANGED, NOISE = "more than noise can explain", "within noise"
CHANCE, UNDETERMINED = "could be chance among so many rows", "cannot tell"
CHANGE_COLUMNS = (
    *("first", "second", "change", "low", "high"),
    *("ratio", "ratio_low", "ratio_high", "chance", "chance_adjusted", "verdict"),
)
ROUNDING_TOLERANCE = 1e-6  # of a trip
MULTIPLICITY_METHOD = "Benjamini–Hochberg"
MAX_VALUES_NAMED = 5  # values that are named


@dataclass(frozen=True, eq=False)
class ReleaseComparison:
    """A row for each group: `columns` fit any data frame. `headline` and `notes` say in words what they show and what to mind.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> mechanism = cbdp.ConstraintBased(features, epsilon=1)
    >>> may, june = (mechanism.simulate({"stop": ["A"] * n, "time": ["am"] * n}, seed=n) for n in (300, 900))
    >>> changed = cbdp.compare(may, june, by="time")
    >>> changed.by, changed.rows
    (('time',), 2)
    """

    by: tuple[str, ...]
    columns: ComparisonColumns = field(repr=False)
    confidence: float
    names: tuple[str, str]  # of the two sides
    notes: tuple[str, ...] = ()
    noun: Noun = TRIP_NOUN  # what is counted

    @property
    def rows(self) -> int:
        return len(self.columns["change"])

    def standing_out(self) -> list[int]:
        """The rows whose change noise cannot explain, after the correction for many rows; the largest change first."""
        size = np.abs(np.asarray(self.columns["change"], dtype=float))
        changed = [r for r, verdict in enumerate(self.columns["verdict"]) if verdict == CHANGED]
        return sorted(changed, key=lambda row: -size[row])

    def many(self, verdict: str) -> int:
        """How many rows have this verdict."""
        return sum(v == verdict for v in self.columns["verdict"])

    @property
    def headline(self) -> tuple[str, ...]:
        """What the comparison shows, in sentences."""
        seen = {v: self.many(v) for v in (CHANGED, CHANCE, NOISE, UNDETERMINED)}
        alone = seen[CHANGED] + seen[CHANCE]
        return headline(self.rows, alone, seen[CHANGED], seen[UNDETERMINED], self.confidence)


@dataclass(frozen=True, eq=False)
class UnbiasedAnswers:
    """Unbiased answers and the distribution of their errors; `determined` where the measurements add up to one."""

    value: Floats = field(repr=False)
    error: ErrorDistribution
    determined: NDArray[np.bool_] = field(repr=False)


@dataclass(frozen=True)
class CommonTripTypes:
    """Conditions that leave the common trip types of either universe, and what there is to say."""

    first: tuple[Filter, ...] = ()
    second: tuple[Filter, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Side:
    """Published counts by group, and the unbiased answers to them; both cover the same trips."""

    grouping: Grouping
    rows: Ints = field(repr=False)  # the groups that are compared
    keys: list[tuple[Hashable, ...]] = field(repr=False)
    types: Ints = field(repr=False)  # how many trip types each group has
    count: Ints = field(repr=False)
    answers: UnbiasedAnswers = field(repr=False)

    def at(self, rows: Sequence[int]) -> Side:
        """Some of the groups."""
        which, error = np.asarray(rows, dtype=np.int64), self.answers.error
        distribution = replace(error, weight=error.weight[:, which], noise=error.noise[:, which])
        answers = UnbiasedAnswers(self.answers.value[which], distribution, self.answers.determined[which])
        keys = [self.keys[r] for r in rows]
        return Side(self.grouping, self.rows[which], keys, self.types[which], self.count[which], answers)


def compare(
    first: Release | Sequence[Release],
    second: Release | Sequence[Release],
    by: str | Sequence[str] = (),
    where: Where | None = None,
    confidence: float = 0.9,
) -> ReleaseComparison:
    r"""How counts changed from the first release to the second, by any attributes, of any trip types.

    Either side may be several releases of one universe, which are added up: seven days against the seven days before. `by`, `where` and
    `confidence` are those of `Release.ask`. Universes may differ: the trip types that both have are compared.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> mechanism = cbdp.ConstraintBased(features, epsilon=1)
    >>> may, june = (mechanism.simulate({"stop": ["A"] * n, "time": ["am"] * n}, seed=n) for n in (300, 900))
    >>> changed = cbdp.compare(may, june, by="time")
    >>> print(*changed.headline, sep="\n")
    1 of 2 rows changed by more than noise alone explains (at 90 % confidence, each row for itself). If nothing had changed, up to about 0 of 2 would look so.
    After the correction for many rows (Benjamini–Hochberg), 1 stands out: at most 10 % of such rows are expected to be chance.
    """
    risk = checked_risk(confidence)
    sides = [[s] if isinstance(s, Release) else list(s) for s in (first, second)]
    names = names_of(by)
    for name in CHANGE_COLUMNS:
        if name in names:
            raise InputError(f"an attribute is named {name!r}, as a column of the comparison is: rename it")
    _check_different(*sides)
    one, two, notes = _matched_sides(sides, names, where)
    return ReleaseComparison(
        names,
        _columns(one, two, names, risk),
        float(confidence),
        (side_name(sides[0], "the first release"), side_name(sides[1], "the second release")),
        (*notes, *differences_between(*sides)),
        counted_noun(sides[0][0].features.universe),
    )


def _check_different(first: Sequence[Release], second: Sequence[Release]) -> None:
    """A release has the same noise as itself: nothing can be compared."""
    if not first or not second:
        raise InputError("a side of the comparison has no release: give one or more")
    for one in first:
        for two in second:
            same = one is two or (
                len(one.measurements) == len(two.measurements) > 0
                and all(
                    np.array_equal(a.values, b.values)
                    for a, b in zip(one.measurements, two.measurements, strict=True)
                )
            )
            if same:
                raise InputError("the same release is on both sides: give two different ones")


def _matched_sides(
    sides: Sequence[Sequence[Release]], by: tuple[str, ...], where: Where | None
) -> tuple[Side, Side, list[str]]:
    """Both sides, with the groups that both have, in the order of the first."""
    first, second = (side[0].features.universe for side in sides)
    asked = conditions(first, where)
    common = common_trip_types(first, second, [*by, *(a for c in asked for a in c.attributes)])
    one = combined_side(sides[0], by, where, common.first)
    two = combined_side(sides[1], by, where, common.second)
    notes = list(common.notes)
    place = {key: row for row, key in enumerate(two.keys)}
    both = [row for row, key in enumerate(one.keys) if key in place]
    if not both:
        raise InputError(f"no group by {', '.join(by)} is in both releases: compare by another attribute")
    for which, side in (("first", one), ("second", two)):
        if len(both) < len(side.keys):
            notes.append(
                f"{len(side.keys) - len(both):,} groups are in the {which} release only and are left out."
            )
    one, two = one.at(both), two.at([place[one.keys[row]] for row in both])
    if notes and (one.types != two.types).any():
        notes.append("Some groups hold more trip types in one release than in the other.")
    return one, two, notes


def _columns(one: Side, two: Side, by: tuple[str, ...], risk: float) -> ComparisonColumns:
    """A row for each group; `low` and `high` are NaN where no measured table adds up to it on both sides."""
    change = two.count - one.count
    determined = one.answers.determined & two.answers.determined
    low, high = difference_interval(one.answers, two.answers, risk)
    ratio_low, ratio_high = ratio_interval(one.answers, two.answers, risk)
    chance = np.where(determined, p_values(one.answers, two.answers), 1.0)
    low, high = np.minimum(np.floor(low), change), np.maximum(np.ceil(high), change)
    if not determined.all():
        low, high = (np.where(determined, end, np.nan) for end in (low, high))
        ratio_low, ratio_high = np.where(determined, ratio_low, 0.0), np.where(determined, ratio_high, np.inf)
    ratio = np.divide(two.count, one.count, out=np.full(len(change), np.nan), where=one.count > 0)
    adjusted = np.ones(len(chance))
    adjusted[determined] = benjamini_hochberg(chance[determined])
    keys: ComparisonColumns = {name: [key[i] for key in one.keys] for i, name in enumerate(by)}
    return {
        **keys,
        "first": one.count,
        "second": two.count,
        "change": change,
        "low": low.astype(np.int64) if determined.all() else low,
        "high": high.astype(np.int64) if determined.all() else high,
        "ratio": ratio,
        "ratio_low": np.fmin(ratio_low, ratio),
        "ratio_high": np.fmax(ratio_high, ratio),
        "chance": chance,
        "chance_adjusted": adjusted,
        "verdict": _verdicts(determined, chance, adjusted, low, high, risk),
    }


def _verdicts(
    determined: NDArray[np.bool_], chance: Floats, adjusted: Floats, low: Floats, high: Floats, risk: float
) -> list[str]:
    """A change stands out if noise explains it neither for this row nor among all rows, and its interval leaves zero out."""
    away = (low > 0) | (high < 0)
    alone = determined & (chance <= risk) & away
    verdicts = np.where(alone & (adjusted <= risk), CHANGED, np.where(alone, CHANCE, NOISE))
    return [str(v) for v in np.where(determined, verdicts, UNDETERMINED)]


# The interval, the p-value and the ratio of a change


def difference_interval(
    first: UnbiasedAnswers, second: UnbiasedAnswers, risk: float
) -> tuple[Floats, Floats]:
    """The ends of the change's interval at this risk, in whole trips: by the quantile of the difference of both errors."""
    error = sum_of_errors([first.error, second.error])
    reach = error.reach(risk)
    # noise of whole numbers: as much probability lies within k as within k + 1/2 of the distribution without gaps
    whole = np.ceil(reach - 0.5 - ROUNDING_TOLERANCE)
    half = np.where(error.whole, whole, np.maximum(reach, whole))
    change = second.value - first.value
    return np.ceil(change - half - ROUNDING_TOLERANCE), np.floor(change + half + ROUNDING_TOLERANCE)


def p_values(first: UnbiasedAnswers, second: UnbiasedAnswers) -> Floats:
    """Two-sided p-values of “no change”: how often noise alone makes a difference of this size or larger."""
    change = np.abs(second.value - first.value)
    # half a trip for the gaps between whole numbers; where sums are weighted it is on the safe side
    exact = (first.error.variance == 0) & (second.error.variance == 0)
    size = np.where(exact, change, np.maximum(change - 0.5, 0.0))
    return sum_of_errors([first.error, second.error]).beyond(size)


def ratio_interval(first: UnbiasedAnswers, second: UnbiasedAnswers, risk: float) -> tuple[Floats, Floats]:
    """The ends of the ratio of the second to the first (Fieller 1954): all r for which second − r · first is within its noise of zero.

    A first count that may be zero leaves the ratio without an upper end.
    """
    square = _deviations(first, second, risk) ** 2
    one, two = first.value, second.value
    a = one**2 - square * first.error.variance
    c = two**2 - square * second.error.variance
    b = one * two
    root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
    sure_one, sure_two = (a > 0) & (one > 0), (c > 0) & (two > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        low = np.where(sure_two, c / (b + root), 0.0)
        high = np.where(sure_one, (b + root) / a, np.inf)
    return np.maximum(np.nan_to_num(low), 0.0), np.maximum(np.nan_to_num(high, nan=np.inf, posinf=np.inf), 0)


def _deviations(first: UnbiasedAnswers, second: UnbiasedAnswers, risk: float) -> Floats:
    """How many standard deviations the noise of any mixture of both reaches: no further than the worst of its parts or the normal distribution."""
    worst = np.full(len(first.value), -float(ndtri(risk / 2)))
    for side in (first, second):
        deviation = np.sqrt(side.error.variance)
        with np.errstate(invalid="ignore", divide="ignore"):
            worst = np.fmax(worst, np.where(deviation > 0, side.error.reach(risk) / deviation, 0.0))
    return worst


def benjamini_hochberg(chance: Floats) -> Floats:
    """The least false discovery rate at which each row is picked (Benjamini and Hochberg 1995; `scipy.stats.false_discovery_control`).

    Among a hundred rows without any change, ten lie outside their own 90 % interval. Rows of one comparison are about different trips, and every noisy count
    belongs to at most one of them, so their errors are independent, as the procedure asks.

    >>> benjamini_hochberg(np.array([0.01, 0.8, 0.02, 0.04])).round(4).tolist()
    [0.04, 0.8, 0.04, 0.0533]
    """
    many = len(chance)
    order = np.argsort(-chance, kind="stable")
    ranked = chance[order] * many / np.arange(many, 0, -1)
    adjusted = np.empty(many)
    adjusted[order] = np.minimum(np.minimum.accumulate(ranked), 1.0)
    return adjusted


# What two universes have in common. Values that only one has are left out; dates (two months share none) and dimensions that only one has are added up


def common_trip_types(first: Universe, second: Universe, named: Sequence[str]) -> CommonTripTypes:
    """What both universes can be compared by; `named` are the attributes of the question."""
    if first is second or universe_hash(first) == universe_hash(second):
        return CommonTripTypes()
    for name in named:
        _check_attribute(first, second, name)
    here: list[Filter] = []
    there: list[Filter] = []
    notes = [*_sum_note(first, second, "first"), *_sum_note(second, first, "second")]
    for name, one in first.dimensions.items():
        other = second.dimensions.get(name)
        if other is None or not _values_differ(one, other):
            continue
        common = _common_values(one, other)
        used = any(name in first.attribute(a).of for a in named)
        notes.append(_values_note(name, one, other, common, used=used))
        if _compared_as_wholes(one, other) and not used:
            continue
        here.append(_filter(name, one, common))
        there.append(_filter(name, other, common))
    return CommonTripTypes(tuple(here), tuple(there), tuple(notes))


def _sum_note(universe: Universe, other: Universe, which: str) -> list[str]:
    return [
        f"Only the {which} release tells {name} apart ({len(d):,} values): they are added up."
        for name, d in universe.dimensions.items()
        if name not in other.dimensions
    ]


def _value_meanings(dimension: Dimension) -> dict[Hashable, object]:
    """What each value stands for: a period is its two ends, whatever it is called."""
    if dimension.edges is None:
        return {value: value for value in dimension.values}
    edges = dimension.edges
    return {v: (edges[i], edges[i + 1]) for i, v in enumerate(dimension.values)}


def _values_differ(one: Dimension, other: Dimension) -> bool:
    return _value_meanings(one) != _value_meanings(other)


def _common_values(one: Dimension, other: Dimension) -> set[Hashable]:
    theirs = _value_meanings(other)
    return {value for value, means in _value_meanings(one).items() if theirs.get(value, theirs) == means}


def _compared_as_wholes(one: Dimension, other: Dimension) -> bool:
    """Dates, and times of day that are cut differently but begin and end alike, are compared as wholes."""
    if one.edges is not None and other.edges is not None:
        return (one.edges[0], one.edges[-1]) == (other.edges[0], other.edges[-1])
    return days_in(one) is not None and days_in(other) is not None


def _filter(name: str, dimension: Dimension, common: set[Hashable]) -> Filter:
    mask: NDArray[np.bool_] = np.array([value in common for value in dimension.values])
    return Filter((name,), mask)


def _values_note(name: str, one: Dimension, other: Dimension, common: set[Hashable], *, used: bool) -> str:
    if _compared_as_wholes(one, other) and not used:
        if days_in(one) is not None:
            return f"The first release covers {_value_count_text(one, 'day')} of {name}, the second {_value_count_text(other, 'day')}: all are added up."
        return f"Both cover the same hours, cut into {len(one):,} and {len(other):,} periods of {name}: all are added up."
    if not common:
        cure = (
            "leave it out of by and where" if _compared_as_wholes(one, other) else "they cannot be compared"
        )
        raise InputError(f"no value of {name} means the same in both releases: {cure}")
    left = [_left_out_values(f"the {which}", d, common) for which, d in (("first", one), ("second", other))]
    gone = " and ".join(text for text in left if text)
    return f"Only the {len(common):,} values of {name} that both have are compared; left out: {gone}."


def _value_count_text(dimension: Dimension, word: str) -> str:
    return f"{len(dimension):,} {word}{'' if len(dimension) == 1 else 's'}"


def _left_out_values(whose: str, dimension: Dimension, common: set[Hashable]) -> str:
    gone = [str(v) for v in dimension.values if v not in common]
    if not gone:
        return ""
    more = f", … ({len(gone):,} in all)" if len(gone) > MAX_VALUES_NAMED else ""
    return f"{', '.join(gone[:MAX_VALUES_NAMED])}{more} of {whose}"


def _check_attribute(first: Universe, second: Universe, name: str) -> None:
    """Both must know the attribute, and mean the same by it."""
    for which, universe, other in (("first", first, second), ("second", second, first)):
        if name not in universe.attributes and name in other.attributes:
            both = [a for a in first.attributes if a in second.attributes]
            raise InputError(
                f"the {which} release has no {name!r}: compare by what both have ({', '.join(both)})"
            )
    if name not in first.attributes or name in first.dimensions:
        return  # asking says what is wrong
    ours, theirs = first.attribute(name), second.attribute(name)
    if ours.of != theirs.of:
        raise InputError(
            f"{name!r} is of {', '.join(ours.of)} in the first release and of {', '.join(theirs.of)} in the second: "
            "compare by another attribute"
        )
    _check_labels(first, second, ours, theirs)


def _check_labels(first: Universe, second: Universe, one: Attribute, other: Attribute) -> None:
    places = []
    for dim in one.of:
        ours, theirs = first.dimension(dim), second.dimension(dim)
        common = _common_values(ours, theirs)
        values = [v for v in ours.values if v in common]
        places.append((values, ours.codes(values), theirs.codes(values)))
    mine, yours = (side.codes[np.ix_(*(p[which] for p in places))] for which, side in ((1, one), (2, other)))
    names = np.array([str(v) for v in one.labels], dtype=object)[mine]
    theirs_ = np.array([str(v) for v in other.labels], dtype=object)[yours]
    off = np.argwhere(names != theirs_)
    if len(off):
        at = tuple(off[0])
        what = ", ".join(str(p[0][i]) for p, i in zip(places, at, strict=True))
        raise InputError(
            f"{one.name!r} of {what} is {names[at]!r} in the first release and {theirs_[at]!r} in the second"
            f"{f' (and {len(off) - 1:,} more differ)' if len(off) > 1 else ''}: compare by {' and '.join(one.of)} instead"
        )


# One side of a comparison: a release, or several that are added up


def combined_side(
    releases: Sequence[Release], by: tuple[str, ...], where: Where | None, only: tuple[Filter, ...]
) -> Side:
    """The releases of one side, added up group by group."""
    _check_same_universe(releases)
    grouping = grouping_of(releases[0], by, where, only)
    sides = [_side_answers(release, grouping) for release in releases]
    answers = UnbiasedAnswers(
        np.sum([a.value for a in sides], axis=0),
        sum_of_errors([a.error for a in sides]),
        np.all([a.determined for a in sides], axis=0),
    )
    keys = grouping.keys()
    rows: list[tuple[Hashable, ...]] = list(zip(*(keys[a] for a in by), strict=True)) if by else [()]
    count = np.sum([_side_counts(r, grouping) for r in releases], axis=0)
    return Side(grouping, np.arange(grouping.size), rows, grouping.types, count, answers)


def _check_same_universe(releases: Sequence[Release]) -> None:
    first = releases[0].features.universe
    for number, release in enumerate(releases[1:], 2):
        universe = release.features.universe
        if universe is not first and universe_hash(universe) != universe_hash(first):
            raise InputError(
                f"release number {number} of one side has another universe than its first, so they cannot be added up: compare them apart"
            )


def _independent_table(release: Release, grouping: Grouping) -> str | None:
    """The table that was published on its own and has these groups; None: trips add up to them."""
    if not release.tables:
        return None
    for name in release.tables:
        if tuple(release.features.features[name].by) == grouping.by and not grouping.conditions:
            return name
    listed = "; ".join(", ".join(release.features.features[n].by) for n in release.tables)
    raise InputError(
        f"the tables of this release were published one by one and do not add up: compare by one of them, without conditions ({listed})"
    )


def _side_counts(release: Release, grouping: Grouping) -> Ints:
    name = _independent_table(release, grouping)
    return grouping.added(release.index, release.value) if name is None else release.counts(name)


def _side_answers(release: Release, grouping: Grouping) -> UnbiasedAnswers:
    best = best_linear_unbiased(release, grouping)
    sources = [*exact_answers(release.recipe.public), *release.measurements]
    laws = [None if m.exact else m.noise for m in sources]
    return UnbiasedAnswers(best.value, error_distribution(best, laws), best.told)


# What a comparison says in sentences


def headline(rows: int, alone: int, sure: int, untold: int, confidence: float) -> tuple[str, ...]:
    """What stands out, and what chance alone would do."""
    percent = f"{100 * confidence:g} %"
    judged = rows - untold
    sentences = []
    if judged == 1:
        verdict = "more than noise can explain" if sure else "within noise"
        sentences.append(f"The change is {verdict} (at {percent} confidence).")
    elif judged:
        by_chance = (1 - confidence) * judged
        sentences.append(
            f"{alone:,} of {judged:,} rows changed by more than noise alone explains (at {percent} confidence, each row for itself). "
            f"If nothing had changed, up to about {by_chance:,.0f} of {judged:,} would look so."
        )
        sentences.append(_correction_text(sure, confidence))
    if untold:
        sentences.append(
            f"{untold:,} of {rows:,} rows have no interval and no verdict: no measured table adds up to them, so nothing tells how far they may be from the truth."
        )
    return tuple(sentences)


def _correction_text(sure: int, confidence: float) -> str:
    opening = f"After the correction for many rows ({MULTIPLICITY_METHOD}), "
    if not sure:
        return f"{opening}none stands out."
    risk = f"{100 * (1 - confidence):.3g} %"
    return f"{opening}{sure:,} {'stands' if sure == 1 else 'stand'} out: at most {risk} of such rows are expected to be chance."


def side_name(releases: Sequence[Release], otherwise: str) -> str:
    """The period, or the title, of a side."""
    spoken = [_period_text(r) for r in releases]
    if not all(spoken):
        return otherwise
    if len(spoken) == 1:
        return spoken[0]
    parts = [r.series for r in releases if r.series is not None]
    if len(parts) == len(spoken):
        return f"{Dates(min(p.first for p in parts), max(p.last for p in parts))} ({len(spoken)} releases)"
    return f"{spoken[0]} to {spoken[-1]} ({len(spoken)} releases)"


def _period_text(release: Release) -> str:
    if release.series is not None:
        return str(Dates(release.series.first, release.series.last))
    title = release.about.title if release.about is not None else None
    return period_of(release) or title or ""


def differences_between(first: Sequence[Release], second: Sequence[Release]) -> list[str]:
    """In what the releases differ that changes how their numbers compare: allowed, and stated."""
    sentences = []
    for what, read in (
        ("privacy budget", _cost_difference),
        ("unit of privacy", _unit_difference),
        ("mechanism", _mechanism_difference),
    ):
        one, two = (sorted({read(r) for r in side}) for side in (first, second))
        if one != two:
            sentences.append(
                f"The {what} differs: {' and '.join(one)} in the first, {' and '.join(two)} in the second."
            )
    noun = counted_noun(first[0].features.universe)
    bounds = dict.fromkeys(left_out(r.claim.unit, noun) for r in (*first, *second))
    sentences += [f"{sentence} Changes in the others are not seen." for sentence in bounds if sentence]
    sentences += _span_difference(first, second)
    if not all(r.secure for r in (*first, *second)):
        sentences.append("At least one release is a simulation, which protects nobody.")
    return sentences


def _cost_difference(release: Release) -> str:
    cost = release.claim.cost
    if getattr(cost, "currency", "epsilon") == "rho":
        return f"ρ = {float(cost.rho):.4g}"
    delta = f", δ = {float(cost.delta):.2g}" if cost.delta else ""
    return f"ε = {float(cost.epsilon):.4g}{delta}"


def _unit_difference(release: Release) -> str:
    return str(release.claim.unit)


def _mechanism_difference(release: Release) -> str:
    estimator = release.recipe.estimator
    return release.mechanism if estimator is None else f"{release.mechanism} ({estimator})"


def _span_difference(first: Sequence[Release], second: Sequence[Release]) -> list[str]:
    days = [[_day_count(r) for r in side] for side in (first, second)]
    spans = [sum(n for n in side if n) for side in days if all(side)]
    if len(spans) < 2 or spans[0] == spans[1]:
        return []
    return [f"The first covers {spans[0]:,} days and the second {spans[1]:,}: counts are not per day."]


def _day_count(release: Release) -> int:
    """How many days a release covers, as far as it says; 0: it does not."""
    if release.series is not None:
        return (release.series.last - release.series.first).days + 1
    stated = None if release.about is None else release.about.period
    dates = stated if isinstance(stated, Dates) else dates_of(release.features.universe)
    return 0 if dates is None else (dates.last - dates.first).days + 1


__all__ = ["CHANCE", "CHANGED", "NOISE", "UNDETERMINED", "ReleaseComparison", "compare"]
