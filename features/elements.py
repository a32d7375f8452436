"""The elements of a feature by their labels: which group of trips each number of a table is of."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.features.dag import SINGLETON, FeatureDag
from cbdp.parts import did_you_mean

MOST = 2**24  # elements whose labels are listed


@dataclass(frozen=True, eq=False)
class Elements:
    """The elements of a feature in their order. Labels are worked out when they are asked for.

    >>> from cbdp.features import Feature, Universe
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
            if len(self) > MOST:
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
        wanted = self._wanted(labels, named)
        for name, label in wanted.items():
            known = self.features.universe.attribute(name).labels
            if label not in known:
                cure = did_you_mean(str(label), [str(k) for k in known])
                raise InputError(f"{name} is never {label!r}: {cure}")
        found = self._found(wanted)
        if found < 0:
            said = ", ".join(f"{name} = {label!r}" for name, label in wanted.items())
            raise InputError(f"there can be no trip with {said}: {self.feature} has no count of it")
        return found

    def _found(self, wanted: dict[str, Hashable]) -> int:
        """The place of known labels; −1 for a combination that cannot be. A universe may be too large for a partition of its types."""
        if self.feature != SINGLETON:
            return int(self.features.partition(self.feature).find({n: [v] for n, v in wanted.items()})[0])
        universe = self.features.universe
        codes = [
            np.array([d.values.index(wanted[n])], dtype=np.int64) for n, d in universe.dimensions.items()
        ]
        return int(universe.rank_codes(codes)[0])

    def _wanted(self, labels: tuple[Hashable, ...], named: dict[str, Hashable]) -> dict[str, Hashable]:
        wanted = dict(zip(self.by, labels, strict=False)) | named
        if len(labels) + len(named) != len(self.by) or set(wanted) != set(self.by):
            given = ", ".join([*map(repr, labels), *named]) or "nothing"
            raise InputError(
                f"a count of {self.feature} is named by {', '.join(self.by) or 'nothing'}, and {given} was given"
            )
        return wanted
