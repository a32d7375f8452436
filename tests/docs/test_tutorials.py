"""The tutorials do what they say: every block is run, in order, in an empty folder, and what is shown is what comes."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_running import blocks, run_page

PAGES = Path(__file__).parents[2] / "docs" / "tutorials"
TUTORIALS = sorted(page for page in PAGES.glob("*.md") if page.name != "index.md")


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_what_a_tutorial_shows_is_what_comes(page: Path, tmp_path: Path) -> None:
    """Commands succeed, and outputs agree wherever they do not depend on noise."""
    for said in run_page(page, tmp_path):
        where = f"{page.name}, line {said.line}: {said.step}"
        assert said.code == said.wanted, f"{where}\nexit code {said.code}\n{said.said}"
        assert said.right, f"{where}\n--- shown\n{said.shown}\n--- but it says\n{said.said}"


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_is_complete(page: Path) -> None:
    """Each says what one will have, what it means and where to go on, and shows at least three steps."""
    text = page.read_text("utf-8")
    for heading in ("**You will have**", "## What it means", "## Where next"):
        assert heading in text, f"{page.name} has no {heading!r}"
    assert sum(b.run and b.kind in ("console", "python") for b in blocks(text)) >= 3


def test_the_index_names_every_tutorial() -> None:
    """Nobody has to know the folder."""
    text = (PAGES / "index.md").read_text("utf-8")
    assert [page.name for page in TUTORIALS if f"]({page.name})" not in text] == []
