"""Labels of any kind, in columns and in JSON, come back as they were."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import fields, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from released import MECHANISMS, bytes_of, city, counts_of, made, release_of, same, same_release, simulated, weights
from any_release import releases

import cbdp
from cbdp import mechanisms
from cbdp.errors import InputError
from cbdp.estimate.intervals import Interval
from cbdp.features.places import Stops
from cbdp.mechanisms import Mechanism
from cbdp.privacy.claim import Claim
from cbdp.privacy.composition import Parallel, Sequential, Spend
from cbdp.release.labels import KINDS, column, decoded, encoded, kind_of, labels_of
from cbdp.release.layout import check
from cbdp.release.loading import load
from cbdp.release.recipe import Recipe
from cbdp.release.release import Release
from cbdp.release.saving import leftovers
from cbdp.release.schema import check as check_manifest
from cbdp.release.schema import schema
from cbdp.release.universe_files import universe_hash


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
    assert kind in KINDS
    for back in (labels_of(column(labels), kind), [decoded(encoded(v)) for v in labels]):
        assert back == labels
        assert repr(back) == repr(labels).replace(", fold=1", "")  # equal without it, so the same label


@pytest.mark.parametrize("text", ['{"colour":"red"}', "{}", '{"date":"2026-03-02","time":"08:00"}'])
def test_a_label_of_no_known_kind_is_refused(text: str) -> None:
    """A tag that no label has, none, or two: the error has the label and the tags there are."""
    with pytest.raises(InputError, match="of no known kind: use one of datetime, date, time, bytes"):
        decoded(text)
