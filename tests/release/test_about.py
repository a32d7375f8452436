"""What the publisher says about a release: lines of text that every format can hold, in words and in files."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from released import jsonschema, release_of
from spoken_about import FULL

from cbdp.errors import InputError
from cbdp.release import About, Dates
from cbdp.release.about import MAX_LINE_CHARACTERS, about_from
from cbdp.release.files import load
from cbdp.release.manifest import manifest_schema


@pytest.mark.parametrize("name", [f.name for f in fields(About)])
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("", "give a line of text"),
        ("  ", "give a line of text"),
        (7, "is 7: give a line of text"),
        ("x" * (MAX_LINE_CHARACTERS + 1), "has 201 characters, at most 200 are allowed: shorten it"),
        ("two\nlines", r"contains the character '\\n'"),
        ("tab\there", "contains the character"),
        ("bell\x07", r"contains the character '\\x07'"),
        ("c1\x85", "contains the character"),
        ("half\ud800", "contains the character"),
        ("line\u2028separator", "contains the character"),
        ("no character\uffff", "contains the character"),
        ("exe\u202egpj", r"contains the character '\\u202e'"),
    ],
)
def test_what_is_no_line_of_text_is_refused(name: str, value: Any, said: str) -> None:
    """The error names the line, what is wrong with it, and the cure."""
    with pytest.raises(InputError, match=f"about.{name} .*{said}"):
        About(**{name: value})


def test_lines_of_any_language_are_taken() -> None:
    """Up to the very length."""
    for text in ("x" * MAX_LINE_CHARACTERS, "ä ö ü ß", "東京メトロ", "می‌خواهم", "🚌 👩‍👩‍👧"):
        assert About(title=text).title == text


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        ("2026-03-02", "2026-03-02", "2 March 2026"),
        ("2026-03-02", "2026-03-08", "2–8 March 2026"),
        ("2026-03-01", "2026-03-31", "March 2026"),
        ("2026-03-01", "2026-03-30", "1–30 March 2026"),
        ("2024-02-01", "2024-02-29", "February 2024"),
        ("2026-03-30", "2026-04-05", "30 March – 5 April 2026"),
        ("2026-01-01", "2026-03-31", "January – March 2026"),
        ("2026-01-01", "2026-12-31", "2026"),
        ("2025-12-01", "2026-02-28", "1 December 2025 – 28 February 2026"),
        ("9999-12-01", "9999-12-31", "December 9999"),
    ],
)
def test_periods_are_written_as_people_write_them(first: str, last: str, words: str) -> None:
    """Whole months and years by their names, others by their days."""
    assert str(Dates(dt.date.fromisoformat(first), dt.date.fromisoformat(last))) == words


def test_a_period_does_not_end_before_it_begins() -> None:
    """The error has both days."""
    with pytest.raises(
        InputError, match="the last day, 2026-03-01, is before the first, 2026-03-02: swap them"
    ):
        Dates(dt.date(2026, 3, 2), dt.date(2026, 3, 1))


LINES = st.text(
    st.characters(blacklist_categories=["Cc", "Cs", "Zl", "Zp", "Cf", "Cn"]), min_size=1, max_size=40
)
LINES = LINES.filter(lambda text: bool(text.strip()))
PERIODS = st.tuples(st.dates(), st.dates()).map(lambda pair: Dates(*sorted(pair)))


@given(st.builds(About, **{f.name: st.none() | LINES for f in fields(About)}), st.none() | LINES | PERIODS)
def test_anything_said_comes_back_from_json(about: About, period: Any) -> None:
    """What is not given is left out, and nothing is changed."""
    about = replace(about, period=period)
    stated = json.loads(json.dumps(about.json()))
    assert about_from(stated) == about
    assert set(stated) == {f.name for f in fields(About) if getattr(about, f.name) is not None}
    assert all(isinstance(text, str) for text in about.texts().values())
    definition = {"$defs": manifest_schema()["$defs"], "$ref": "#/$defs/about"}
    jsonschema.Draft202012Validator(definition).validate(stated)


def test_it_is_part_of_the_release(tmp_path: Path) -> None:
    """In the manifest, and in what is loaded; a release without it says null, and no other key is taken."""
    release = replace(release_of("laplace"), about=FULL)
    saved = release.save(tmp_path / "out")
    assert saved.manifest["about"] == {
        "title": "Trips -- all of them",
        "place": "Zürich & <around>",
        "period": {"first": "2026-03-01", "last": "2026-03-31"},
        "publisher": "Transit “Authority”",
        "licence": "CC BY 4.0",
        "contact": "data@example.org",
        "timezone": "Europe/Zurich",
    }
    assert load(tmp_path / "out").about == FULL
    assert release_of("laplace").manifest["about"] is None
    manifest = saved.path / "manifest.json"
    stated = json.loads(manifest.read_text("utf-8"))
    for wrong in (
        {"colour": "red"},
        {"title": ""},
        {"title": "x" * 201},
        {"period": {"first": "2026-03-01"}},
    ):
        manifest.write_text(json.dumps(stated | {"about": wrong}), "utf-8")
        with pytest.raises(InputError, match="schema at about"):
            load(saved.path)
    manifest.write_text(json.dumps(stated | {"about": {"title": "two\nlines"}}), "utf-8")
    with pytest.raises(InputError, match=r"damaged: about\.title contains"):
        load(saved.path)
