"""The site builds without a warning, opens offline, and none of its links is dead."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browsing import DESKTOP, PATIENCE, PHONE

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(900)  # the first to ask builds the site, the others wait for it


def elsewhere(address: str) -> bool:
    return bool(urlsplit(address).netloc) or address.startswith("//")


def test_no_page_loads_anything_from_elsewhere(site) -> None:
    """Scripts, styles, pictures and fonts are in the folder."""
    found = {r for page in site.pages.values() for r in page.resources if elsewhere(r)}
    assert not found
    styles = "".join(p.read_text("utf-8") for p in site.folder.rglob("*.css"))
    assert not re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", styles)


def test_every_resource_is_there(site) -> None:
    """What a page loads exists."""
    missing = [
        f"{page.relative_to(site.folder)}: {r}"
        for page, parsed in site.pages.items()
        if page.name != "404.html"  # its addresses are from the root of a host
        for r in parsed.resources
        if not r.startswith("data:") and not (page.parent / r.partition("?")[0]).is_file()
    ]
    assert not missing


def test_no_link_is_dead(site) -> None:
    """Every link inside the site has its file, and its place in it."""
    dead = [
        f"{page.relative_to(site.folder)}: {link}"
        for page, parsed in site.pages.items()
        if page.name != "404.html"
        for link in parsed.links
        if not urlsplit(link).scheme and site.leads_nowhere(page, link)
    ]
    assert not dead, "\n".join(dead)


def test_dead_links_are_found(site) -> None:
    """The check itself: a missing page, a missing place, a place that is there."""
    page = site.folder / "reference" / "configuration.html"
    assert site.leads_nowhere(page, "nonsense.html")
    assert site.leads_nowhere(page, "#nonsense")
    assert not site.leads_nowhere(page, "#privacy.epsilon")


def test_nothing_of_the_workshop_is_published(site) -> None:
    """Neither the code that builds the site nor a path of this machine."""
    assert not list(site.folder.rglob("*.py"))
    assert not [p for p in site.pages if str(ROOT) in p.read_text("utf-8")]


def test_search_works_from_a_file_without_a_network(site, browser) -> None:
    """Type a word, get the page; nothing is asked for but files; on a desk and on a phone nothing runs off the side."""
    asked, wrong = [], []
    for width, scheme in ((DESKTOP, "light"), (PHONE, "dark")):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, offline=True, color_scheme=scheme
        )
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto((site.folder / "explanation" / "how-it-works.html").as_uri())
        shown = {"light": "default", "dark": "slate"}[scheme]
        assert page.evaluate("document.body.dataset.mdColorScheme") == shown
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if width == DESKTOP:
            page.click("[data-md-component=search-query]")
            page.keyboard.type("max_trips")
            page.wait_for_selector(".md-search-result__link")
            assert "html" in page.get_attribute(".md-search-result__link", "href")
        context.close()
    assert not wrong
    assert {urlsplit(address).scheme for address in asked} <= {"file", "data", "about", "blob"}
