"""What stands in Markdown: links between files, the README, and how result pages open."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from building.hooks import PROJECT, listed

ROOT = Path(__file__).parents[2]
TOP = ["README.md", *PROJECT.values()]
RESULTS = sorted((ROOT / "docs" / "results").glob("*.md"))
LINK = re.compile(r"\]\(([^)\s]+)\)")


def places(text: str) -> set[str]:
    """The places of a page that a link can lead to, as code hosts name them."""
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads]
    return {*plain, *re.findall(r"\{ #([\w.-]+) \}", text)}


@pytest.mark.parametrize("name", TOP)
def test_links_at_the_top_of_the_tree_lead_somewhere(name: str) -> None:
    """To a file that is there, and to a place in it."""
    dead = []
    for link in LINK.findall((ROOT / name).read_text("utf-8")):
        path, _, place = link.partition("#")
        target = ROOT / (path or name)
        if link.startswith(("http:", "https:", "mailto:")):
            continue
        if not target.exists() or (place and place not in places(target.read_text("utf-8"))):
            dead.append(link)
    assert not dead


def test_paths_of_pages_in_the_code_are_right() -> None:
    """Modules, messages and commands name pages by their path."""
    folders = ("cbdp", "features", "solvers", "benchmarks", "tests")
    files = {p.resolve() for folder in folders for p in (ROOT / folder).rglob("*.py")} - {Path(__file__)}
    dead = {
        f"{file.relative_to(ROOT)}: {named}"
        for file in files
        for named in re.findall(r"docs/[\w/-]+\.(?:md|csv|png|svg)", file.read_text("utf-8"))
        if not (ROOT / named).exists()
    }
    assert not dead


def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    """Five lines after the import, in a process of their own, as a reader would run them."""
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    lines = [line for line in code.splitlines() if line.strip() and not line.startswith("import")]
    assert len(lines) == 5
    made = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    assert "ε-DP for one trip" in made.stdout
    assert "origin.zone" in made.stdout
    assert not list(tmp_path.iterdir())


def test_the_readme_is_short_and_shows_a_report() -> None:
    """About 120 lines, two commands, and a picture that loads at once."""
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 130
    assert "make demo" in text
    assert "make test" in text
    picture = ROOT / "docs" / "figures" / "report.png"
    assert f"({picture.relative_to(ROOT)})" in text
    assert picture.stat().st_size < 200_000


@pytest.mark.parametrize("page", [p for p in RESULTS if p.stem != "index"], ids=lambda p: p.stem)
def test_a_result_page_opens_with_a_figure_and_three_sentences(page: Path) -> None:
    """Before its first table and its second heading."""
    _, _, text = page.read_text("utf-8").partition("\n")
    opening = re.split(r"^(?:\||#)", text, maxsplit=1, flags=re.MULTILINE)[0]
    figure = re.search(r"^(?:!\[.*\]\(.*\)|<!-- bars: .* -->)$", opening, re.MULTILINE)
    assert figure
    said = re.sub(r"^\*.*\*$", "", opening[figure.end() :], flags=re.MULTILINE).strip().partition("\n\n")[0]
    assert len(re.findall(r"[.!?](?:\s|$)", said)) >= 3, said


def test_folders_of_the_navigation_follow_their_index() -> None:
    """Tutorials and guides come in the order in which their index links them, and none is left out."""
    for folder in ("tutorials/", "how-to/"):
        pages = listed(folder)
        assert pages[0] == f"{folder}index.md"
        index = (ROOT / "docs" / pages[0]).read_text("utf-8")
        assert all(Path(p).name in index for p in pages[1:])
        assert {Path(p).name for p in pages} == {p.name for p in (ROOT / "docs" / folder).glob("*.md")}
