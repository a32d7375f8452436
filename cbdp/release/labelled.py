"""Tables as one works with them: counts that say which group of trips each is of, with their intervals."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cbdp.arrays import Ints
from cbdp.features.elements import Elements
from cbdp.features.showing import as_html, as_text, shown_rows
from cbdp.release.labels import column


class LabelledCounts(np.ndarray[Any, np.dtype[np.int64]]):
    """The counts of a table: an array of whole numbers that knows what each of them is of.

    It is an array so that all that reads counts goes on to work; whatever is computed from it is a plain array.

    >>> import cbdp
    >>> universe = cbdp.Universe(origin=["A", "B"], time=["am", "pm"])
    >>> dag = cbdp.FeatureDag(universe, [cbdp.Feature("start", by="origin")])
    >>> counts = cbdp.ConstraintBased(dag, epsilon=2).simulate(np.array([70, 20, 5, 900]), seed=1).counts("start")
    >>> counts.at("B") == int(counts[1]), counts.labels
    (True, {'origin': ['A', 'B']})
    """

    elements: Elements | None

    def __new__(cls, values: Ints, elements: Elements) -> LabelledCounts:
        made = np.asarray(values, dtype=np.int64).view(cls)
        made.elements = elements
        return made

    def __array_finalize__(self, other: Any) -> None:
        """Of a part or a copy nobody knows any more which elements it holds."""
        self.elements = None

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else np.asarray(array)

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def at(self, *labels: Hashable, **named: Hashable) -> int:
        """The count with these labels, in the order of the table's attributes or by name."""
        assert self.elements is not None
        return int(np.asarray(self)[self.elements.place(*labels, **named)])

    @property
    def labels(self) -> dict[str, list[Hashable]]:
        """A column of labels for each attribute of the table: what each count is of."""
        assert self.elements is not None
        return self.elements.columns()

    def __repr__(self) -> str:
        return np.array_repr(np.asarray(self)) if self.elements is None else repr(self._table())

    def _repr_html_(self) -> str | None:
        return None if self.elements is None else self._table()._repr_html_()

    def _table(self) -> PublishedTable:
        assert self.elements is not None
        return PublishedTable(self.elements, np.asarray(self))


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """A feature's counts as they are published, what names each of them, and their intervals where there are any.

    It has the Arrow interface: `polars.DataFrame(table)` and `pyarrow.table(table)` read it, and `pandas.DataFrame(table.columns())`.

    >>> import cbdp
    >>> universe = cbdp.Universe(origin=["A", "B"], time=["am", "pm"])
    >>> dag = cbdp.FeatureDag(universe, [cbdp.Feature("start", by="origin")])
    >>> table = cbdp.ConstraintBased(dag, epsilon=9).simulate(np.array([70, 20, 5, 900]), seed=1).table("start")
    >>> len(table), table.feature, list(table[0])
    (2, 'start', ['origin', 'count'])
    """

    elements: Elements
    count: Ints = field(repr=False)
    low: Ints | None = field(default=None, repr=False)
    high: Ints | None = field(default=None, repr=False)
    confidence: float | None = None
    note: str = field(default="", repr=False)  # what a notebook shows beside it

    @property
    def feature(self) -> str:
        return self.elements.feature

    def __len__(self) -> int:
        return len(self.elements)

    def __getitem__(self, place: int) -> dict[str, Any]:
        """A row: labels, count and interval."""
        return {**self.elements[place], **{n: int(v[place]) for n, v in self._numbers().items()}}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[place] for place in range(len(self)))

    def at(self, *labels: Hashable, **named: Hashable) -> dict[str, Any]:
        """The row with these labels, in the order of the table's attributes or by name."""
        return self[self.elements.place(*labels, **named)]

    def columns(self) -> dict[str, list[Hashable] | Ints]:
        """Labels and numbers, a column each."""
        return {**self.elements.columns(), **self._numbers()}

    def _numbers(self) -> dict[str, Ints]:
        both = {"low": self.low, "high": self.high}
        return {"count": self.count} | {name: held for name, held in both.items() if held is not None}

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        import pyarrow as pa

        made = {n: column(labels) for n, labels in self.elements.columns().items()}
        return pa.table({**made, **self._numbers()}).__arrow_c_stream__(requested_schema)

    def _head(self) -> str:
        many = f"{len(self):,} count{'s' if len(self) != 1 else ''}"
        sure = (
            ""
            if self.low is None or self.confidence is None
            else f", low to high: {100 * self.confidence:g} % interval"
        )
        return f"{self.feature}: {many}{sure}"

    def _shown(self) -> tuple[dict[str, Any], list[str], list[int | None]]:
        """The rows that are shown, alone: labels of a long table are not all worked out."""
        rows = shown_rows(len(self))
        here = np.array([row for row in rows if row is not None], dtype=np.int64)
        place = {int(row): p for p, row in enumerate(here)}
        numbers = {name: held[here] for name, held in self._numbers().items()}
        columns = {**self.elements.columns(here), **numbers}
        return columns, list(numbers), [None if row is None else place[row] for row in rows]

    def __repr__(self) -> str:
        return as_text(self._head(), *self._shown())

    def _repr_html_(self) -> str:
        return as_html(self._head(), *self._shown(), note=self.note)
