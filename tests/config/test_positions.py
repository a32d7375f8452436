"""The lines of keys, against tomllib on random documents. Every number is unique, so its place in the text is the oracle."""

from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cbdp.config.values import key_lines

SPACE = st.sampled_from(["", " ", '  # a = [ { " ]'])
BREAK = st.sampled_from([" ", "\n", " # ] } , =\n  "])
TRICKY = [
    '"a # b"', '"\\" ] }"', "'c:\\'", '""', "'''x\n] '' = '''", '"""\n[t]\n\\""" = 1\n"""', '""""q"""""',
    "1979-05-27 07:32:00", "true", "[]", "{}",
]  # fmt: skip


class _Writer:
    """Draws a document; remembers where each number stands."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.number = 1000

    def key(self, n: int) -> str:
        return str(self.draw(st.sampled_from([f"k{n}", f'"k {n}.#"', f"'k={n}'", f'k{n} . "[s]"'])))

    def value(self, depth: int) -> str:
        kind = self.draw(
            st.sampled_from(["number", "number", "text", "list", "table"] if depth else ["number", "text"])
        )
        if kind == "number":
            self.number += 1
            return str(self.number)
        if kind == "text":
            return str(self.draw(st.sampled_from(TRICKY)))
        size = self.draw(st.integers(1, 3))
        if kind == "table":
            return "{ " + ", ".join(f"{self.key(n)} = {self.value(depth - 1)}" for n in range(size)) + " }"
        items = [f"{self.draw(BREAK)}{self.value(depth - 1)}{self.draw(BREAK)}" for _ in range(size)]
        return "[" + ",".join(items) + self.draw(st.sampled_from(["", ", "])) + "]"

    def document(self) -> str:
        parts = []
        for t in range(self.draw(st.integers(1, 4))):
            heads = [
                f"[t{t}]",
                f"[t{t}.u]",
                f"[[a{t % 2}]]",
                f"[[ a{t % 2} ]]",
                f"[[b]]\n[b.c{t}]",
                f"[\"t {t}\" . 'x']",
            ]
            if t:
                parts.append(self.draw(st.sampled_from(heads)) + self.draw(SPACE))
            parts += [
                f"{self.key(n)} = {self.value(2)}{self.draw(SPACE)}"
                for n in range(self.draw(st.integers(0, 3)))
            ]
        return "\n".join(parts) + "\n"


@st.composite
def _documents(draw: Any) -> str:
    return _Writer(draw).document()


def _paths(value: Any, keys: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], Any]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return {keys: value} | {k: v for key, inner in items for k, v in _paths(inner, (*keys, key)).items()}


@settings(max_examples=100, deadline=None)
@given(_documents())
def test_lines_of_keys_agree_with_the_parser(text: str) -> None:
    """Every path that tomllib finds has a line and no other has; a number stands on the line of its key or item."""
    found = _paths(tomllib.loads(text))
    lines = key_lines(text)
    assert set(lines) == set(found) - {()}
    for keys, value in found.items():
        if type(value) is int and value > 1000:
            assert lines[keys] == text[: text.index(str(value))].count("\n") + 1
