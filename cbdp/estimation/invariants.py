"""Invariants: counts that are public already, read, checked against each other, and passed to the program as exact answers.

The publisher supplies them; they are never read off the trips. So the privacy guarantee of the noisy answers is unchanged, and the estimate is
post-processing of these and of constants. (The invariants of the US Census are statistics of the private data: Abowd and others 2022.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import cast

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InfeasibleError, InputError
from cbdp.estimation.compiler import check_exact
from cbdp.features import SINGLETON, TOTAL, FeatureDag
from cbdp.parts import did_you_mean
from cbdp.privacy.measurement import Measurement
from cbdp_solvers.problem import Problem, Term, bincount

PublicTables = Mapping[
    str, object
]  # by feature a count, counts in their order, or a table: what `read_public_counts` understands
PublicCounts = Mapping[str, Sequence[int]]  # by feature a count for each element, in their order

INVARIANTS_NOTE = (
    "These counts were public before. The release meets them exactly, spends nothing on them, and does not protect them: the promise "
    "of ε is about what is published beyond them. They were given as inputs and not read from the trips; whoever gave them "
    "out vouches for them."
)
COUNT_COLUMN = "count"
MAX_EXACT_COUNT = 2**53  # trips: the largest count below which every whole number is a double


def read_public_counts(
    features: FeatureDag, public: PublicTables | None
) -> dict[str, tuple[int, ...]] | None:
    """Public counts by feature: a number where there is one element, a list in the elements' order, or a table with a column `count`.

    Every element of a feature needs a count, and tables must agree with each other. Coarser tables that these add up to are public
    with them.

    >>> from cbdp.features import Feature, Universe
    >>> dag = FeatureDag(Universe(origin=["A", "B"], time=["am", "pm"]), [Feature("time", by="time")])
    >>> read_public_counts(dag, {"time": {"time": ["pm", "am"], "count": [30, 7]}})
    {'total': (37,), 'time': (7, 30)}
    """
    if public is None:
        return None
    if not isinstance(public, Mapping):
        raise InputError(
            f"public is {public!r}: give a mapping from features to counts, like {{'total': 37714}}"
        )
    counts_by_feature = {name: _counts(features, name, source) for name, source in public.items()}
    _check_agreement(features, counts_by_feature)
    return _with_coarser_tables(features, counts_by_feature) or None


def exact_answers(public: PublicCounts | None) -> list[Measurement]:
    """Public counts as answers without noise."""
    return [
        Measurement(n, np.asarray(counts, dtype=np.int64), exact=True) for n, counts in (public or {}).items()
    ]


def public_total(public: PublicCounts | None) -> int | None:
    """The number of trips, the sum of any public table."""
    return next((sum(counts) for counts in (public or {}).values()), None)


def _counts(features: FeatureDag, name: str, source: object) -> tuple[int, ...]:
    if name not in features:
        cure = did_you_mean(str(name), list(features.features))
        raise InputError(f"public counts of {name!r}, which is not a feature: {cure}")
    if name == SINGLETON:
        raise InputError(
            "public counts of 'singleton': if the count of every trip type is public, there is nothing left to release"
        )
    if isinstance(source, Mapping) or hasattr(source, "columns") or hasattr(source, "column_names"):
        return _counts_from_table(features, name, source)
    listed = (
        [source] if np.ndim(np.asarray(source, dtype=object)) == 0 else list(cast("Iterable[object]", source))
    )
    if len(listed) != features.size(name):
        raise InputError(
            f"public counts of {name!r}: {len(listed):,} for {features.size(name):,} elements: give one for each"
        )
    return tuple(_checked_count(features, name, element, count) for element, count in enumerate(listed))


def _counts_from_table(features: FeatureDag, name: str, source: object) -> tuple[int, ...]:
    """The counts of a table keyed by the feature's attributes. It must be whole: of a part, the rest would have to be measured."""
    import pyarrow as pa

    try:
        table = pa.table(source)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError) as wrong:
        raise InputError(f"the public table of {name!r} cannot be read: {wrong}") from None
    by = features.features[name].by
    for column in (*by, COUNT_COLUMN):
        if column not in table.column_names:
            needed = ", ".join((*by, COUNT_COLUMN))
            raise InputError(f"the public table of {name!r} has no column {column!r}: it needs {needed}")
    keys = {a: table.column(a).to_pylist() for a in by}
    elements = features.partition(name).find(keys) if by else np.zeros(table.num_rows, dtype=np.int64)
    return whole_table(features, name, elements, table.column(COUNT_COLUMN).to_pylist(), keys)


def whole_table(
    features: FeatureDag,
    name: str,
    elements: NDArray[np.int64],
    counts: Sequence[object],
    keys: Mapping[str, Sequence[object]],
) -> tuple[int, ...]:
    """The counts of a table's rows in the order of the elements; each element must have one row."""
    ordered: list[int | None] = [None] * features.size(name)
    for row, (element, count) in enumerate(zip(elements.tolist(), counts, strict=True)):
        shown = ", ".join(f"{a} = {column[row]}" for a, column in keys.items()) or "everything"
        if element < 0:
            raise InputError(
                f"the public table of {name!r} has a row for {shown}, which is not in the universe"
            )
        if ordered[element] is not None:
            raise InputError(f"the public table of {name!r} has a second row for {shown}: keep one")
        ordered[element] = _checked_count(features, name, element, count)
    missing = [element for element, count in enumerate(ordered) if count is None]
    if missing:
        raise InputError(
            f"the public table of {name!r} has {len(counts):,} of {len(ordered):,} rows: {_element_name(features, name, missing[0])} is "
            "missing. Give every row (0 where there were no trips), or leave the table out"
        )
    return tuple(count for count in ordered if count is not None)


def _checked_count(features: FeatureDag, name: str, element: int, count: object) -> int:
    if (
        not isinstance(count, int | float | np.integer | np.floating)
        or isinstance(count, bool)
        or not 0 <= count <= MAX_EXACT_COUNT
        or count != int(count)
    ):
        raise InputError(
            f"the public count of {_element_name(features, name, element)} is {count!r}: give a whole number of at least 0"
        )
    return int(count)


def _check_agreement(features: FeatureDag, public: Mapping[str, tuple[int, ...]]) -> None:
    """Tables must give the same sums wherever both have them, and together must be possible."""
    for one, other in combinations(public, 2):
        for shared in features.features:
            if _determines(features, one, shared) and _determines(features, other, shared):
                _check_sums(features, public, one, other, shared)
    if len(public) > 1:
        _check_families(features, public)
        _check_possible(features, public)


def _determines(features: FeatureDag, fine: str, coarse: str) -> bool:
    return fine == coarse or features.refines(fine, coarse)


def _check_sums(
    features: FeatureDag, public: Mapping[str, tuple[int, ...]], one: str, other: str, shared: str
) -> None:
    sums = [_coarse_sums(features, name, public[name], shared) for name in (one, other)]
    off = np.flatnonzero(sums[0] != sums[1])
    if len(off):
        at = int(off[0])
        where = "" if shared == TOTAL else f" for {_element_name(features, shared, at)}"
        raise InputError(
            f"the public counts of {one!r} and {other!r} contradict each other: {one!r} adds up to {int(sums[0][at]):,} "
            f"trips{where}, {other!r} to {int(sums[1][at]):,}; correct one of them"
        )


def _coarse_sums(features: FeatureDag, fine: str, counts: Sequence[int], coarse: str) -> NDArray[np.float64]:
    values = np.asarray(counts, dtype=float)
    if fine == coarse:
        return values
    return bincount(features.map_elements(fine, coarse), values, features.size(coarse))


def _check_families(features: FeatureDag, public: Mapping[str, tuple[int, ...]]) -> None:
    """Whole trips meet all counts of at most two laminar families of tables (Edmonds 1970): more are refused before anything is spent."""
    import networkx as nx

    crossing = [
        (one, other)
        for one, other in combinations(public, 2)
        if not features.refines(one, other) and not features.refines(other, one)
    ]
    if not nx.is_bipartite(nx.Graph(crossing)):
        raise InputError(
            f"the public tables {', '.join(map(repr, public))} cross each other in more than two ways: whole trips cannot be "
            "promised to meet all of them. Leave one out, to be measured"
        )


def _with_coarser_tables(
    features: FeatureDag, public: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """The public tables and their marginals, coarse ones first."""
    complete = {}
    for name in features.features:
        source = next((fine for fine in public if _determines(features, fine, name)), None)
        if source is not None:
            sums = _coarse_sums(features, source, public[source], name)
            complete[name] = tuple(sums.astype(np.int64).tolist())
    return complete


def _check_possible(features: FeatureDag, public: Mapping[str, tuple[int, ...]]) -> None:
    """Tables that cross may agree in their sums and still be impossible together."""
    cells = features.cells
    terms = tuple(
        Term(n, cells.element_of_cell[n], np.asarray(c, dtype=float), np.full(len(c), np.inf))
        for n, c in public.items()
    )
    none = np.zeros(0)
    try:
        check_exact(Problem(none, 1.0, none.astype(np.int64), cells.size, terms))
    except InfeasibleError as wrong:
        raise InputError(
            f"no trips can have all the public counts of {', '.join(map(repr, public))}: {wrong}"
        ) from None


def _element_name(features: FeatureDag, name: str, element: int) -> str:
    """An element by its feature and labels."""
    labels = [str(column[element]) for column in features.partition(name).keys().values()]
    return f"{name!r}" if not labels else f"{name!r} ({', '.join(labels)})"
