"""The site as `make docs` builds it, once for all processes that test it."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
RESOURCES = {
    "img": "src",
    "script": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "object": "data",
}


class Parsed(HTMLParser):
    """What a page names, links to and loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.resources: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if given.get(RESOURCES.get(tag, "-")):
            self.resources.append(given[RESOURCES[tag]])


class Site:
    """A built site, its pages parsed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pages = {p: Parsed(p.read_text("utf-8")) for p in sorted(folder.rglob("*.html"))}

    def page(self, address: str) -> Parsed:
        return self.pages[self.folder / address]

    def leads_nowhere(self, page: Path, link: str) -> bool:
        """Whether a link inside the site has no file, or no place in it."""
        path, _, place = link.partition("#")
        target = (page.parent / unquote(path)).resolve() if path else page
        if not target.is_file():
            return True
        return bool(place) and target in self.pages and unquote(place) not in self.pages[target].ids


def build(folder: Path) -> None:
    """Strictly: a warning is an error."""
    made = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, worker: str) -> Site:
    """Built by the first process that asks; the others wait for it."""
    pytest.importorskip("mkdocs", reason="no test of the site: pip install cbdp[docs]")
    base = tmp_path_factory.getbasetemp()
    shared = base if worker == "master" else base.parent
    folder = shared / "site"
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            build(folder)
            (folder / "done").touch()
    return Site(folder)


@pytest.fixture(scope="session")
def worker() -> str:
    """This process among those that test at once."""
    return os.environ.get("PYTEST_XDIST_WORKER", "master")
