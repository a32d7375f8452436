"""The reviewer's page: every finding is on it, in a browser, offline, at every width and in both colour schemes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from browsing import DESKTOP, HOSTILE, PHONE, opened, scrolled

import cbdp
from cbdp.app import cli
from cbdp.audit import Audit, Finding, build
from cbdp.text import INTERNAL_WARNING

BEHIND = """e => { while (getComputedStyle(e).backgroundColor === 'rgba(0, 0, 0, 0)') e = e.parentElement;
                   return getComputedStyle(e).backgroundColor; }"""


def made(sensitive: bool = False) -> Audit:
    """An audit with findings of each kind, long words and large numbers."""
    long = "features/" + "north_to_south_by_quarter_hour_" * 4 + ".parquet"
    return Audit(
        "release",
        (
            Finding("tables", "contradicts", f"{long}: count of A · B is wrong", "5 and 6.", "An attack.", "A cure.", {"rows": 2}),
            Finding("ledger", "contradicts", "The manifest is another", f"Its SHA-256 is {'0a' * 32}.", "An attack.", "A cure."),
            Finding("detection", "weakness", "Zeros are skipped", "One rider: 2e-6.", "An attack.", "A cure.",
                    {"delta": 1.9e-6, "odds": float("inf"), "group": "12", "change": -3}),
            Finding("files", "clear", "Every file has its hash", "11 files.", power="One byte."),
            Finding("membership", "clear", "Riders cannot be told apart", "Advantage 0.113.", power="An advantage of 0.53."),
        ),
        sensitive,
        "constraint-based, ε-DP for one trip, added or removed: 5 features × 1/5, same data: 1",
        ("No ledger was given.",),
    )  # fmt: skip


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_finding_is_shown(browser, tmp_path, width, scheme):
    """Titles, evidence, attacks, cures and what was left out are in sight; the page is no wider than the screen."""
    done = made()
    with opened(browser, tmp_path, build(done), width, color_scheme=scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        words = page.inner_text("body")
        for f in done.findings:
            assert f.title in words
            assert f.evidence in words
            assert f.power in words
        assert words.count("An attack.") == words.count("A cure.") == 3
        assert page.locator("#contradictions article").count() == 2
        assert page.locator("#weaknesses article").count() == 1
        assert page.locator("#clear tbody tr").count() == 2
        assert "No ledger was given." in page.inner_text("#left-out")
        assert page.inner_text("#verdict").startswith("✕")
        assert page.locator("#verdict").bounding_box()["y"] < 300
        assert INTERNAL_WARNING not in words


@pytest.mark.slow
def test_the_verdict_on_top_is_the_gravest(browser, tmp_path):
    """Contradiction, weakness or nothing: the sign and the words follow the findings, and empty sections are left out."""
    done = made()
    for drop, sign, sections in (
        (set(), "✕", 4),
        ({"contradicts"}, "!", 3),
        ({"contradicts", "weakness"}, "✓", 2),
    ):
        left = Audit("x", tuple(f for f in done.findings if f.verdict not in drop), left_out=done.left_out)
        with opened(browser, tmp_path, build(left)) as page:
            assert page.inner_text("#verdict").startswith(sign)
            assert page.locator("main section").count() == sections
            assert page.locator("nav a").count() == sections


def test_figures_unfold(browser, tmp_path):
    """Small, infinite, negative and worded figures are readable once they are asked for."""
    with opened(browser, tmp_path, build(made())) as page:
        page.click("#weakness-0 summary")
        cells = page.eval_on_selector_all("#weakness-0 tbody td", "c => c.map(e => e.textContent)")
        assert cells == ["1.90e-06", "inf", "12", "−3"]


def test_what_is_sensitive_says_so(browser, tmp_path):
    """The banner is red, stays in sight on scrolling, and stands in the title and at the end too."""
    with opened(browser, tmp_path, build(made(sensitive=True)), PHONE) as page:
        scrolled(page, 4000)
        assert page.locator(".internal").bounding_box()["y"] <= 1
        assert page.inner_text(".internal") == INTERNAL_WARNING == page.inner_text("footer")
        assert page.title().startswith("INTERNAL")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE


def test_hostile_names_stay_words(browser, tmp_path):
    """Markup in names of files, stops and folders is shown and not run."""
    hostile = Finding("tables", "contradicts", HOSTILE, HOSTILE, HOSTILE, HOSTILE, {HOSTILE: HOSTILE})
    with opened(
        browser, tmp_path, build(Audit(HOSTILE, (hostile,), claim=HOSTILE, left_out=(HOSTILE,)))
    ) as page:
        assert page.evaluate("window.hacked") is None
        assert page.locator("img").count() == 0
        assert page.inner_text("body").count(HOSTILE) >= 6


def _light(colour: str) -> float:
    parts = [int(c) / 255 for c in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read(browser, tmp_path, scheme):
    """Text stands out from what is behind it by at least 4.5 to 1 (WCAG AA), in both colour schemes."""
    with opened(browser, tmp_path, build(made(sensitive=True)), color_scheme=scheme) as page:
        for words in ("h1", "#verdict .pill", ".pill.fair", ".facts dt", ".facts dd", ".muted", "#clear td", ".internal p", "nav a"):  # fmt: skip
            one = page.locator(words).first
            front, back = _light(one.evaluate("e => getComputedStyle(e).color")), _light(one.evaluate(BEHIND))
            assert (max(front, back) + 0.05) / (min(front, back) + 0.05) >= 4.5, words


def test_the_command_writes_the_page(browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """`--out` writes what `build` makes of the audit, beside nothing else, and the page opens."""
    universe = cbdp.Universe(origin=["A", "B"], destination=["A", "B"], time=["am", "pm"])
    dag = cbdp.FeatureDag(universe, [cbdp.Feature("time", by="time")])
    cbdp.ConstraintBased(dag, 1).release(np.arange(8)).save(tmp_path / "release")
    before = sorted((tmp_path / "release").rglob("*"))
    assert cli.main(["audit", str(tmp_path / "release"), "--out", str(tmp_path / "page.html")]) == 0
    assert "open " in capsys.readouterr().out
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert html == build(cbdp.audit_release(tmp_path / "release"))
    assert sorted((tmp_path / "release").rglob("*")) == before
    with opened(browser, tmp_path, html, PHONE) as page:
        assert page.inner_text("#verdict").startswith("✓")
