"""Two releases compared: the change of every count, with its interval, its chance and a verdict. No privacy is spent.

Verdicts and intervals are made from the noisy measurements, whose errors are independent between releases whatever was done to the
published counts, also where the second release used the first as a prior.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.estimate.intervals import checked_risk
from cbdp.release.ask import names_of
from cbdp.release.change.differences import chance, ends, ratio_ends
from cbdp.release.change.many import adjusted
from cbdp.release.change.shared import shared
from cbdp.release.change.sides import Side, side_of
from cbdp.release.change.words import differences_between, headline, name_of
from cbdp.release.counted import TRIPS, Noun, counted
from cbdp.release.release import Release
from cbdp.release.where import Where, conditions

Columns = dict[str, list[Hashable] | Ints | Floats | list[str]]

CHANGED, NOISE = "more than noise can explain", "within noise"
CHANCE, UNTOLD = "could be chance among so many rows", "cannot tell"
NUMBERS = (
    *("first", "second", "change", "low", "high"),
    *("ratio", "ratio_low", "ratio_high", "chance", "chance_adjusted", "verdict"),
)


@dataclass(frozen=True, eq=False)
class Compared:
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
    columns: Columns = field(repr=False)
    confidence: float
    names: tuple[str, str]  # of the two sides
    notes: tuple[str, ...] = ()
    noun: Noun = TRIPS  # what is counted

    @property
    def rows(self) -> int:
        return len(self.columns["change"])

    def standing_out(self) -> list[int]:
        """The rows whose change noise cannot explain, after the correction for many rows; the largest change first."""
        size = np.abs(np.asarray(self.columns["change"], dtype=float))
        found = [r for r, verdict in enumerate(self.columns["verdict"]) if verdict == CHANGED]
        return sorted(found, key=lambda row: -size[row])

    def many(self, verdict: str) -> int:
        """How many rows have this verdict."""
        return sum(v == verdict for v in self.columns["verdict"])

    @property
    def headline(self) -> tuple[str, ...]:
        """What the comparison shows, in sentences."""
        seen = {v: self.many(v) for v in (CHANGED, CHANCE, NOISE, UNTOLD)}
        alone = seen[CHANGED] + seen[CHANCE]
        return headline(self.rows, alone, seen[CHANGED], seen[UNTOLD], self.confidence)


def compare(
    first: Release | Sequence[Release],
    second: Release | Sequence[Release],
    by: str | Sequence[str] = (),
    where: Where | None = None,
    confidence: float = 0.9,
) -> Compared:
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
    for name in NUMBERS:
        if name in names:
            raise InputError(f"an attribute is named {name!r}, as a column of the comparison is: rename it")
    _check_different(*sides)
    one, two, notes = _matched(sides, names, where)
    return Compared(
        names,
        _columns(one, two, names, risk),
        float(confidence),
        (name_of(sides[0], "the first release"), name_of(sides[1], "the second release")),
        (*notes, *differences_between(*sides)),
        counted(sides[0][0].features.universe),
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


def _matched(
    sides: Sequence[Sequence[Release]], by: tuple[str, ...], where: Where | None
) -> tuple[Side, Side, list[str]]:
    """Both sides, with the groups that both have, in the order of the first."""
    first, second = (side[0].features.universe for side in sides)
    asked = conditions(first, where)
    common = shared(first, second, [*by, *(a for c in asked for a in c.attributes)])
    one = side_of(sides[0], by, where, common.first)
    two = side_of(sides[1], by, where, common.second)
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


def _columns(one: Side, two: Side, by: tuple[str, ...], risk: float) -> Columns:
    """A row for each group; `low` and `high` are NaN where no measured table adds up to it on both sides."""
    change = two.count - one.count
    told = one.answers.told & two.answers.told
    low, high = ends(one.answers, two.answers, risk)
    ratio_low, ratio_high = ratio_ends(one.answers, two.answers, risk)
    likely = np.where(told, chance(one.answers, two.answers), 1.0)
    low, high = np.minimum(np.floor(low), change), np.maximum(np.ceil(high), change)
    if not told.all():
        low, high = (np.where(told, end, np.nan) for end in (low, high))
        ratio_low, ratio_high = np.where(told, ratio_low, 0.0), np.where(told, ratio_high, np.inf)
    ratio = np.divide(two.count, one.count, out=np.full(len(change), np.nan), where=one.count > 0)
    many = np.ones(len(likely))
    many[told] = adjusted(likely[told])
    keys: Columns = {name: [key[i] for key in one.keys] for i, name in enumerate(by)}
    return {
        **keys,
        "first": one.count,
        "second": two.count,
        "change": change,
        "low": low.astype(np.int64) if told.all() else low,
        "high": high.astype(np.int64) if told.all() else high,
        "ratio": ratio,
        "ratio_low": np.fmin(ratio_low, ratio),
        "ratio_high": np.fmax(ratio_high, ratio),
        "chance": likely,
        "chance_adjusted": many,
        "verdict": _verdicts(told, likely, many, low, high, risk),
    }


def _verdicts(
    told: NDArray[np.bool_], likely: Floats, many: Floats, low: Floats, high: Floats, risk: float
) -> list[str]:
    """A change stands out if noise explains it neither for this row nor among all rows, and its interval leaves zero out."""
    away = (low > 0) | (high < 0)
    alone = told & (likely <= risk) & away
    made = np.where(alone & (many <= risk), CHANGED, np.where(alone, CHANCE, NOISE))
    return [str(v) for v in np.where(told, made, UNTOLD)]
