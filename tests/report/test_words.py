"""The words of a report are those that a city officer with school English knows, or that its glossary explains."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from released import release_of
from reported import Page
from spoken_about import FULL

from cbdp.report import build
from cbdp.report.page import GLOSSARY_TERMS

# sayings and shorthand that readers of earlier reports did not understand
STRANGE = (
    *(
        "holds it for",
        "as likely as not",
        "half width",
        "added ends",
        "Beside its",
        "noisy answer",
        "laid open",
    ),
    *("leaf", "leaves", "perturbed", "element", "finer table", "atom"),
)
TERMS = ("interval", "noise scale", "trip type", "odds", "unit of protection", "estimate", "published count")


@pytest.fixture(scope="module")
def text() -> str:
    """Every word of a report, less the manifest, which is for programs."""
    release = replace(release_of("constraint-based"), about=FULL)
    return " ".join(Page(build(release, manifest={})).text.split())


def test_no_strange_words(text: str) -> None:
    """None of the sayings, in any place of the page."""
    assert not [saying for saying in STRANGE if re.search(rf"\b{saying}\b", text)]


def test_terms_are_in_the_glossary(text: str) -> None:
    """The terms of the trade that the page uses are explained on it."""
    before = text.partition("Differential privacyA property")[0].lower()
    explained = " ".join(GLOSSARY_TERMS).lower()
    used = [term for term in TERMS if term in before]
    assert len(used) >= 5
    assert not [term for term in used if term not in explained]


def test_sentences_of_the_glossary_are_short() -> None:
    """At most 40 words between two stops."""
    lengths = {t: max(len(s.split()) for s in re.split(r"[.:;]", m)) for t, m in GLOSSARY_TERMS.items()}
    assert max(lengths.values()) <= 40, lengths
