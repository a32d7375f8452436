"""The cells of all tables in one list, and the relations among their true counts as one sparse matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from cbdp.arrays import Floats, Ints
from cbdp.audit.tables import CountTable, PublishedTables
from cbdp.privacy.laws import Law, law_of

PACK = 400  # relations that small components are put together to
EXACT = law_of("laplace", 0.0)  # of tables without a declared law: all their counts are hidden


@dataclass(frozen=True, eq=False)
class System:
    """All cells in one list, and the relations among their true counts: C x = 0."""

    tables: tuple[CountTable, ...]
    relations: Any  # sparse, a column per cell
    owner: Ints  # the table of each cell; −1 − i for what relation i leaves unlisted
    row: Ints  # its row there
    shown: NDArray[np.bool_]
    value: Floats
    noise: Ints  # the number of its noise
    noises: tuple[Law, ...]


def assemble(published: PublishedTables, *, bounded: bool = False) -> System:
    """The relations among the cells of all tables whose noise has a known law; or is bounded: by rounding, or by nothing at all."""
    tables = tuple(t for t in published.tables if not t.shown.any() or _usable(t, bounded))
    made = _Builder(tables)
    for number, s in enumerate(published.relations):
        if s.total in made.start and s.part in made.start:
            made.sum(number, published[s.total], published[s.part], np.asarray(s.rows))
    for p in published.equal:
        if p.first in made.start and p.second in made.start:
            made.equal(made.start[p.first] + p.first_rows, made.start[p.second] + p.second_rows)
    shown = np.zeros(made.columns, dtype=bool)
    value, noise = np.zeros(made.columns), np.zeros(made.columns, dtype=np.int64)
    noises = tuple(dict.fromkeys(t.noise or EXACT for t in tables))
    for t in tables:
        here = slice(made.start[t.name], made.start[t.name] + len(t))
        shown[here], value[here] = t.shown, np.where(t.shown, t.counts, 0.0)
        noise[here] = noises.index(t.noise or EXACT)
    owner, row = (np.concatenate([*part, np.zeros(0, np.int64)]) for part in (made.owner, made.row))
    return System(tables, made.matrix(), owner, row, shown, value, noise, noises)


def _usable(table: CountTable, bounded: bool) -> bool:
    return table.bounded if bounded else table.noise is not None and not table.rounding


class _Builder:
    """Collects the relations as entries of a sparse matrix; unlisted cells are added on the way."""

    def __init__(self, tables: Sequence[CountTable]) -> None:
        self.rows = self.columns = 0
        self.start: dict[str, int] = {}
        self.owner: list[Ints] = []
        self.row: list[Ints] = []
        self.entries: list[tuple[Ints, Ints, Floats]] = []
        for number, table in enumerate(tables):
            self.start[table.name] = self.columns
            self._cells(len(table), number)

    def sum(self, number: int, total: CountTable, part: CountTable, at: Ints) -> None:
        """Each row of the total is the sum of its parts, and of what the part does not list."""
        here = self._equations(len(total))
        use = np.flatnonzero(at >= 0)
        self._add(here, self.start[total.name] + np.arange(len(total)), 1.0)
        self._add(here[at[use]], self.start[part.name] + use, -1.0)
        if not part.closed:
            self._add(here, self._cells(len(total), -1 - number), -1.0)

    def equal(self, first: Ints, second: Ints) -> None:
        here = self._equations(len(first))
        self._add(here, first, 1.0)
        self._add(here, second, -1.0)

    def _equations(self, many: int) -> Ints:
        self.rows += many
        return np.arange(self.rows - many, self.rows)

    def _cells(self, many: int, owner: int) -> Ints:
        self.columns += many
        self.owner.append(np.full(many, owner, dtype=np.int64))
        self.row.append(np.arange(many))
        return np.arange(self.columns - many, self.columns)

    def _add(self, rows: Ints, columns: Ints, value: float) -> None:
        self.entries.append((rows, columns, np.full(len(rows), value)))

    def matrix(self) -> Any:
        if not self.entries:
            return sparse.csr_matrix((0, self.columns))
        rows, columns, values = (np.concatenate(part) for part in zip(*self.entries, strict=True))
        return sparse.csr_matrix((values, (rows, columns)), shape=(self.rows, self.columns))


def components(system: System) -> Iterator[tuple[Any, Ints]]:
    """Relations that share no cell are solved apart, small ones in packs: where any of their cells is hidden."""
    matrix = system.relations
    m = matrix.shape[0]
    graph = sparse.bmat([[None, abs(matrix)], [abs(matrix).T, None]], format="csr")
    number, label = connected_components(graph, directed=False)
    size = np.bincount(label[:m], minlength=number)  # relations of each component
    open_to = np.bincount(label[m:], weights=~system.shown, minlength=number) > 0
    use = np.flatnonzero(open_to & (size > 0))
    pack = np.full(number, -1)
    pack[use] = np.cumsum(size[use]) // PACK
    by_cell, by_relation = pack[label[m:]], pack[label[:m]]
    for p in np.unique(pack[use]):
        cells = np.flatnonzero(by_cell == p)
        yield matrix[np.flatnonzero(by_relation == p)][:, cells].tocsc(), cells
