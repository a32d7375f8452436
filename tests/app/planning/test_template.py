"""Where the lines of a configuration are that the page of `cbdp plan` can change."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from small_city import CONFIG, write_city

from cbdp.config import read
from cbdp.forecast.page import template

TIME = 'time = { start = "06:00", end = "10:00", every = "1h" }'


def made(folder: Path, text: str) -> dict[str, Any] | None:
    write_city(folder)
    (folder / "cbdp.toml").write_text(text)
    return template(read(folder / "cbdp.toml"))


def test_every_key_is_found_with_all_its_lines(tmp_path: Path) -> None:
    """A value may go over several lines, and end with a comment; lines that are replaced change that key and no other."""
    budget = "budget = { total = 0.1, time = 0.2, zone = 0.3, mode = 0.2, singleton = 0.2 }  # by hand"
    many = 'time = [\n  { name = "a", start = "06:00", end = "08:00" },\n  # then\n  { name = "b", start = "08:00", end = "10:00" },\n]'
    text = CONFIG.replace("cap = 2.0", f"cap = 2.0\n{budget}").replace(TIME, many)
    found = made(tmp_path, text)
    assert found is not None
    assert "\n".join(found["lines"]) == text
    for key, (start, end) in found["spans"].items():
        section, name = key.split(".")
        left = tomllib.loads("\n".join(found["lines"][:start] + found["lines"][end:]))
        whole = tomllib.loads(text)
        del whole[section][name]
        assert left == whole, key
    assert found["spans"].keys() == {
        *("data.expected_trips", "universe.time", "universe.zones", "privacy.epsilon", "privacy.budget")
    }
    for section, line in found["heads"].items():
        assert found["lines"][line - 1] == f"[{section}]"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[privacy]\nepsilon = 1.0\n", "[privacy]\nepsilon = 1.0 # \n[privacy.unit]\nperson = 'card'\nmax_trips = 2\n[privacy.nothing]\n"),
        (TIME, "[universe.time]\nstart = '06:00'\nend = '10:00'\nevery = '1h'\n[universe.zones]\ncolumn = 'zone'\n[universe.modes]\ndistance_km = [2, 4]\n"),
    ],
)  # fmt: skip
def test_tables_of_their_own_are_not_edited(old: str, new: str, tmp_path: Path) -> None:
    """Then the page shows the lines to write, and does not touch the file's text."""
    text = CONFIG.replace(old, new)
    if "[universe.zones]" in new:
        text = text.replace('zones = { column = "zone" }\nmodes = { distance_km = [2, 4] }\n', "")
        assert made(tmp_path, text) is None
        return
    text = text.replace("[privacy.nothing]\n", "").replace('ledger = "ledger.sqlite"\ncap = 2.0\n', "")
    assert made(tmp_path, text) is None


def test_dotted_keys_are_not_edited(tmp_path: Path) -> None:
    """`privacy.epsilon = 1` at the top has no section to write into."""
    text = CONFIG.replace('[privacy]\nepsilon = 1.0\nledger = "ledger.sqlite"\ncap = 2.0\n', "")
    assert made(tmp_path, "privacy.epsilon = 1.0\n" + text) is None


def test_a_login_stays_out_of_the_page(tmp_path: Path) -> None:
    """A configuration with a password in it is not handed out; without one, a database's address may be."""
    for address, kept in (
        ("postgresql://me:secret@host/db::trips", False),
        ("postgresql://host/db::trips", True),
    ):
        found = made(tmp_path, CONFIG.replace('"trips.parquet"', f'"{address}"'))
        assert (found is not None) is kept
