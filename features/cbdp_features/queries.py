"""Counting queries: trip types grouped by any attributes, of those that meet conditions, and the tables that show them.

`Grouping` is a marginal query with predicates, answered without enumerating the universe; `Elements` names the counts of a feature by their labels.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.parts import did_you_mean
from cbdp.text import html_text, printable
from cbdp_features.dag import SINGLETON, FeatureDag
from cbdp_features.universe import Partition, Universe

MAX_GROUPS = 2**20  # groups listed in one answer
MAX_LABEL_COMBINATIONS = 2**22  # combinations of labels, the conditions' included: 32 MB of numbers


@dataclass(frozen=True, eq=False)
class Filter:
    """A predicate: which combinations of some attributes' labels qualify, an axis for each attribute."""

    attributes: tuple[str, ...]
    wanted: NDArray[np.bool_] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Grouping:
    """The trip types that meet all conditions, grouped by attributes. Groups are numbered from 0 on.

    Without conditions they are the elements of the partition, in their order. The universe is not enumerated.

    >>> stops = Universe(origin=["A", "B"], time=["am", "noon", "pm"])
    >>> early = Filter(("time",), np.array([True, True, False]))
    >>> Grouping(stops, ("origin",), (early,)).types.tolist()
    [2, 2]
    """

    universe: Universe
    by: tuple[str, ...]
    conditions: tuple[Filter, ...] = ()

    @cached_property
    def named(self) -> tuple[str, ...]:
        """All attributes that tell groups apart, or what is in them from what is not."""
        return tuple(dict.fromkeys([*self.by, *(a for c in self.conditions for a in c.attributes)]))

    @cached_property
    def atoms(self) -> Partition:
        """Trip types that no attribute of the question tells apart."""
        return self.universe.partition(self.named)

    @cached_property
    def _inside(self) -> tuple[Ints, Ints, Ints]:
        """The atoms that meet all conditions, ascending, the group of each, and an atom of each group."""
        atom = self._candidates()
        codes = self._label_codes(atom)
        kept = np.ones(len(atom), dtype=bool)
        for c in self.conditions:
            kept &= c.wanted[tuple(codes[a] for a in c.attributes)]
        atom = atom[kept]
        number = np.zeros(len(atom), dtype=np.int64)
        for name in self.by:
            _, code = np.unique(codes[name][kept], return_inverse=True)
            number = np.unique(number * (len(code) + 1) + code, return_inverse=True)[1].astype(np.int64)
        _, first, group = np.unique(number, return_index=True, return_inverse=True)
        return atom, group.astype(np.int64), atom[first]

    def _candidates(self) -> Ints:
        """The atoms that meet the conditions within each component of the partition: others are not examined."""
        atoms = self.atoms
        number: Ints = np.zeros(1, dtype=np.int64)
        for place, part in enumerate(atoms.parts):
            selected = self._selected_of_part(place)
            if len(number) * len(selected) > MAX_LABEL_COMBINATIONS:
                raise InputError(
                    f"{', '.join(self.named)} have {atoms.size:,} combinations, at most {MAX_LABEL_COMBINATIONS:,} can be looked at: ask by fewer "
                    "attributes, or filter more"
                )
            number = (number[:, None] * len(part.joint) + selected).reshape(-1)
        return number

    def _selected_of_part(self, place: int) -> Ints:
        part = self.atoms.parts[place]
        codes, rest = {}, part.joint
        for a, radix in zip(reversed(part.attributes), reversed(part.radix), strict=True):
            rest, codes[self.atoms.attributes[a].name] = np.divmod(rest, radix)
        kept = np.ones(len(part.joint), dtype=bool)
        for c in self.conditions:
            if set(c.attributes) <= set(codes):
                kept &= c.wanted[tuple(codes[a] for a in c.attributes)]
        return np.flatnonzero(kept)

    def _label_codes(self, atom: Ints) -> dict[str, Ints]:
        """The code of each attribute's label at some atoms."""
        place = dict(zip(self.universe.dimensions, self._types(atom), strict=True))
        attributes = (self.universe.attribute(name) for name in self.named)
        return {a.name: a.codes[tuple(place[dim] for dim in a.of)] for a in attributes}

    def _types(self, atom: Ints) -> list[Ints]:
        """A trip type of each of some atoms, as its dimensions' codes."""
        return self.universe.unrank_codes(self.atoms.type_at(atom, np.zeros(len(atom), dtype=np.int64)))

    @property
    def _first(self) -> Ints:
        """An atom of each group."""
        return self._inside[2] if self.conditions else np.arange(self.atoms.size)

    def representatives(self) -> list[Ints]:
        """A trip type of each group, as its dimensions' codes."""
        return self._types(self._first)

    def check_listed(self) -> None:
        """Refuse a question with more groups than are worth listing."""
        if self.size > MAX_GROUPS:
            raise InputError(
                f"grouping by {', '.join(self.by)} makes {self.size:,} groups, at most {MAX_GROUPS:,} are listed: group by "
                "fewer attributes, or filter with where"
            )

    @property
    def size(self) -> int:
        return self.atoms.size if not self.conditions else len(self._inside[2])

    def group_of(self, codes: Sequence[Ints]) -> Ints:
        """The group of each trip type given by its dimensions' codes; −1 where it does not meet the conditions."""
        return self._group(self.atoms.element_of(codes))

    def of_every_type(self) -> Ints:
        """The group of every trip type, in the universe's order: for universes that fit."""
        return self._group(self.atoms.of_every_type())

    def _group(self, atom: Ints) -> Ints:
        if not self.conditions:
            return atom
        here, group, _ = self._inside
        if not len(here):
            return np.full(np.shape(atom), -1)
        place = np.minimum(np.searchsorted(here, atom), len(here) - 1)
        return np.where(here[place] == atom, group[place], -1)

    @property
    def types(self) -> Ints:
        """The number of trip types in each group."""
        if not self.conditions:
            return self.atoms.sizes
        here, group, _ = self._inside
        blocks, parts = self.universe.blocks, self.atoms.parts
        used = {b for part in parts for b in part.blocks}
        types = np.full(len(here), math.prod(block.size for b, block in enumerate(blocks) if b not in used))
        for part in reversed(parts):
            here, joint = np.divmod(here, len(part.joint))
            types = types * part.sizes[joint]
        return group_sums(group, types, self.size)

    def keys(self) -> dict[str, list[Hashable]]:
        """For each attribute it groups by, its label at every group."""
        codes = self._label_codes(self._first)
        attributes = {name: self.universe.attribute(name) for name in self.by}
        return {n: [a.labels[c] for c in codes[n]] for n, a in attributes.items()}

    def added(self, index: Ints, value: Ints) -> Ints:
        """Whole counts of trip types, given by their index, added up by group."""
        return group_sums(self.group_of(self.universe.unrank_codes(index)), value, self.size)

    def inside(self, coarse: Grouping) -> Ints:
        """The group of a coarser grouping, with the same conditions, that holds each group."""
        return coarse.group_of(self.representatives())


def group_sums(group: Ints, numbers: Ints, size: int) -> Ints:
    """Whole numbers added up by group, without those of group −1."""
    total = np.zeros(size + 1, dtype=np.int64)
    np.add.at(total, group, numbers)
    return total[:size]


# The elements of a feature by their labels


MAX_LABELLED_ELEMENTS = 2**24  # elements whose labels are listed at once


@dataclass(frozen=True, eq=False)
class Elements:
    """The elements of a feature in their order. Labels are worked out when they are asked for.

    >>> from cbdp_features import Feature, Universe
    >>> universe = Universe(origin=["A", "B"], time=["08:00", "09:00"])
    >>> rows = Elements(FeatureDag(universe, [Feature("start", by=["origin", "time"])]), "start")
    >>> len(rows), rows[2]
    (4, {'origin': 'B', 'time': '08:00'})
    >>> rows.place("B", "08:00"), rows.place(time="09:00", origin="A")
    (2, 1)
    """

    features: FeatureDag = field(repr=False)
    feature: str

    @property
    def by(self) -> tuple[str, ...]:
        """The attributes whose labels name an element."""
        return tuple(self.features.features[self.feature].by)

    def __len__(self) -> int:
        return self.features.size(self.feature)

    def __getitem__(self, place: int) -> dict[str, Hashable]:
        """The labels of one element."""
        size = len(self)
        if not -size <= place < size:
            raise IndexError(f"{self.feature} has {size:,} counts: there is none at {place}")
        return {name: column[0] for name, column in self.columns(np.array([place % size])).items()}

    def columns(self, here: Ints | None = None) -> dict[str, list[Hashable]]:
        """A column of labels for each attribute, of all elements or of those at these places."""
        if here is None:
            if len(self) > MAX_LABELLED_ELEMENTS:
                raise InputError(f"{self.feature} has {len(self):,} counts, too many to list: name some")
            here = np.arange(len(self), dtype=np.int64)
        if self.feature == SINGLETON:
            dimensions = self.features.universe.dimensions
            codes = self.features.universe.unrank_codes(here)
            return {
                n: [d.values[c] for c in code] for (n, d), code in zip(dimensions.items(), codes, strict=True)
            }
        partition = self.features.partition(self.feature)
        pairs = zip(partition.attributes, partition.label_codes(), strict=True)
        return {a.name: [a.labels[c] for c in codes[here]] for a, codes in pairs}

    def place(self, *labels: Hashable, **named: Hashable) -> int:
        """The place of the element with these labels, in the order of `by` or by name."""
        by_name = self._labels_by_attribute(labels, named)
        for name, label in by_name.items():
            possible = self.features.universe.attribute(name).labels
            if label not in possible:
                cure = did_you_mean(str(label), [str(k) for k in possible])
                raise InputError(f"{name} is never {label!r}: {cure}")
        place = self._position(by_name)
        if place < 0:
            description = ", ".join(f"{name} = {label!r}" for name, label in by_name.items())
            raise InputError(f"there can be no trip with {description}: {self.feature} has no count of it")
        return place

    def _position(self, by_name: dict[str, Hashable]) -> int:
        """The place of labels that exist; −1 for a combination that cannot be. A universe may be too large for a partition of its types."""
        if self.feature != SINGLETON:
            return int(self.features.partition(self.feature).find({n: [v] for n, v in by_name.items()})[0])
        universe = self.features.universe
        codes = [
            np.array([d.values.index(by_name[n])], dtype=np.int64) for n, d in universe.dimensions.items()
        ]
        return int(universe.rank_codes(codes)[0])

    def _labels_by_attribute(
        self, labels: tuple[Hashable, ...], named: dict[str, Hashable]
    ) -> dict[str, Hashable]:
        by_name = dict(zip(self.by, labels, strict=False)) | named
        if len(labels) + len(named) != len(self.by) or set(by_name) != set(self.by):
            received = ", ".join([*map(repr, labels), *named]) or "nothing"
            raise InputError(
                f"a count of {self.feature} is named by {', '.join(self.by) or 'nothing'}, and {received} was given"
            )
        return by_name


# Tables as people see them: aligned text for a terminal, HTML for a notebook


MAX_DISPLAYED_ROWS = 12  # rows: of longer tables the first and the last six
ELLIPSIS = "…"


def displayed_rows(size: int) -> list[int | None]:
    """The rows that are shown; None stands for those left out.

    >>> displayed_rows(3)
    [0, 1, 2]
    >>> displayed_rows(100)[5:8]
    [5, None, 94]
    """
    if size <= MAX_DISPLAYED_ROWS:
        return list(range(size))
    half = MAX_DISPLAYED_ROWS // 2
    return [*range(half), None, *range(size - half, size)]


def text_table(
    head: str, columns: Mapping[str, Sequence[Any]], numbers: Sequence[str], rows: Sequence[Any]
) -> str:
    """Columns below each other, numbers to the right. `rows` are the rows shown, None for a gap.

    >>> print(text_table("start: 2 counts", {"origin": ["A", "B"], "count": [7, 1200]}, ["count"], [0, 1]))
    start: 2 counts
    origin  count
    A           7
    B       1,200
    """
    lines = [[printable(name) for name in columns], *_rows(columns, numbers, rows)]
    wide = [max(len(line[c]) for line in lines) for c in range(len(columns))]
    right = [name in numbers for name in columns]
    aligned = [
        "  ".join(
            cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(line, wide, right, strict=True)
        ).rstrip()
        for line in lines
    ]
    return "\n".join([printable(head), *aligned])


def html_table(
    head: str,
    columns: Mapping[str, Sequence[Any]],
    numbers: Sequence[str],
    rows: Sequence[Any],
    note: str = "",
) -> str:
    """A table that a notebook shows, in its own colours; whatever a label holds is text."""
    top = "".join(f'<th style="text-align:{_alignment(n, numbers)}">{html_text(n)}</th>' for n in columns)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:{_alignment(name, numbers)}">{html_text(cell)}</td>'
            for name, cell in zip(columns, line, strict=True)
        )
        + "</tr>"
        for line in _rows(columns, numbers, rows)
    )
    remark = f'<div style="opacity:.75">{html_text(note)}</div>' if note else ""
    return f"<div><b>{html_text(head)}</b>{remark}<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


def _alignment(name: str, numbers: Sequence[str]) -> str:
    return "right" if name in numbers else "left"


def _rows(
    columns: Mapping[str, Sequence[Any]], numbers: Sequence[str], rows: Sequence[Any]
) -> list[list[str]]:
    return [
        [ELLIPSIS] * len(columns)
        if row is None
        else [_cell_text(cells[row], name in numbers) for name, cells in columns.items()]
        for row in rows
    ]


def _cell_text(value: Any, number: bool) -> str:
    if value is None:
        return ""
    return f"{value:,}" if number else printable(str(value))
