"""The how-to pages do what they say, as far as no server is needed."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_running import run_page

PAGES = Path(__file__).parents[2] / "docs" / "how-to"
HOW_TO = sorted(page for page in PAGES.glob("*.md") if page.name != "index.md")


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_what_a_how_to_page_shows_is_what_comes(page: Path, tmp_path: Path) -> None:
    """Commands succeed, and outputs agree wherever they do not depend on noise."""
    for said in run_page(page, tmp_path):
        where = f"{page.name}, line {said.line}: {said.step}"
        assert said.code == said.wanted, f"{where}\nexit code {said.code}\n{said.said}"
        assert said.right, f"{where}\n--- shown\n{said.shown}\n--- but it says\n{said.said}"


def test_the_index_names_every_page() -> None:
    """Nobody has to know the folder."""
    text = (PAGES / "index.md").read_text("utf-8")
    assert [page.name for page in HOW_TO if f"]({page.name})" not in text] == []
