"""What the page of the architecture and the links say of the folders is true."""

from __future__ import annotations

import subprocess
from importlib import import_module

import pytest
from house.graph import MAY_IMPORT, PACKAGES, ROOT
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


def test_no_file_of_the_tree_is_a_link() -> None:
    """A checkout without symbolic links (Windows, a downloaded archive) is the whole tree."""
    listed = subprocess.run(["git", "ls-files", "-s"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("no git checkout")
    assert [line for line in listed.stdout.splitlines() if line.startswith("120000")] == []


def test_what_the_top_folders_hold_is_re_exported_whole() -> None:
    """`cbdp.features` and `cbdp.solvers` have every public name of the packages in features/ and solvers/."""
    for package, name in PACKAGES.items():
        ours, theirs = import_module(package), import_module(name)
        assert list(theirs.__all__) == list(ours.__all__)
        assert all(getattr(theirs, n) is getattr(ours, n) for n in ours.__all__)
