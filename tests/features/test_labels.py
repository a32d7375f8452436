"""Labels of any kind, in columns and in JSON, come back as they were."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbdp.errors import InputError
from cbdp_features.tables import LABEL_KINDS, column, decoded, encoded, kind_of, labels_of

LABEL = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters())
    | st.binary()
    | st.dates()
    | st.datetimes()
    | st.times(),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
)


@given(st.lists(LABEL, min_size=1))
def test_a_column_gives_its_labels_back(labels: list[Any]) -> None:
    """Whatever the labels are, alone in JSON and together in a column, their values and types are kept."""
    kind = kind_of(labels)
    assert kind in LABEL_KINDS
    for back in (labels_of(column(labels), kind), [decoded(encoded(v)) for v in labels]):
        assert back == labels
        assert repr(back) == repr(labels).replace(", fold=1", "")  # equal without it, so the same label


@pytest.mark.parametrize("text", ['{"colour":"red"}', "{}", '{"date":"2026-03-02","time":"08:00"}'])
def test_a_label_of_no_known_kind_is_refused(text: str) -> None:
    """A tag that no label has, none, or two: the error has the label and the tags there are."""
    with pytest.raises(InputError, match="of no known kind: there are datetime, date, time, bytes"):
        decoded(text)
