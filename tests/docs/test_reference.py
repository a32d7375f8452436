"""Reference pages hold everything: every public name, configuration key, command, option, file, column, part and word."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from pathlib import Path

import pytest
from building import api, commands, configuration, manifest, parts
from building import files as released

import cbdp
from cbdp.app.cli import PART_KINDS, program
from cbdp.config import parse
from cbdp.config.values import TomlFile, Where
from cbdp.release.layout import NUMBER_COLUMNS
from cbdp.release.manifest import manifest_schema
from cbdp.report.page import GLOSSARY_TERMS

pytestmark = pytest.mark.timeout(900)  # the first to ask builds the site, the others wait for it


def test_every_public_name_is_on_a_page(site) -> None:
    """What `__all__` of the package and of its folders lists has a place of its own."""
    front = site.page("reference/api/index.html").ids
    assert not [n for n in cbdp.__all__ if f"cbdp.{n}" not in front]
    for package in api.PACKAGES:
        ids = site.page(f"reference/api/{package}.html").ids
        wanted = [f"{inner}.{n}" for inner, listed in api.public(f"cbdp.{package}").items() for n in listed]
        assert wanted or package in {"app", "privacy"}
        assert not [name for name in wanted if name not in ids], package


def test_every_folder_that_cbdp_offers_has_a_page() -> None:
    """`dir(cbdp)` lists names and folders; all folders are on pages."""
    assert set(dir(cbdp)) - set(cbdp.__all__) == set(api.PACKAGES)


def test_every_configuration_key_is_on_the_page(site) -> None:
    """With a place of its own, by the name under which it is written."""
    ids = site.page("reference/configuration.html").ids
    wanted = configuration.every()
    assert len(wanted) > 80
    assert not [name for name in wanted if name not in ids]


def test_the_whole_configuration_on_the_page_can_be_read() -> None:
    """It is short, and complete."""
    text = configuration.HEAD.partition("```toml\n")[2].partition("```")[0]
    found = parse(text)
    assert found.data.id == "city buses 2026-03"
    assert set(configuration.MORE) <= set(configuration.every())


KEYS = list(configuration.every().values())


@pytest.mark.parametrize("key", KEYS, ids=[k.name for k in KEYS])
def test_the_example_of_a_key_holds_it_and_can_be_read(key) -> None:
    """By the very tables that the program reads configurations with."""
    text = configuration.example(key)
    found = tomllib.loads(text, parse_float=Decimal)
    held = held_at(found, [k for k in key.path if k != "*"], star="*" in key.path)
    assert held, f"{key.name} is not in its example:\n{text}"
    for value in held:
        key.kind.read(value, Where(TomlFile(Path("example.toml"), {}), key.path))


def held_at(value, path: list[str], star: bool) -> list:
    """The values at a path, in every item of a list, and under every name where names are the user's."""
    if not path:
        return [value]
    if isinstance(value, list):
        return [v for item in value for v in held_at(item, path, star)]
    if not isinstance(value, dict):
        return []
    if path[0] in value:
        return held_at(value[path[0]], path[1:], star)
    return [v for item in value.values() if star for v in held_at(item, path, star=False)]


def test_every_command_and_option_is_on_the_page() -> None:
    """As the commands have them, those of commands inside commands too."""
    text = commands.page()
    pending = [(f"cbdp {name}", command) for name, command in program.commands.items()]
    assert len(pending) > 10
    while pending:
        path, command = pending.pop()
        assert f"`{path}` {{ #" in text
        flags = [
            flag for p in command.params for flag in (*p.opts, *p.secondary_opts) if flag.startswith("-")
        ]
        section = text.partition(f"`{path}` {{ #")[2].partition("\n#")[0]
        assert not [flag for flag in flags if f"`{flag}" not in section], path
        pending += [(f"{path} {name}", each) for name, each in commands.inner(command).items()]


def test_every_manifest_key_has_a_meaning() -> None:
    """And no meaning is of a key that is gone."""
    assert set(manifest.MEANING) == set(manifest_schema()["properties"])


def test_every_part_and_word_is_on_a_page(site) -> None:
    """All kinds of parts with all of ours; all words that reports explain."""
    text = parts.page()
    for kind in PART_KINDS.values():
        assert not [name for name in kind.table().table if f"| `{name}` |" not in text]
    glossary = (site.folder / "reference" / "glossary.html").read_text("utf-8")
    assert not [term for term in GLOSSARY_TERMS if f"<dt>{term}</dt>" not in glossary]


def test_a_file_or_column_without_a_line_stops_the_build(tmp_path) -> None:
    """Whoever adds one to a release is told where to describe it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pytest.raises(LookupError, match=r"surprise\.bin.*add a line"):
        released.described("surprise.bin")
    pq.write_table(pa.table({"origin": ["A"], "surprise": [1]}), tmp_path / "t.parquet")
    told = {"schema": {"fields": [{"name": "origin", "type": "string", "description": "Where it began."}]}}
    with pytest.raises(LookupError, match=r"surprise.*describe it there"):
        released.columns_of(tmp_path / "t.parquet", told)


def test_the_page_of_files_lists_what_a_release_has(site) -> None:
    """The files that everybody gets, and the columns of a table."""
    text = (site.folder / "reference" / "files.html").read_text("utf-8")
    columns = (*NUMBER_COLUMNS, "weight", "id", "name", "lat", "lon", "zone")
    for name in ("trips.parquet", "manifest.json", "report.html", "features/&lt;name&gt;.parquet", *columns):
        assert f"<code>{name}</code>" in text, name
