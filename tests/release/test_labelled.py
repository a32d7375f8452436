"""Counts, intervals and tables say what each number is of, and stay arrays for all that computes with them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from released import MECHANISMS, release_of

from cbdp.errors import InputError


def test_counts_are_an_array_with_labels() -> None:
    """The labels are those of the published trips, added up by hand; what is computed is a plain array."""
    release = release_of("constraint-based")
    counts = release.counts("zone")
    trips = pd.DataFrame(release.trips())
    zone = {"A": "n", "B": "n", "C": "s", "D": "s"}
    by_hand = trips.groupby([trips["origin"].map(zone), trips["destination"].map(zone), "time"])[
        "count"
    ].sum()
    for labels, count in by_hand.items():
        assert counts.at(*labels) == count
    listed = counts.labels
    assert list(listed) == ["origin.zone", "destination.zone", "time"]
    assert [counts.at(*row) for row in zip(*listed.values(), strict=True)] == counts.tolist()
    assert type(counts[1:]) is np.ndarray
    assert type(counts * 2) is np.ndarray
    assert type(counts == 0) is np.ndarray
    assert isinstance(counts.sum(), np.int64)
    assert int(counts.sum()) == release.total
    assert pa.array(counts).to_pylist() == counts.tolist()


def test_a_count_is_asked_for_by_name_or_in_order() -> None:
    """A label that does not exist, a combination that cannot be, too few labels: each with a cure."""
    counts = release_of("constraint-based").counts("zone")
    assert counts.at("n", "s", "06:00") == counts.at(
        time="06:00", **{"origin.zone": "n", "destination.zone": "s"}
    )
    with pytest.raises(InputError, match="time is never '06:10': did you mean '06:00'"):
        counts.at("n", "s", "06:10")
    with pytest.raises(InputError, match=r"named by origin\.zone, destination\.zone, time"):
        counts.at("n", "s")
    with pytest.raises(InputError, match="there can be no trip with origin = 'A', destination = 'A'"):
        release_of("constraint-based").counts("singleton").at("A", "A", "06:00")


def test_intervals_carry_the_same_labels() -> None:
    """Published ones and simulated ones."""
    release = release_of("constraint-based")
    interval = release.interval("mode")
    place = release.counts("mode").labels["mode"].index("rail")
    assert interval.at("rail", "06:00") == (interval.low[place], interval.high[place])
    assert interval.labels == release.counts("mode").labels
    assert "rail" in repr(interval)
    again = release.interval("time", 0.5)
    assert again.at("06:00")[0] >= release.interval("time").at("06:00")[0]
    with pytest.raises(InputError, match=r"release\.interval"):
        release.intervals["time"].at("06:00")


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_every_table_of_every_mechanism_is_a_frame(name: str) -> None:
    """pandas, polars and Arrow read the same numbers, row by row those of `counts`."""
    release = release_of(name)
    for feature in release.features.features:
        table = release.table(feature)
        read = pa.table(table)
        assert read["count"].to_pylist() == release.counts(feature).tolist()
        assert pl.DataFrame(table)["count"].to_list() == read["count"].to_pylist()
        assert len(pd.DataFrame(table.columns())) == len(table)
        assert ("low" in read.column_names) == (feature in release.intervals)
        row = table[len(table) - 1]
        assert table.at(**{key: row[key] for key in release.features.features[feature].by}) == row


def test_what_is_shown_is_short_and_aligned() -> None:
    """Of a long table the first and the last rows; every line of text is as wide as its columns."""
    release = release_of("constraint-based")
    text = repr(release.table("singleton")).splitlines()
    assert text[0].startswith("singleton: 24 counts")
    assert len(text) == 2 + 13
    assert sum(set(line.split()) == {"…"} for line in text) == 1
    assert repr(release.counts("time")).splitlines()[0] == "time: 2 counts"


def test_every_answer_is_the_same_kind_of_table() -> None:
    """Trips, a feature's table, its counts, an answer, an interval, an estimate: rows, columns, and every data frame."""
    release = release_of("constraint-based")
    assert release.estimate is not None
    answers = {
        "trips": release.trips(),
        "table": release.table("zone"),
        "asked": release.ask(["origin.zone", "time"]),
        "counted": release.counts("zone"),
        "interval": release.interval("zone"),
        "estimate": release.estimate.table("zone"),
    }
    for answer in answers.values():
        table = answer.labelled()
        columns = table.columns()
        rows = list(table)
        assert len(table) == len(rows) > 0
        assert list(columns) == list(table.keys()) == list(rows[0]) == list(dict(table))
        assert table[-1] == rows[-1]
        assert all(type(table[name]) is np.ndarray for name in table.numbers)
        assert all(name in table for name in columns)
        arrow, pandas, polars = answer.to_arrow(), answer.to_pandas(), answer.to_polars()
        assert arrow.to_pylist() == pandas.to_dict("records") == polars.to_dicts() == rows
        assert pl.DataFrame(table).to_dicts() == rows
        for text in (repr(answer), answer._repr_html_()):
            assert text is not None
            assert all(name in text for name in columns)


def test_rows_are_found_by_their_labels_in_any_answer() -> None:
    """Of an answer that is no table of the release too; what is not there is said."""
    answer = release_of("constraint-based").ask("origin.zone")
    assert answer.at("n") == answer[0]
    assert answer["origin.zone"] == ["n", "s"]
    with pytest.raises(InputError, match=r"there is no row with origin\.zone = 'x'"):
        answer.at("x")
    with pytest.raises(InputError, match=r"a row is named by origin\.zone, and nothing was given"):
        answer.at()
    with pytest.raises(IndexError, match="2 rows"):
        answer[2]
    with pytest.raises(KeyError):
        answer["nothing"]
    assert answer.notes == ()
    assert answer.confidence == 0.9
