"""Labelled tables: numbers, and the labels of what each of them is of, as every data frame reads them.

`LabelledTable` is the answer of `release.ask`, `.trips` and `.table`; `LabelledCounts` is an array that is one too. Labels are any values that name something
public; in columns of files they are written so that they come back as they were.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Hashable, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast, overload

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.parts import did_you_mean
from cbdp.text import html_text, printable
from cbdp_features.dag import SINGLETON, FeatureDag
from cbdp_features.universe import Universe

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Column = list[Hashable] | Ints | Floats
Scalar = str | int | float | bool | bytes | dt.date | dt.time | None

# Labels in columns of files


ENCODED_KIND = "encoded"  # labels of mixed kinds, or of kinds that no column holds: JSON text
PLAIN_KINDS: dict[type, tuple[str, str]] = {  # type → kind, and Arrow's alias of its type
    str: ("text", "string"),
    int: ("integer", "int64"),
    float: ("number", "float64"),
    bool: ("boolean", "bool"),
    bytes: ("bytes", "binary"),
    dt.date: ("date", "date32"),
    dt.datetime: ("moment", "timestamp[us]"),
    dt.time: ("time", "time64[us]"),
}
LABEL_KINDS = (*(kind for kind, _ in PLAIN_KINDS.values()), ENCODED_KIND)
TAGGED_TYPES: dict[type, tuple[str, Callable[..., str], Callable[[str], Hashable]]] = {
    dt.datetime: ("datetime", dt.datetime.isoformat, dt.datetime.fromisoformat),
    dt.date: ("date", dt.date.isoformat, dt.date.fromisoformat),
    dt.time: ("time", dt.time.isoformat, dt.time.fromisoformat),
    bytes: ("bytes", bytes.hex, bytes.fromhex),
}
TAG_READERS = {tag: read for tag, _, read in TAGGED_TYPES.values()}


def kind_of(labels: Sequence[Hashable]) -> str:
    """How a column holds these labels.

    >>> kind_of(["A", "B"]), kind_of([1, 2]), kind_of([1, "B"])
    ('text', 'integer', 'encoded')
    """
    kinds = {type(label) for label in labels}
    only = kinds.pop() if len(kinds) == 1 else None
    if only is None or only not in PLAIN_KINDS:
        return ENCODED_KIND
    return PLAIN_KINDS[only][0] if _fits(only, labels) else ENCODED_KIND


def _fits(kind: type, labels: Sequence[Hashable]) -> bool:
    """Whether a column of this kind holds all of them: no huge integers, no broken text, no time zones."""
    if kind is str:
        try:
            "".join(cast("Sequence[str]", labels)).encode()
        except UnicodeEncodeError:
            return False
    if kind is int:
        return all(-(2**63) <= n < 2**63 for n in cast("Sequence[int]", labels))
    if kind in (dt.datetime, dt.time):
        return all(moment.tzinfo is None for moment in cast("Sequence[dt.datetime]", labels))
    return True


def column(labels: Sequence[Hashable]) -> pa.Array:
    """The labels as an Arrow array of their kind."""
    import pyarrow as pa

    kind = kind_of(labels)
    if kind == ENCODED_KIND:
        return pa.array([encoded(label) for label in labels], pa.string())
    alias = next(alias for name, alias in PLAIN_KINDS.values() if name == kind)
    return pa.array(list(labels), pa.type_for_alias(alias))


def labels_of(array: pa.Array | pa.ChunkedArray, kind: str) -> list[Hashable]:
    """The labels that a column of this kind holds."""
    listed = array.to_pylist()
    return [decoded(text) for text in listed] if kind == ENCODED_KIND else list(listed)


def take_labels(column: pa.Array, codes: Ints) -> pa.Array:
    """The labels with these codes. Text is not repeated: codes into a list of the labels that occur."""
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        return column.take(pa.array(codes))
    used = np.zeros(len(column), dtype=bool)
    used[codes] = True
    place = np.cumsum(used, dtype=np.int32) - 1
    values = column.filter(pa.array(used))
    return pa.DictionaryArray.from_arrays(pa.array(place[codes], pa.int32()), values)


def codes_of_column(values: pa.Array, column: pa.ChunkedArray) -> Ints:
    """The place of each label of a column among the values; −1 for one that is not there."""
    import pyarrow.compute as pc

    codes = pc.index_in(column, value_set=values.cast(column.type)).fill_null(-1)
    return np.asarray(codes.to_numpy(), dtype=np.int64)


def encoded(label: Hashable) -> str:
    """Any label as JSON text: tuples are lists, and dates, times and bytes are objects that say what they are.

    >>> encoded(("A", 1)), encoded(2.0)
    ('["A",1]', '2.0')
    """
    return json.dumps(_json(label), separators=(",", ":"), allow_nan=True)


def _json(label: object) -> object:
    if label is None or type(label) in (str, int, float, bool):
        return label
    if type(label) is tuple:
        return [_json(part) for part in label]
    if type(label) in TAGGED_TYPES:
        tag, write, _ = TAGGED_TYPES[type(label)]
        return {tag: write(label)}
    raise InputError(
        f"the label {label!r} is of type {type(label).__name__}, which files cannot hold: "
        "use text, numbers, dates, times, or tuples of them"
    )


def decoded(text: str) -> Hashable:
    """The label of JSON text.

    >>> decoded('[{"date":"2026-03-02"},1.5]')
    (datetime.date(2026, 3, 2), 1.5)
    """
    try:
        return _label(json.loads(text))
    except InputError:
        raise
    except (ValueError, TypeError, RecursionError):
        raise InputError(f"{str(text)[:40]!r} is not a label: it is not the JSON of one") from None


def _label(content: object) -> Hashable:
    if isinstance(content, list):
        return tuple(_label(part) for part in content)
    if isinstance(content, dict):
        if len(content) != 1 or not content.keys() <= TAG_READERS.keys():
            kinds = ", ".join(TAG_READERS)
            raise InputError(f"the label {json.dumps(content)} is of no known kind: there are {kinds}")
        ((tag, text),) = content.items()
        return TAG_READERS[tag](text)
    return content


def text_of(label: Hashable) -> str:
    """A label as people and other programs read it.

    >>> text_of("A"), text_of(7), text_of(("A", 1))
    ('A', '7', '["A",1]')
    """
    if type(label) is str:
        return label
    if isinstance(label, dt.date | dt.time):
        return label.isoformat()
    return encoded(label)


# Tables as one works with them


class Labels(Protocol):
    """What names the rows of a table."""

    def __len__(self) -> int: ...

    def columns(self, here: Ints | None = None) -> dict[str, list[Hashable]]:
        """A column of labels for each attribute, of all rows or of those at these places."""
        ...

    def place(self, *labels: Hashable, **named: Hashable) -> int:
        """The row with these labels, in the order of the attributes or by name."""
        ...


@dataclass(frozen=True, eq=False)
class TypeLabels:
    """Trip types by their place in the universe: a label for each dimension.

    >>> TypeLabels(Universe(stop=["A", "B"], time=["am", "pm"]), np.array([1, 2])).columns()
    {'stop': ['A', 'B'], 'time': ['pm', 'am']}
    """

    universe: Universe
    index: Ints

    def __len__(self) -> int:
        return len(self.index)

    def columns(self, here: Ints | None = None) -> dict[str, list[Hashable]]:
        codes = self.universe.unrank_codes(self.index if here is None else self.index[here])
        dimensions = self.universe.dimensions.items()
        return {n: [d.values[c] for c in code] for (n, d), code in zip(dimensions, codes, strict=True)}

    def place(self, *labels: Hashable, **named: Hashable) -> int:
        return _searched(self.columns(), labels, named)


@dataclass(frozen=True, eq=False)
class ListedLabels:
    """Labels that are listed: a column for each attribute. A table without attributes has one row."""

    listed: Mapping[str, list[Hashable]]

    def __len__(self) -> int:
        return len(next(iter(self.listed.values()), [None]))

    def columns(self, here: Ints | None = None) -> dict[str, list[Hashable]]:
        return {n: list(v) if here is None else [v[row] for row in here] for n, v in self.listed.items()}

    def place(self, *labels: Hashable, **named: Hashable) -> int:
        return _searched(self.listed, labels, named)


def _searched(
    columns: Mapping[str, list[Hashable]], labels: tuple[Hashable, ...], named: Mapping[str, Hashable]
) -> int:
    """The row that has these labels."""
    by_name = dict(zip(columns, labels, strict=False)) | dict(named)
    if len(labels) + len(named) != len(columns) or set(by_name) != set(columns):
        received = ", ".join([*map(repr, labels), *named]) or "nothing"
        raise InputError(f"a row is named by {', '.join(columns) or 'nothing'}, and {received} was given")
    rows = zip(*(columns[name] for name in by_name), strict=True) if columns else iter([()])
    sought = tuple(by_name.values())
    for place, row in enumerate(rows):
        if row == sought:
            return place
    description = ", ".join(f"{name} = {label!r}" for name, label in by_name.items())
    raise InputError(f"there is no row with {description}")


class Tabular:
    """What can be had as a labelled table: data frames, Arrow, and what a terminal and a notebook show."""

    def labelled(self) -> LabelledTable:
        """The table."""
        raise NotImplementedError

    def to_arrow(self) -> pa.Table:
        """A pyarrow table. Labels of mixed kinds are JSON text."""
        import pyarrow as pa

        table = self.labelled()
        labels = {n: column(values) for n, values in table.labels.columns().items()}
        return pa.table({**labels, **table.numbers})

    def to_pandas(self) -> pd.DataFrame:
        """A pandas data frame; labels are what they are."""
        import pandas as pd

        return pd.DataFrame(self.labelled().columns())

    def to_polars(self) -> pl.DataFrame:
        """A polars data frame."""
        import polars as pl

        return cast("pl.DataFrame", pl.from_arrow(self.to_arrow()))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule interface: `polars.DataFrame(table)`, `pyarrow.table(table)` and DuckDB read it."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        table = self.labelled()
        return text_table(table.head, *table.displayed())

    def _repr_html_(self) -> str | None:
        table = self.labelled()
        return html_table(table.head, *table.displayed(), note=" ".join(table.notes))


@dataclass(frozen=True, eq=False, repr=False)
class LabelledTable(Tabular):
    """Numbers in columns, and the labels of each row. Rows are counted and iterated, columns are had by their names.

    >>> table = LabelledTable(ListedLabels({"origin": ["A", "B"]}), {"count": np.array([7, 1200])}, "start")
    >>> len(table), list(table)[1], table["count"].sum(), table.at("A")["count"]
    (2, {'origin': 'B', 'count': 1200}, np.int64(1207), 7)
    >>> table
    start: 2 counts
    origin  count
    A           7
    B       1,200
    >>> dict(table)["origin"], table.to_pandas().shape
    (['A', 'B'], (2, 2))
    """

    labels: Labels
    numbers: Mapping[str, Ints | Floats]
    name: str  # what the rows are of: a feature, or the attributes they are grouped by
    notes: tuple[str, ...] = ()  # what a reader must know of the numbers, in sentences
    confidence: float | None = None  # of the intervals `low` to `high`

    def labelled(self) -> LabelledTable:
        return self

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[dict[str, Hashable]]:
        """The rows."""
        columns = self.columns()
        lists = [c.tolist() if isinstance(c, np.ndarray) else c for c in columns.values()]
        return (dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True))

    @overload
    def __getitem__(self, key: str) -> Column: ...
    @overload
    def __getitem__(self, key: int) -> dict[str, Hashable]: ...
    def __getitem__(self, key: str | int) -> Column | dict[str, Hashable]:
        """A column by its name: numbers are a numpy array, labels a list. Or a row by its place."""
        if isinstance(key, str):
            return self.numbers[key] if key in self.numbers else self.labels.columns()[key]
        size = len(self)
        if not -size <= key < size:
            raise IndexError(f"{self.name} has {size:,} rows: there is none at {key}")
        here = np.array([key % size], dtype=np.int64)
        labels = {name: values[0] for name, values in self.labels.columns(here).items()}
        return {**labels, **{name: values[key].item() for name, values in self.numbers.items()}}

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def columns(self) -> dict[str, Column]:
        """Labels and numbers, a column each."""
        return {**self.labels.columns(), **self.numbers}

    def keys(self) -> KeysView[str]:
        """The names of the columns: so `dict(table)` has them too."""
        here = np.zeros(0, dtype=np.int64)
        return {**self.labels.columns(here), **self.numbers}.keys()

    def values(self) -> ValuesView[Column]:
        return self.columns().values()

    def items(self) -> ItemsView[str, Column]:
        return self.columns().items()

    def at(self, *labels: Hashable, **named: Hashable) -> dict[str, Hashable]:
        """The row with these labels, in the order of the table's attributes or by name."""
        return self[self.labels.place(*labels, **named)]

    @property
    def head(self) -> str:
        """A line about the table."""
        many = f"{len(self):,} count{'s' if len(self) != 1 else ''}"
        stated = "low" in self.numbers and self.confidence is not None
        sure = f", low to high: {100 * (self.confidence or 0):g} % interval" if stated else ""
        return f"{self.name}: {many}{sure}"

    def displayed(self) -> tuple[dict[str, Column], list[str], list[int | None]]:
        """The rows that are shown, alone: labels of a long table are not all worked out."""
        rows = displayed_rows(len(self))
        here = np.array([row for row in rows if row is not None], dtype=np.int64)
        place = {int(row): p for p, row in enumerate(here)}
        columns: dict[str, Column] = {
            **self.labels.columns(here),
            **{n: v[here] for n, v in self.numbers.items()},
        }
        return columns, list(self.numbers), [None if row is None else place[row] for row in rows]


class LabelledCounts(Tabular, np.ndarray[tuple[int, ...], np.dtype[np.int64]]):
    """The counts of a table: an array of whole numbers that knows what each of them is of.

    It is an array so that all that reads counts goes on to work; whatever is computed from it is a plain array. Data frames read it as a table.

    >>> import cbdp
    >>> universe = cbdp.Universe(origin=["A", "B"], time=["am", "pm"])
    >>> dag = cbdp.FeatureDag(universe, [cbdp.Feature("start", by="origin")])
    >>> counts = cbdp.ConstraintBased(dag, epsilon=2).simulate(np.array([70, 20, 5, 900]), seed=1).counts("start")
    >>> counts.at("B") == int(counts[1]), counts.labels
    (True, {'origin': ['A', 'B']})
    """

    elements: Elements | None

    def __new__(cls, values: Ints, elements: Elements) -> LabelledCounts:
        counts = np.asarray(values, dtype=np.int64).view(cls)
        counts.elements = elements
        return counts

    def __array_finalize__(self, other: object) -> None:
        """Of a part or a copy nobody knows any more which elements it holds."""
        self.elements = None

    def __array_wrap__(self, array: Ints, context: object = None, return_scalar: bool = False) -> Ints:  # type: ignore[override]
        return array[()] if return_scalar else np.asarray(array)

    def __getitem__(self, key: object) -> Ints:
        return np.asarray(self)[key]  # type: ignore[call-overload,no-any-return]

    def at(self, *labels: Hashable, **named: Hashable) -> int:
        """The count with these labels, in the order of the table's attributes or by name."""
        assert self.elements is not None
        return int(np.asarray(self)[self.elements.place(*labels, **named)])

    @property
    def labels(self) -> dict[str, list[Hashable]]:
        """A column of labels for each attribute of the table: what each count is of."""
        assert self.elements is not None
        return self.elements.columns()

    def labelled(self) -> LabelledTable:
        if self.elements is None:
            raise InputError(
                "these counts are a part or a copy, which has no labels: take them from release.counts(...)"
            )
        return LabelledTable(self.elements, {"count": np.asarray(self)}, self.elements.feature)

    def __repr__(self) -> str:
        return np.array_repr(np.asarray(self)) if self.elements is None else super().__repr__()

    def _repr_html_(self) -> str | None:
        return None if self.elements is None else super()._repr_html_()


# The elements of a feature by their labels


MAX_LABELLED_ELEMENTS = 2**24  # elements whose labels are listed at once


@dataclass(frozen=True, eq=False)
class Elements:
    """The elements of a feature in their order. Labels are worked out when they are asked for.

    >>> from cbdp_features import Feature
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
MIN_LARGE_NUMBER = (
    100.0  # numbers of at least so much are shown with one decimal, smaller ones with three digits
)
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
    head: str, columns: Mapping[str, Column | list[str]], numbers: Sequence[str], rows: Sequence[int | None]
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
    columns: Mapping[str, Column | list[str]],
    numbers: Sequence[str],
    rows: Sequence[int | None],
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
    columns: Mapping[str, Column | list[str]], numbers: Sequence[str], rows: Sequence[int | None]
) -> list[list[str]]:
    return [
        [ELLIPSIS] * len(columns)
        if row is None
        else [_cell_text(cells[row], name in numbers) for name, cells in columns.items()]
        for row in rows
    ]


def _cell_text(value: object, number: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and number:
        return "" if value != value else f"{value:,.1f}" if abs(value) >= MIN_LARGE_NUMBER else f"{value:.3g}"  # noqa: PLR0124
    return f"{value:,}" if number else printable(str(value))
