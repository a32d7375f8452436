"""Consistency: sound tables are never contradicted, and what noise does not explain is named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from attacked_tables import only, tables_of

from cbdp.audit import consistency
from cbdp.audit.tables import CountTable, PublishedTables, Sum
from cbdp.privacy.noise import noise_distribution


def test_sound_tables_are_never_called_inconsistent() -> None:
    """Of 60 honest table sets with hidden counts none is contradicted, at a risk of one in a million each."""
    for seed in range(60):
        published, _ = tables_of(np.random.default_rng(seed), 20, 10, hidden=0.1 * (seed % 2))
        assert only(consistency.attack(published)).verdict == "clear"


@pytest.mark.parametrize("hidden", [0.0, 0.1])
@pytest.mark.parametrize("by", [80.0, -80.0])
def test_a_changed_count_is_named(hidden: float, by: float) -> None:
    """One count moved by more than noise explains is found, and its time or place is named."""
    published, _ = tables_of(np.random.default_rng(1), 20, 10, hidden=hidden)
    time = published["time"]
    counts = time.counts.copy()
    counts[7] += by if not hidden else 4 * by
    changed = replace(published, tables=(replace(time, counts=counts), *published.tables[1:]))
    found = only(consistency.attack(changed))
    assert found.verdict == "contradicts"
    assert found.evidence.startswith("time: time 7 by")  # the worst comes first


def test_exact_sums_must_be_exact() -> None:
    """Where figures are claimed to add up, a difference of one is a contradiction."""
    total = CountTable("total", {}, np.array([7.0]), canonical=True)
    part = CountTable("part", {"k": np.arange(3)}, np.array([1.0, 2.0, 4.0]))
    claimed = PublishedTables(
        (total, part), sums=(Sum("total", "part", np.zeros(3, dtype=np.int64), exact=True),)
    )
    assert only(consistency.attack(claimed)).verdict == "clear"
    wrong = replace(claimed, tables=(replace(total, counts=np.array([8.0])), part))
    assert only(consistency.attack(wrong)).verdict == "contradicts"


def test_what_a_sound_table_cannot_have() -> None:
    """Cells listed twice, broken numbers, negative counts, too many cells and cells outside are each told."""
    keys = {"k": np.array(["a", "b", "c", "d"])}
    fine = CountTable("t", keys, np.array([3.0, 1.0, 2.0, 5.0]))
    noise = noise_distribution("geometric", 1.0)
    cases = {
        "more than once": replace(fine, keys={"k": np.array(["a", "b", "b", "c"])}),
        "not whole": replace(fine, counts=np.array([3.0, 1.5, 2.0, 5.0]), noise=noise),
        "negative": replace(
            fine, counts=np.array([3.0, -1.0, 2.0, 5.0]), noise=noise_distribution("laplace", 0.0)
        ),
        "universe of 3": replace(fine, universe=3),
        "infinite": replace(fine, counts=np.array([3.0, np.inf, 2.0, 5.0])),
    }
    assert only(consistency.attack(PublishedTables((fine,)))).verdict == "clear"
    for words, table in cases.items():
        found = only(consistency.attack(PublishedTables((table,))))
        assert found.verdict == "contradicts"
        assert words in found.title
    silent = replace(fine, counts=np.array([3.0, -1.0, 2.0, 5.0]))  # which claims nothing
    assert only(consistency.attack(PublishedTables((silent,)))).verdict == "weakness"
    negative = replace(fine, counts=np.array([3.0, -1.0, 2.0, 5.0]), noise=noise)
    assert only(consistency.attack(PublishedTables((negative,)))).verdict == "clear"
    total = CountTable("total", {"k": np.array(["a", "b"])}, np.array([3.0, 1.0]))
    part = CountTable("part", {"k": keys["k"], "j": np.arange(4)}, fine.counts)
    assert "belong to no row" in only(consistency.attack(PublishedTables((total, part)))).title


def test_the_order_of_rows() -> None:
    """Rows sorted by keys, in either direction, or by count are canonical; a shuffled table is not."""
    day, stop = np.repeat(["9", "10"], 30), np.tile([f"s{i:02d}" for i in range(30)], 2)
    counts = np.random.default_rng(0).integers(1, 1000, 60).astype(float)
    table = CountTable("t", {"stop": stop, "day": day}, counts)
    assert consistency.order(table) == "by day, stop"
    assert (
        consistency.order(replace(table, keys={"stop": stop[::-1], "day": day}))
        == "by day, stop (descending)"
    )
    assert consistency.order(replace(table, counts=np.sort(counts)[::-1])) == "by count"
    mixed = np.random.default_rng(1).permutation(60)
    shuffled = CountTable("t", {"stop": stop[mixed], "day": day[mixed]}, counts)
    assert consistency.order(shuffled) is None
    assert only(consistency.attack(PublishedTables((shuffled,)))).verdict == "weakness"
