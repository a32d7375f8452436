"""Elements by their labels: every element has its own, and is found by them."""

from __future__ import annotations

import numpy as np
import pytest

import cbdp
from cbdp.errors import InputError
from cbdp_features.tables import Elements, displayed_rows, html_table, text_table


def city() -> cbdp.FeatureDag:
    stops = cbdp.Dimension(["A", "B", "C"], zone=["n", "n", "s"])
    universe = cbdp.Universe(origin=stops, destination=stops, time=["am", "pm"]).without_equal(
        "origin", "destination"
    )
    return cbdp.FeatureDag(universe, [cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"])])


def test_labels_and_places_are_inverse() -> None:
    """For tables, for single trip types and for the total, each element comes back as itself."""
    dag = city()
    for name in dag.features:
        rows = Elements(dag, name)
        assert len(rows) == dag.size(name)
        assert [rows.place(**rows[i]) for i in range(len(rows))] == list(range(len(rows)))
        listed = rows.columns()
        assert all(listed[key] == [rows[i][key] for i in range(len(rows))] for key in rows.by)
        assert rows[-1] == rows[len(rows) - 1]
        with pytest.raises(IndexError, match=f"{name} has"):
            rows[len(rows)]


def test_labels_of_a_universe_too_large_to_list_are_found_one_by_one() -> None:
    """A few of 10¹² trip types."""
    places = [f"p{n}" for n in range(10_000)]
    dag = cbdp.FeatureDag(cbdp.Universe(origin=places, destination=places, hour=list(range(10_000))), [])
    rows = Elements(dag, "singleton")
    assert rows[123_456_789_012] == {"origin": "p1234", "destination": "p5678", "hour": 9012}
    assert rows.place("p1234", "p5678", 9012) == 123_456_789_012
    assert rows.columns(np.array([0, 10**12 - 1]))["hour"] == [0, 9999]
    with pytest.raises(InputError, match="too many to list"):
        rows.columns()


def test_what_is_not_there_is_said_with_a_cure() -> None:
    """A wrong label, a combination that cannot be, and too many labels."""
    rows = Elements(city(), "singleton")
    with pytest.raises(InputError, match="origin is never 'D': there are A, B, C"):
        rows.place("D", "A", "am")
    with pytest.raises(InputError, match="there can be no trip with origin = 'A', destination = 'A'"):
        rows.place("A", "A", "am")
    with pytest.raises(InputError, match="named by origin, destination, time, and 'A', time was given"):
        rows.place("A", time="am")
    with pytest.raises(InputError, match="named by nothing"):
        Elements(city(), "total").place("A")


def test_long_tables_are_shown_by_both_ends() -> None:
    """As text with columns that line up, as HTML with labels that stay text."""
    rows = displayed_rows(40)
    assert (rows[0], rows[-1], rows.count(None), len(rows)) == (0, 39, 1, 13)
    text = text_table("head", {"stop": ["a", "bb"], "count": np.array([1000, 2])}, ["count"], [0, None, 1])
    assert text.splitlines()[1:] == ["stop  count", "a     1,000", "…         …", "bb        2"]
    assert "&lt;b&gt;" in html_table("head", {"stop": ["<b>"]}, [], [0])
