"""The curator's own report: the release compared with the truth. It reveals private data, and nothing writes it unasked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cbdp.arrays import Ints
from cbdp.counting.counts import Counts
from cbdp.errors import InputError
from cbdp.estimation.intervals import Interval
from cbdp.features import SINGLETON
from cbdp.release.release import Release
from cbdp.release.summary import number_text
from cbdp.release.views import Published, published_view
from cbdp.report.diagrams import scatter_diagram
from cbdp.report.markup import INTERNAL_WARNING, Html, internal_banner, join, page, table, tag
from cbdp.report.text import confidence_text, percent, published_features

MAX_LISTED_MISSES = 25  # counts of each table, those with the largest errors


@dataclass(frozen=True, eq=False)
class Comparison:
    """A feature's published and true counts; of `singleton` only the types that have either."""

    feature: str
    size: int
    published: Ints
    true: Ints
    index: Ints  # the element each stands for
    covered: float | None  # share of the intervals that contain the truth

    @property
    def error(self) -> Ints:
        return self.published - self.true

    @property
    def rms(self) -> float:
        return float(np.sqrt(np.square(self.error, dtype=float).sum() / self.size))


def build_internal(release: Release, truth: Counts) -> str:
    """Errors of every table against the truth, coverage of the intervals, and the largest errors, as HTML.

    For the curator's eyes only: the page shows exact counts. `truth` are the counts that the release was made from.
    """
    same = {n: d.values for n, d in truth.universe.dimensions.items()} == {
        n: d.values for n, d in release.features.universe.dimensions.items()
    }
    if not same:
        raise InputError(
            "the truth counts other trip types than the release: count with the release's universe"
        )
    published = published_view(release)
    comparisons = [compare(published, truth, name) for name in published_features(published)]
    total = int(truth.value.sum())
    lead = f"True trips: {total:,}. Published: {release.total:,}. Errors are published minus true counts, in trips."
    body = join(
        internal_banner(),
        tag("header", tag("h1", "The release compared with the truth"), tag("p", lead, class_="lead")),
        tag(
            "main",
            tag("section", tag("h2", "Errors by table"), _errors(comparisons, published), id="errors"),
            tag("section", tag("h2", "Largest errors"), _misses(comparisons, published), id="misses"),
            tag("section", tag("h2", "Published against true counts"), _scatters(comparisons), id="scatters"),
        ),
        tag("footer", tag("p", INTERNAL_WARNING)),
    )
    return page("INTERNAL: the release compared with the truth", body, None)


def compare(published: Published, truth: Counts, name: str) -> Comparison:
    release, interval = published.release, published.intervals.get(name)
    size = published.dag.size(name)
    if name == SINGLETON and interval is None and name not in release.tables:
        index = np.union1d(release.index, truth.index)
        counts, exact = (_at(index, c.index, c.value) for c in (release, truth))
    else:
        index, counts, exact = np.arange(size), release.counts(name), truth.of(published.dag, name)
    return Comparison(
        name, size, counts, exact, index, None if interval is None else _covered(interval, exact)
    )


def _at(index: Ints, where: Ints, value: Ints) -> Ints:
    dense = np.zeros(len(index), dtype=np.int64)
    dense[np.searchsorted(index, where)] = value
    return dense


def _covered(interval: Interval, exact: Ints) -> float:
    return float(np.mean((interval.low <= exact) & (exact <= interval.high)))


def _errors(comparisons: Sequence[Comparison], published: Published) -> Html:
    sure = confidence_text(published)
    head = ["Table", "Counts", "Root mean square error", "Mean error", "Mean absolute error", "Largest error", "Relative to the mean count", f"Inside {sure} intervals"]  # fmt: skip
    rows = []
    for c in comparisons:
        mean = c.true.sum() / c.size
        rows.append([
            c.feature, f"{c.size:,}", _small(c.rms), _signed(float(c.error.sum() / c.size)), _small(np.abs(c.error).sum() / c.size),
            f"{int(np.abs(c.error).max(initial=0)):,}", percent(c.rms / mean) if mean else "–",
            "–" if c.covered is None else percent(c.covered),
        ])  # fmt: skip
    note = tag(
        "p",
        f"About {sure} of the intervals should contain the true count. A single release may differ, especially in tables of few counts.",
    )
    return join(tag("div", table(head, rows, class_="cards", id="error-table"), class_="scroll"), note)


def _signed(value: float) -> str:
    return "0" if abs(value) < 0.0005 else f"{value:+.3f}".replace("-", "−")


def _small(value: float) -> str:
    return number_text(value) if value >= 100 else f"{value:.3g}"


def _misses(comparisons: Sequence[Comparison], published: Published) -> Html:
    """The counts with the largest errors, table by table."""
    return join([
        tag("details", tag("summary", c.feature), tag("div", _missed(c, published), class_="scroll"), open=c.feature != SINGLETON)
        for c in comparisons
        if c.size > 1
    ])  # fmt: skip


def _missed(c: Comparison, published: Published) -> Html:
    worst = np.lexsort((c.index, -np.abs(c.error)))[:MAX_LISTED_MISSES]
    worst = worst[c.error[worst] != 0]
    if not len(worst):
        return tag("p", "None: every count is exact.")
    names = _names(published, c.feature, c.index[worst])
    interval = published.intervals.get(c.feature)
    rows: list[list[Any]] = []
    for name, place in zip(names, worst.tolist(), strict=True):
        row = [
            name,
            f"{c.published[place]:,}",
            f"{c.true[place]:,}",
            f"{c.error[place]:+,}".replace("-", "−"),
        ]
        if interval is not None:
            low, high = int(interval.low[place]), int(interval.high[place])
            row.append(f"{low:,}–{high:,}" + ("" if low <= c.true[place] <= high else " (missed)"))
        rows.append(row)
    head = ["Count", "Published", "True", "Error", *(["Interval"] if interval is not None else [])]
    return table(head, rows)


def _names(published: Published, feature: str, elements: Ints) -> list[str]:
    """The elements' labels, joined."""
    universe = published.dag.universe
    if feature == SINGLETON:
        codes = universe.unrank_codes(elements)
        columns = [
            [str(d.values[i]) for i in code.tolist()]
            for d, code in zip(universe.dimensions.values(), codes, strict=True)
        ]
    else:
        partition = published.dag.partition(feature)
        pairs = zip(partition.attributes, partition.label_codes(), strict=True)
        columns = [[str(a.labels[i]) for i in code[elements].tolist()] for a, code in pairs]
    return [" · ".join(row) for row in zip(*columns, strict=True)]


def _scatters(comparisons: Sequence[Comparison]) -> Html:
    pictures = [
        tag("article", tag("h3", c.feature), scatter_diagram(c.published, c.true, c.feature))
        for c in comparisons
        if c.size > 1
    ]
    note = tag(
        "p",
        "Points on the line are exact. Both axes have square-root scales, so that small counts can be seen.",
    )
    return join(note, tag("div", pictures, class_="beside"))
