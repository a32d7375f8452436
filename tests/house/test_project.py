"""What a stranger meets first: one version everywhere, files that say how to cite, report and contribute, tables that are complete."""

from __future__ import annotations

import re
import tomllib

import yaml
from house.graph import ROOT

import cbdp
from cbdp.app.cli import PART_KINDS

NEEDED = {
    "cff-version",
    "message",
    "title",
    "type",
    "authors",
    "version",
    "date-released",
    "license",
    "references",
}


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def sections() -> list[tuple[str, str | None]]:
    """The changelog's versions with their dates, newest first."""
    return re.findall(r"^## \[([^\]]+)\](?: - (\S+))?$", text("CHANGELOG.md"), re.MULTILINE)


def test_the_version_is_the_same_everywhere() -> None:
    """In the package, in the citation and at the head of the changelog, with the same date."""
    citation = yaml.safe_load(text("CITATION.cff"))
    (first, nothing), (version, date), *_ = sections()
    assert (first, nothing) == ("Unreleased", "")
    assert version == cbdp.__version__ == citation["version"]
    assert date == str(citation["date-released"])


def test_the_changelog_has_the_form_that_it_names() -> None:
    """Keep a Changelog: each version has each kind of change at most once, none is empty, and kinds have their usual names."""
    known = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    for part in re.split(r"^## ", text("CHANGELOG.md"), flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.+)$", part, re.MULTILINE)
        assert set(kinds) <= known, part.splitlines()[0]
        assert len(kinds) == len(set(kinds)), part.splitlines()[0]
        for lines in re.split(r"^### .+$", part, flags=re.MULTILINE)[1:]:
            assert lines.strip().startswith("- "), part.splitlines()[0]


def test_the_citation_can_be_read() -> None:
    """It has what the format needs, and every paper names its authors, its year and where it appeared."""
    citation = yaml.safe_load(text("CITATION.cff"))
    assert set(citation) >= NEEDED
    for paper in citation["references"]:
        assert paper["authors"], paper["title"]
        assert paper["year"], paper["title"]
        assert {"collection-title", "journal", "institution", "publisher"} & set(paper), paper["title"]


def test_every_kind_of_part_is_in_the_guide() -> None:
    """Its table, its entry-point group and the file of a test stand in CONTRIBUTING.md; the files are there."""
    guide = text("CONTRIBUTING.md")
    for kind in PART_KINDS.values():
        assert f"`{kind.where.replace(':', '.')}`" in guide
        assert f"`{kind.table().group}`" in guide
    for named in re.findall(r"`((?:tests|examples|docs)/[\w/.-]+\.(?:py|md))`", guide):
        assert (ROOT / named).is_file(), named


def test_metadata_names_no_host_that_does_not_exist() -> None:
    """No address of a project page is stated as long as there is none; types are shipped, and the classifiers say so."""
    project = tomllib.loads(text("pyproject.toml"))["project"]
    assert "urls" not in project
    assert (ROOT / "cbdp" / "py.typed").is_file()
    assert "Typing :: Typed" in project["classifiers"]
    assert project["license"] == yaml.safe_load(text("CITATION.cff"))["license"]


def test_templates_warn_of_private_data() -> None:
    """Whoever opens an issue is told not to paste trips; whoever proposes a change is asked why the promise holds."""
    for name in ("bug.md", "wish.md"):
        assert "Never paste real trips" in text(f".github/ISSUE_TEMPLATE/{name}")
    assert "Why the promise of privacy still holds" in text(".github/pull_request_template.md")
