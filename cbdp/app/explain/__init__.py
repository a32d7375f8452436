"""What a plan would release, in plain words and in numbers, before anything is spent or any row is read."""

from cbdp.app.explain.advice import answer, answers
from cbdp.app.explain.expected import ExpectedTable, expected
from cbdp.app.explain.explanation import Explanation, explain
from cbdp.app.explain.numbers import ExpectedNoise, choices, epsilon_for, noise
from cbdp.app.explain.words import files, tree

__all__ = [
    "ExpectedNoise",
    "ExpectedTable",
    "Explanation",
    "answer",
    "answers",
    "choices",
    "epsilon_for",
    "expected",
    "explain",
    "files",
    "noise",
    "tree",
]
