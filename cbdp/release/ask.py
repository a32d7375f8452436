"""Answers to any question about a release: counts by any attributes, of any trip types (`where`), with intervals. No privacy is spent.

Intervals are made from the measurements that add up to a count (generalised least squares, `cbdp.estimation.intervals`): their coverage is as stated for
counts of every true size. Where no measurements do, there are none, and the answer says why. With `sharp` they are about the estimate where this is narrower (a
parametric bootstrap, `cbdp.estimation.bootstrap`): these promise less, for they hold fewer of the largest counts, and take runs of the mechanism that made the
release, once, whatever is asked.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.estimation import ESTIMATORS
from cbdp.estimation.bootstrap import (
    MIN_GROUPS_FOR_OPTIMISM,
    MIN_WIDTH_RATIO,
    BootstrapReplicates,
    BootstrapSampler,
    GroupReplicates,
    bootstrap_half_widths,
    bootstrap_replicates,
    can_bootstrap,
    estimated_counts,
    half_widths,
    variance_inflation,
)
from cbdp.estimation.gls import UnbiasedAnswer, best_linear_unbiased
from cbdp.estimation.intervals import Ends, checked_risk, interval_ends, share_interval, table_ends
from cbdp.features import SINGLETON, Attribute, Universe
from cbdp.parts import did_you_mean, table_of
from cbdp.release.views import counted_noun, enumerated, left_out
from cbdp_features.calendar import seconds_of_day
from cbdp_features.queries import Filter, Grouping
from cbdp_features.tables import LabelledTable, ListedLabels
from cbdp_solvers.problem import bincount

if TYPE_CHECKING:
    from cbdp.release.release import Release


Columns = dict[str, Ints | Floats]

ESTIMATE_TOLERANCE = 1e-6  # of a trip: what an estimate may be off
MAX_TABLES_NAMED = 8  # published tables that a note names: one sentence
COUNT_COLUMNS = ("count", "estimate", "low", "high")
SHARE_COLUMNS = ("share", "share_low", "share_high")


def ask(
    release: Release,
    by: str | Sequence[str] = (),
    where: Where | None = None,
    confidence: float = 0.9,
    share_of: str | Sequence[str] | None = None,
    sharp: bool | None = None,
) -> LabelledTable:
    """The columns of `by`, then count (published), estimate, low, high; with `share_of`, which share of these groups each is.

    `low` and `high` are whole numbers. Where some counts have no interval they are floats, with NaN for those.
    """
    risk = checked_risk(confidence)
    grouping = grouping_of(release, by, where)
    if release.tables:
        return _ask_independent_table(release, grouping, confidence, share_of)
    counts, estimate = grouping.added(release.index, release.value), estimated_counts(release, grouping)
    wholes = (
        None
        if share_of is None
        else Grouping(grouping.universe, _totals_of_shares(grouping, share_of), grouping.conditions)
    )
    runs = _replicates(release, grouping, estimate, wholes) if sharp else None
    ends = interval_ends(release, grouping, risk)
    if runs is not None:
        ends = _narrower_interval(ends, counts, best_linear_unbiased(release, grouping), runs, risk)
    columns: Columns = {"count": counts, "estimate": estimate, **_end_columns(ends)}
    if wholes is not None:
        columns |= _shares(release, grouping, wholes, counts, risk, runs)
    notes = [
        _missing_intervals_note(release, ends),
        _sharp_intervals_note(confidence) if runs is not None else "",
        _left_out_note(release),
    ]
    return _answer(grouping, columns, notes, confidence)


def _answer(grouping: Grouping, columns: Columns, notes: Sequence[str], confidence: float) -> LabelledTable:
    name = ", ".join(grouping.by) or "all trips"
    sentences = tuple(note for note in notes if note)
    return LabelledTable(ListedLabels(grouping.keys()), columns, name, sentences, float(confidence))


def _end_columns(ends: Ends) -> Columns:
    """The ends as columns: whole numbers, or floats with NaN where a count has no interval."""
    if ends.exist.all():
        return {"low": ends.low.astype(np.int64), "high": ends.high.astype(np.int64)}
    return {"low": ends.low, "high": ends.high}


def why_none(release: Release, missing: int, many: int) -> str:
    """Why so many of some counts have no interval, and what has one; empty where all have."""
    if not missing:
        return ""
    noun = counted_noun(release.features.universe)
    which = "These counts have" if missing == many else f"{missing:,} of {many:,} counts have"
    if many == 1:
        which = "This count has"
    it = "it" if many == 1 else "them"
    if release.tables:
        return f"{which} no interval: no table was published that counts {it}."
    tables = [
        ", ".join(release.features.features[n].by) or n
        for n in dict.fromkeys(m.feature for m in release.measurements)
        if n in release.features and n != SINGLETON
    ]
    named = (
        f" Measured were {enumerated([f'“{t}”' for t in tables[:MAX_TABLES_NAMED]])}: ask for these or for sums of them."
        if tables
        else ""
    )
    above = any(m.feature == SINGLETON and m.floor is not None for m in release.measurements)
    types = (
        f" Single {noun.one} types are published here only where their noisy count is above a threshold, and nothing tells how far sums of those may be from the truth."
        if above
        else ""
    )
    return f"{which} no interval: no measured table adds up to {it}.{types}{named} A table with these attributes in the next release would give one."


def _missing_intervals_note(release: Release, ends: Ends) -> str:
    return why_none(release, int((~ends.exist).sum()), len(ends.exist))


def _sharp_intervals_note(confidence: float) -> str:
    return (
        f"Intervals are about the estimate where that is narrower: they hold about {100 * confidence:g} % of counts with the same estimate, but fewer of "
        "the largest counts. Ask without “sharp” for intervals that hold counts of every true size."
    )


def _left_out_note(release: Release) -> str:
    return left_out(release.claim.unit, counted_noun(release.features.universe))


@dataclass(frozen=True, eq=False)
class _Replicates:
    """Bootstrap replicates of the groups, and of the coarser groups that they are shares of."""

    parts: GroupReplicates
    among: GroupReplicates  # the same, or finer groups where they are few
    wholes: BootstrapReplicates | None


def _replicates(
    release: Release, grouping: Grouping, estimate: Floats, wholes: Grouping | None = None
) -> _Replicates | None:
    """Bootstrap replicates, where the mechanism can be run again and they may be of use."""
    single = bool((grouping.types == 1).all())  # expected values do not hold single types of every size
    if single or not _has_expected_counts(release) or not can_bootstrap(release):
        return None
    if wholes is None and _is_measured_table(release, grouping):
        return None
    finer = _comparison_grouping(grouping)
    asked = {"parts": grouping} | ({} if wholes is None else {"wholes": wholes})
    seen = bootstrap_replicates(
        release, _mechanism_runs(release), asked if finer is grouping else {**asked, "among": finer}
    )
    parts = GroupReplicates(estimate, seen["parts"])
    among = parts if finer is grouping else GroupReplicates(estimated_counts(release, finer), seen["among"])
    return _Replicates(parts, among, seen.get("wholes"))


def _mechanism_runs(release: Release) -> BootstrapSampler:
    """Runs of the mechanism that the recipe names, built again from it: a name among installed parts, which stand on the wall."""
    mechanism: RunsAgain = table_of("mechanisms").installed(release.mechanism).from_recipe(release)
    return mechanism.replicates(release)


class RunsAgain(Protocol):
    """A mechanism, as far as intervals need it."""

    def replicates(self, release: Release) -> BootstrapSampler:
        """Runs in the place of the one that made a release."""
        ...


def _comparison_grouping(grouping: Grouping) -> Grouping:
    """The groups, if they are many enough to tell how much they differ; otherwise the values of the dimension that has most."""
    if grouping.size >= MIN_GROUPS_FOR_OPTIMISM:
        return grouping
    universe = grouping.universe
    by_value = (Grouping(universe, (name,), grouping.conditions) for name in universe.dimensions)
    return max((grouping, *by_value), key=lambda g: g.size)


def _is_measured_table(release: Release, grouping: Grouping) -> bool:
    """Whether the grouping is a table with noise of its own: then nothing else says much more."""
    named = {
        tuple(release.features.features[m.feature].by)
        for m in release.measurements
        if m.feature in release.features
    }
    return not grouping.conditions and grouping.by in named


def _has_expected_counts(release: Release) -> bool:
    estimator = release.recipe.estimator
    return estimator is not None and ESTIMATORS.installed(estimator).expects


def _narrower_interval(
    ends: Ends, counts: Ints, best: UnbiasedAnswer, runs: _Replicates, risk: float
) -> Ends:
    """Intervals about the estimate, where they are narrower; they hold the published count."""
    half, estimate = half_widths(runs.parts, runs.among, best, risk), runs.parts.estimate
    if half is None:
        return ends
    use = (half < best.half_width(risk)) & (ends.low < ends.high)
    low = np.maximum(np.ceil(estimate - half - ESTIMATE_TOLERANCE), 0.0)
    high = np.maximum(np.floor(estimate + half + ESTIMATE_TOLERANCE), np.ceil(estimate - ESTIMATE_TOLERANCE))
    low, high = np.minimum(low, counts), np.maximum(high, counts)
    return Ends(np.where(use, low, ends.low), np.where(use, high, ends.high))


def grouping_of(
    release: Release, by: str | Sequence[str], where: Where | None, only: Sequence[Filter] = ()
) -> Grouping:
    """The groups of a question; `only` are further conditions."""
    universe = release.features.universe
    names = names_of(by)
    for name in names:
        attribute_of(universe, name)
    for name in (*COUNT_COLUMNS, *SHARE_COLUMNS):
        if name in names:
            raise InputError(f"an attribute is named {name!r}, as a column of the answer is: rename it")
    if len(set(names)) < len(names):
        raise InputError(f"by names an attribute twice: {', '.join(names)}")
    grouping = Grouping(universe, names, (*conditions(universe, where), *only))
    grouping.check_listed()
    if not grouping.size:
        raise InputError(f"no trip type meets all conditions of {where!r}: relax one")
    return grouping


def names_of(by: str | Sequence[str], what: str = "by") -> tuple[str, ...]:
    """One attribute, or several."""
    if isinstance(by, str):
        return (by,)
    if isinstance(by, bytes | bytearray | Mapping) or not isinstance(by, Iterable):
        raise InputError(f"{what} is {by!r}: give the name of an attribute, or a list of names")
    return tuple(by)


def _totals_of_shares(grouping: Grouping, share_of: str | Sequence[str]) -> tuple[str, ...]:
    coarse = names_of(share_of, "share_of")
    for name in coarse:
        if name not in grouping.by:
            raise InputError(
                f"share_of names {name!r}, which is not in by ({', '.join(grouping.by)}): a whole is a coarser group"
            )
    return coarse


def _shares(
    release: Release,
    grouping: Grouping,
    wholes: Grouping,
    counts: Ints,
    risk: float,
    runs: _Replicates | None,
) -> Columns:
    """The share of each group in the coarser group that holds it, of the trips that meet the same conditions."""
    inside = grouping.inside(wholes)
    total = wholes.added(release.index, release.value)[inside]
    share = np.divide(counts, total, out=np.zeros(len(counts)), where=total > 0)
    low, high = _share_ends(release, grouping, wholes, inside, risk)
    if runs is not None and runs.wholes is not None:
        low, high = _narrower_share_interval(release, grouping, inside, (low, high), runs, risk)
    return {
        "share": share,
        "share_low": np.minimum(low, share),
        "share_high": np.where((total > 0) | np.isnan(high), np.maximum(high, share), 1.0),
    }


def _narrower_share_interval(
    release: Release,
    grouping: Grouping,
    inside: Ints,
    measured_ends: tuple[Floats, Floats],
    runs: _Replicates,
    risk: float,
) -> tuple[Floats, Floats]:
    """The ends about the estimated share, where they are narrower."""
    assert runs.wholes is not None
    parts, wholes, estimate = runs.parts.runs, runs.wholes, runs.parts.estimate
    truth = _share(parts.truth, wholes.truth[:, inside])
    error = _share(parts.estimate, wholes.estimate[:, inside]) - truth
    estimated_share = _share(estimate, bincount(inside, estimate, wholes.truth.shape[1])[inside])
    more = variance_inflation(runs.parts, runs.among, best_linear_unbiased(release, grouping))
    half = bootstrap_half_widths(estimated_share, error, truth, more, risk)
    low, high = measured_ends
    if half is None:
        return measured_ends
    half = np.maximum(half, MIN_WIDTH_RATIO * (high - low) / 2)
    use = 2 * half < high - low
    return np.where(use, np.maximum(estimated_share - half, 0.0), low), np.where(
        use, np.minimum(estimated_share + half, 1.0), high
    )


def _share(part: Floats, whole: Floats) -> Floats:
    share: Floats = np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0)
    return share


def _share_ends(
    release: Release, parts: Grouping, wholes: Grouping, inside: Ints, risk: float
) -> tuple[Floats, Floats]:
    """The ends from the measurements; NaN where these do not determine both the part and the whole."""
    part, whole = best_linear_unbiased(release, parts), best_linear_unbiased(release, wholes)
    low, high = share_interval(part, whole, inside, risk)
    determined = part.told & whole.told[inside]
    return np.where(determined, low, np.nan), np.where(determined, high, np.nan)


def _ask_independent_table(
    release: Release, grouping: Grouping, confidence: float, share_of: str | Sequence[str] | None
) -> LabelledTable:
    """Tables that were published one by one do not add up: each answers for itself alone."""
    fits = [n for n, f in release.features.features.items() if tuple(f.by) == grouping.by]
    name = next((n for n in fits if n in release.tables), None)
    if name is None or grouping.conditions or share_of is not None:
        each = "; ".join(", ".join(release.features.features[n].by) for n in release.tables)
        raise InputError(
            f"the tables of this release were published one by one and do not add up: ask by one of them, without conditions ({each})"
        )
    counts = np.asarray(release.counts(name))
    ends = table_ends(release, name, checked_risk(confidence))
    columns: Columns = {
        "count": counts,
        "estimate": counts.astype(float),
        **_end_columns(ends),
    }
    notes = [_missing_intervals_note(release, ends), _left_out_note(release)]
    return _answer(grouping, columns, notes, confidence)


# Conditions on trip types as people write them: "time<10:00", "origin=A,B", or pairs of stops


Where = str | Sequence[str] | Mapping[Any, Any]

CONDITION = re.compile(r"\s*([^=<>!]+?)\s*(<=|>=|!=|=|<|>)\s*(.*?)\s*$")
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ATTRIBUTE_JOINER = "+"  # joins attributes, and their labels: origin+destination=A+B
MAX_LABEL_COMBINATIONS = 2**24  # combinations of labels that a condition may be about


def conditions(universe: Universe, where: Where | None) -> tuple[Filter, ...]:
    """All conditions; each must be met.

    They are given as text, like "time<10:00" or "origin+destination=A+B,B+C", or as a mapping from attributes to a label, or a list of
    labels: `{"time": ["08:00", "08:30"], ("origin", "destination"): [("A", "B"), ("B", "C")]}`.

    >>> stops = Universe(origin=["A", "B"], time=["08:00", "09:00", "10:00"])
    >>> [c.wanted.tolist() for c in conditions(stops, ["time<10:00", "origin=B"])]
    [[True, True, False], [False, True]]
    """
    if where is None:
        return ()
    if isinstance(where, Mapping):
        return tuple(_condition_of_labels(universe, names, labels) for names, labels in where.items())
    if isinstance(where, str):
        return (_condition_of_text(universe, where),)
    texts: object = where
    if isinstance(texts, bytes | bytearray) or not isinstance(texts, Iterable):
        raise InputError(
            f"where is {where!r}: write conditions like 'time<10:00' or 'origin=A,B', or give a mapping like {{'origin': ['A', 'B']}}"
        )
    return tuple(_condition_of_text(universe, text) for text in texts)


def attribute_of(universe: Universe, name: object) -> Attribute:
    if not isinstance(name, str) or name not in universe.attributes:
        cure = did_you_mean(str(name), list(universe.attributes))
        raise InputError(f"unknown attribute {name!r}: {cure}")
    return universe.attribute(name)


def _condition_of_labels(universe: Universe, names: object, labels: object) -> Filter:
    """A label or several; of several attributes, combinations of labels."""
    several = isinstance(names, tuple)
    listed_names: tuple[object, ...] = names if isinstance(names, tuple) else (names,)
    attributes = [attribute_of(universe, name) for name in listed_names]
    if not several and labels in _labels(attributes[0]):  # one label, which may be text or a tuple itself
        labels = [labels]
    one = isinstance(labels, str) or not isinstance(labels, Iterable)
    listed: Iterable[object] = [labels] if one else cast("Iterable[object]", labels)
    rows = [tuple(row) if several and isinstance(row, Iterable) else (row,) for row in listed]
    return _label_filter(attributes, rows, [{v: v for v in a.labels} for a in attributes])


def _labels(attribute: Attribute) -> _Labels:
    return _Labels(attribute.labels)


class _Labels:
    """Labels that anything may be looked for among, hashable or not."""

    def __init__(self, labels: Sequence[Hashable]) -> None:
        self._labels = set(labels)

    def __contains__(self, label: object) -> bool:
        return isinstance(label, Hashable) and label in self._labels


def _condition_of_text(universe: Universe, text: object) -> Filter:
    match = CONDITION.match(text) if isinstance(text, str) else None
    if match is None:
        raise InputError(
            f"{text!r} is not a condition: write it like 'time<10:00', 'origin=A,B' or 'origin+destination=A+B,B+C'"
        )
    names, sign, label_text = match.groups()
    if sign in COMPARISONS:
        return _ordered_filter(attribute_of(universe, names), sign, label_text)
    several = names not in universe.attributes and ATTRIBUTE_JOINER in names
    attributes = [attribute_of(universe, n) for n in (names.split(ATTRIBUTE_JOINER) if several else [names])]
    spoken = [{str(label): label for label in a.labels} for a in attributes]
    listed = (
        [label_text]
        if not several and label_text in spoken[0]
        else [t.strip() for t in label_text.split(",")]
    )
    parts = [t.split(ATTRIBUTE_JOINER) if several else [t] for t in listed]
    rows = [(*map(_as_labelled, row, spoken), *row[len(spoken) :]) for row in parts]
    condition = _label_filter(attributes, rows, spoken)
    return Filter(condition.attributes, ~condition.wanted) if sign == "!=" else condition


def _label_filter(
    attributes: Sequence[Attribute],
    rows: Sequence[tuple[object, ...]],
    spoken: Sequence[Mapping[Any, Hashable]],
) -> Filter:
    shape = [len(a.labels) for a in attributes]
    if np.prod(shape, dtype=float) > MAX_LABEL_COMBINATIONS:
        names = ", ".join(a.name for a in attributes)
        raise InputError(
            f"{names} have more than {MAX_LABEL_COMBINATIONS:,} combinations: give a condition on each alone"
        )
    mask = np.zeros(shape, dtype=bool)
    code = [{label: c for c, label in enumerate(a.labels)} for a in attributes]
    for row in rows:
        if len(row) != len(attributes):
            names = ", ".join(a.name for a in attributes)
            raise InputError(f"{row!r} has {len(row)} labels: give one each of {names}")
        for label, attribute, labels_by_text in zip(row, attributes, spoken, strict=True):
            if not isinstance(label, Hashable) or label not in labels_by_text:
                raise InputError(_unknown_label_text(label, attribute))
        mask[tuple(c[k[label]] for label, c, k in zip(row, code, spoken, strict=True))] = True
    return Filter(tuple(a.name for a in attributes), mask)


def _unknown_label_text(label: object, attribute: Attribute) -> str:
    labels = [str(v) for v in attribute.labels]
    cure = did_you_mean(str(label), labels)
    if cure.startswith("there are") and len(labels) > 10:
        cure = f"there are {', '.join(labels[:9])}, … ({len(labels):,} in all)"
    return f"{attribute.name} has no {label!r}: {cure}"


def _ordered_filter(attribute: Attribute, sign: str, bound_text: str) -> Filter:
    """Labels before or after one: times by the clock (periods by their beginning), numbers by size, other text by alphabet."""
    for read, like in ((_clock, "a time of day, like 09:00"), (float, "a number, like 9"), (str, "text")):
        try:
            keys: list[Any] = [read(str(label)) for label in attribute.labels]
        except (InputError, ValueError):
            continue
        try:
            end = read(bound_text)
        except (InputError, ValueError):  # by alphabet, "9" would come after every time
            raise InputError(f"{attribute.name} {sign} {bound_text!r} cannot be told: write {like}") from None
        mask: NDArray[np.bool_] = np.array([COMPARISONS[sign](key, end) for key in keys])
        return Filter((attribute.name,), mask)
    raise AssertionError  # text is always text


def _as_labelled(text: str, spoken: Mapping[str, Hashable]) -> str:
    """A time of day that is written otherwise, 8:00 for 08:00, as the labels have it."""
    if text in spoken:
        return text
    try:
        return next(label for label in spoken if _clock(label) == _clock(text))
    except (InputError, ValueError, StopIteration):
        return text


def _clock(text: str) -> int:
    return seconds_of_day(text)
