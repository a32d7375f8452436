"""What MkDocs calls while it builds: pages from the code, the order of pages, drawings and charts."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "docs")]

from mkdocs.config.defaults import MkDocsConfig  # noqa: E402
from mkdocs.structure.files import File, Files  # noqa: E402
from mkdocs.structure.pages import Page  # noqa: E402

from building import api, bars, commands, configuration, files, glossary, manifest, parts  # noqa: E402

PROJECT = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md", "security": "SECURITY.md"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill the folders of the navigation that are given by their name alone."""
    config.nav = [_filled(item) for item in config.nav or []]
    return config


def _filled(item: Any) -> Any:
    if isinstance(item, str):
        return item
    ((title, value),) = item.items()
    if isinstance(value, list):
        return {title: [_filled(inner) for inner in value]}
    if value == f"{api.FOLDER}/":
        return {
            title: [f"{api.FOLDER}/index.md", *({f"cbdp.{n}": f"{api.FOLDER}/{n}.md"} for n in api.PACKAGES)]
        }
    return {title: listed(value)} if value.endswith("/") else item


def listed(folder: str) -> list[str]:
    """The pages of a folder: its index, what the index links to in that order, then the rest."""
    place = ROOT / "docs" / folder
    index = place / "index.md"
    linked = re.findall(r"\]\(([\w-]+\.md)", index.read_text("utf-8")) if index.is_file() else []
    there = sorted(p.name for p in place.glob("*.md"))
    order = dict.fromkeys([*(n for n in ["index.md", *linked] if n in there), *there])
    return [f"{folder}{name}" for name in order]


def on_files(found: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made from the code."""
    for address, text in made():
        found.append(File.generated(config, address, content=text))
    return found


def made() -> Iterator[tuple[str, str]]:
    """Address and text of every page that no file holds."""
    for maker in (api, commands, configuration, files, manifest, parts):
        yield from maker.pages()
    yield from glossary.pages((ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8"))
    for name, path in PROJECT.items():
        yield f"project/{name}.md", project(ROOT / path)


def project(path: Path) -> str:
    """A page from the top of the tree, with its links as the site has them."""
    text = re.sub(r"\]\(docs/", "](../", path.read_text("utf-8"))
    for name, other in PROJECT.items():
        text = text.replace(f"]({other}", f"]({name}.md")
    return text


def inlined(markdown: str, page: Path) -> str:
    """Drawings stand in the page itself, so that they take the colour of its text."""

    def svg(found: re.Match[str]) -> str:
        text = (page.parent / found.group(2)).read_text("utf-8")
        return f'<figure class="drawn">{" ".join(text.split())}</figure>'

    return re.sub(r"^!\[([^\]]*)\]\(([^)]+\.svg)\)$", svg, markdown, flags=re.MULTILINE)


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Put drawings in, and draw charts of tables."""
    source = page.file.abs_src_path
    return (
        bars.drawn(inlined(markdown, Path(source)), Path(source).parent) if source else bars.drawn(markdown)
    )
