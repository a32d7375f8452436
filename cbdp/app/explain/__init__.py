"""What a plan would release, in plain words and in numbers, before anything is spent or any row is read."""

from cbdp.app.explain.explanation import Explanation, answer, answers, explain
from cbdp.app.explain.numbers import ExpectedNoise, choices, epsilon_for, noise
from cbdp.app.explain.words import files, tree

__all__ = [
    "ExpectedNoise",
    "Explanation",
    "answer",
    "answers",
    "choices",
    "epsilon_for",
    "explain",
    "files",
    "noise",
    "tree",
]
