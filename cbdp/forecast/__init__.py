"""What a plan would release, in plain words and in numbers, before anything is spent or any row is read."""

from __future__ import annotations

from cbdp.forecast.check import Explanation, explain, feature_tree, files_of_release
from cbdp.forecast.errors import (
    ExpectedNoise,
    ExpectedTable,
    answer,
    answers,
    epsilon_for,
    errors_by_budget,
    expected_tables,
    noise_by_table,
)

__all__ = [
    "ExpectedNoise",
    "ExpectedTable",
    "Explanation",
    "answer",
    "answers",
    "epsilon_for",
    "errors_by_budget",
    "expected_tables",
    "explain",
    "feature_tree",
    "files_of_release",
    "noise_by_table",
]
