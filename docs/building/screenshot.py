"""The picture of a report in the README: `PYTHONPATH=docs python -m building.screenshot cbdp-demo/release-1/report.html`.

The head of the page and its map of flows, one below the other, in 64 colours. Needs playwright with a Chromium, and pillow.
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

OUT = Path(__file__).parents[1] / "figures" / "report.png"
WIDTH, FLOWS = 1200, 760  # of the page, and how much of its flows is shown


def taken(report: Path) -> Image.Image:
    """Both parts of the page."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(viewport={"width": WIDTH, "height": 1000})
        page.goto(report.absolute().as_uri())
        page.wait_for_selector("#explore")
        parts = [
            _part(page, 0, page.evaluate(TOP, "nav")),
            _part(page, page.evaluate(TOP, "#explore"), FLOWS),
        ]
        browser.close()
    whole = Image.new("RGB", (WIDTH, sum(p.height for p in parts)), "white")
    whole.paste(parts[0], (0, 0))
    whole.paste(parts[1], (0, parts[0].height))
    return whole


TOP = "name => Math.round(document.querySelector(name).getBoundingClientRect().top + scrollY)"


def _part(page: Page, top: float, height: int) -> Image.Image:
    """A strip of the page as wide as it is."""
    clip = {"x": 0, "y": top, "width": WIDTH, "height": height}
    shot = page.screenshot(full_page=True, clip=clip)
    return Image.open(io.BytesIO(shot)).convert("RGB")


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit("give the path of a report.html")
    picture = taken(Path(sys.argv[1])).quantize(64)
    picture.save(OUT, optimize=True)
    print(f"{OUT}: {OUT.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
