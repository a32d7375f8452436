"""One side of a comparison: a release, or several that are added up, such as the days of a week."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.estimate.combined import combined
from cbdp.estimate.public import exact_answers
from cbdp.estimate.tails import error_of, together
from cbdp.features.grouping import Filter, Grouping
from cbdp.release.ask import grouping_of
from cbdp.release.change.differences import Answers
from cbdp.release.release import Release
from cbdp.release.universe_files import universe_hash
from cbdp.release.where import Where


@dataclass(frozen=True, eq=False)
class Side:
    """Published counts by group, and what the measurements tell; both cover the same trips."""

    grouping: Grouping
    rows: Ints = field(repr=False)  # the groups that are compared
    keys: list[tuple[Hashable, ...]] = field(repr=False)
    types: Ints = field(repr=False)  # how many trip types each group has
    count: Ints = field(repr=False)
    answers: Answers = field(repr=False)

    def at(self, rows: Sequence[int]) -> Side:
        """Some of the groups."""
        which, error = np.asarray(rows, dtype=np.int64), self.answers.error
        held = replace(error, weight=error.weight[:, which], noise=error.noise[:, which])
        answers = Answers(self.answers.value[which], held, self.answers.told[which])
        keys = [self.keys[r] for r in rows]
        return Side(self.grouping, self.rows[which], keys, self.types[which], self.count[which], answers)


def side_of(
    releases: Sequence[Release], by: tuple[str, ...], where: Where | None, only: tuple[Filter, ...]
) -> Side:
    """The releases of one side, added up group by group."""
    _check_alike(releases)
    grouping = grouping_of(releases[0], by, where, only)
    made = [_answers(release, grouping) for release in releases]
    answers = Answers(
        np.sum([a.value for a in made], axis=0),
        together([a.error for a in made]),
        np.all([a.told for a in made], axis=0),
    )
    keys = grouping.keys()
    rows: list[tuple[Hashable, ...]] = list(zip(*(keys[a] for a in by), strict=True)) if by else [()]
    count = np.sum([_counts(r, grouping) for r in releases], axis=0)
    return Side(grouping, np.arange(grouping.size), rows, grouping.types, count, answers)


def _check_alike(releases: Sequence[Release]) -> None:
    first = releases[0].features.universe
    for number, release in enumerate(releases[1:], 2):
        universe = release.features.universe
        if universe is not first and universe_hash(universe) != universe_hash(first):
            raise InputError(
                f"release number {number} of one side has another universe than its first, so they cannot be added up: compare them apart"
            )


def _table(release: Release, grouping: Grouping) -> str | None:
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


def _counts(release: Release, grouping: Grouping) -> Ints:
    name = _table(release, grouping)
    return grouping.added(release.index, release.value) if name is None else release.counts(name)


def _answers(release: Release, grouping: Grouping) -> Answers:
    best = combined(release, grouping)
    sources = [*exact_answers(release.recipe.public), *release.measurements]
    laws = [None if m.exact else m.noise for m in sources]
    return Answers(best.value, error_of(best, laws), best.told)
