"""Limits that pages name are the constants of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from cbdp.estimation.bootstrap import MAX_BOOTSTRAP_TYPES, MAX_REPLICATES
from cbdp.estimation.posterior.settings import Tuning
from cbdp.measuring.answers import MAX_DENSE_TRIP_TYPES
from cbdp_features.queries import MAX_GROUPS

DOCS = Path(__file__).parents[2] / "docs"
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
NUMBER_WORDS = {12: "twelve"}


def power(value: int) -> str:
    """A power of two as pages write it."""
    exponent = value.bit_length() - 1
    assert value == 2**exponent
    return "2" + str(exponent).translate(SUPERSCRIPTS)


LISTED = power(MAX_DENSE_TRIP_TYPES)


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("explanation/budgets.md", f"It takes the posterior estimator and at most {LISTED} trip types."),
        ("explanation/limitations.md", f"needs all trip types listed: at most {LISTED} of them."),
        (
            "explanation/earlier.md",
            f"Universes too large to list (more than {LISTED} trip types) have no prior",
        ),
        (
            "explanation/universes.md",
            f"*Up to {power(Tuning().revealed)} types* every noisy count is revealed",
        ),
        ("reference/ask.md", f"More than {power(MAX_GROUPS)} groups are refused"),
        ("reference/ask.md", f"The mechanism is run on {NUMBER_WORDS[MAX_REPLICATES]} such draws"),
        ("reference/ask.md", f"none from {power(MAX_BOOTSTRAP_TYPES)}"),
    ],
)
def test_a_limit_on_a_page_is_that_of_the_code(page: str, sentence: str) -> None:
    """The same power of two, or the same number."""
    assert sentence in (DOCS / page).read_text("utf-8")
