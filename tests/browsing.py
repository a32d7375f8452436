"""Pages in a real browser that is offline, at the widths of a desk and of a phone.

Needs the package playwright and a Chromium: Playwright's own (`playwright install chromium`), or one on the path.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
DESKTOP, PHONE = 1280, 390
PATIENCE = 100_000  # milliseconds in which any machine starts a browser, or draws
HOSTILE = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"


@contextmanager
def launched() -> Iterator[Any]:
    """The first browser that starts; without one, the tests that need it are skipped."""
    api = pytest.importorskip("playwright.sync_api", reason="no browser test: pip install playwright")
    with api.sync_playwright() as playwright:
        for path in (None, *filter(None, map(shutil.which, BROWSERS))):
            try:
                found = playwright.chromium.launch(executable_path=path, timeout=PATIENCE)
            except api.Error:
                continue
            yield found
            found.close()
            return
        pytest.skip("no browser test: no Chromium here (playwright install chromium, or install chromium)")


def hovers(page: Any, words: str) -> None:
    """Wait until what hovers over the page says the words: the browser tells the page of the mouse when it draws next."""
    page.wait_for_function("words => document.querySelector('#tip').innerText.includes(words)", arg=words)


def scrolled(page: Any, pixels: int) -> None:
    """Turn the mouse wheel, and wait until the page has moved as far as it goes."""
    page.mouse.wheel(0, pixels)
    page.wait_for_function(
        "by => scrollY >= Math.min(by, document.documentElement.scrollHeight - innerHeight) - 1", arg=pixels
    )
    assert page.evaluate("scrollY") > 0


@contextmanager
def opened(browser: Any, folder: Path, html: str, width: int = DESKTOP, **options: Any) -> Iterator[Any]:
    """The page in a browser that is offline; afterwards: no error was logged and nothing was asked for but the file."""
    path = folder / "shown.html"
    path.write_text(html, encoding="utf-8")
    context = browser.new_context(viewport={"width": width, "height": 900}, offline=True, **options)
    context.set_default_timeout(PATIENCE)
    page, said, asked = context.new_page(), [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    try:
        yield page
        assert said == []
        assert asked == [path.as_uri()]
    finally:
        context.close()
