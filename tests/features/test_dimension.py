"""Dimensions: values once each, and every one labelled."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cbdp.errors import InputError
from cbdp.features import Dimension, Universe

BAD = {
    "no values": (lambda: Universe(origin=[]), "no values"),
    "value twice": (lambda: Dimension(["A", "B", "A"]), "'A'"),
    "missing value": (lambda: Dimension(["A", None]), "None"),
    "NaN value": (lambda: Dimension([1.0, math.nan]), "nan"),
    "unhashable value": (lambda: Dimension([["A"], ["B"]]), "A"),
    "unlabelled in a list": (lambda: Dimension(["A", "B"], zone=["n", None]), "'B'"),
    "NaN label": (lambda: Dimension(["A", "B"], zone=[1.0, math.nan]), "'B'"),
    "32-bit NaN label": (lambda: Dimension(["A", "B"], zone=[np.float32(1), np.float32("nan")]), "'B'"),
    "unlabelled in a mapping": (lambda: Dimension(["A", "B"], zone={"A": "n"}), "'B'"),
    "too few labels": (lambda: Dimension(["A", "B"], zone=["n"]), "zone"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_definitions_are_refused(what):
    """Each wrong definition is an InputError that names the wrong value."""
    make, message = BAD[what]
    with pytest.raises(InputError, match=message):
        make()
