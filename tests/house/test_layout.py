"""What the page of the architecture and the links say of the folders is true."""

from __future__ import annotations

from house.graph import MAY_IMPORT, ROOT
from house.tree import BEGIN, END, PAGE, block, printed, tree


def test_the_page_shows_the_folders_as_they_are() -> None:
    """The layout section equals what `make layout` writes."""
    shown = printed(PAGE.read_text("utf-8"))
    assert shown is not None, f"{PAGE.name} has no layout section: put {BEGIN} and {END} where it belongs"
    assert shown == block(), "the layout section of architecture.md is not up to date: run `make layout`"


def test_the_tree_shows_every_folder_with_a_line_about_it() -> None:
    """In the order that data flows."""
    heads = [line.removeprefix("├── ").split("/ ") for line in tree().splitlines() if line.startswith("├── ")]
    assert {name for name, _ in heads} == set(MAY_IMPORT)
    assert all(about.strip() for _, about in heads)


def test_links_are_relative_and_lead_to_the_real_folders() -> None:
    """`cbdp/features` and `cbdp/solvers` are committed as relative links."""
    for name in ("features", "solvers"):
        link = ROOT / "cbdp" / name
        assert link.is_symlink()
        assert str(link.readlink()) == f"../{name}"
