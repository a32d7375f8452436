"""What leaves the program: names are shown as data, and passwords not at all, on screens, pages, in files and in errors."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from exported import city_release
from hypothesis import given
from hypothesis import strategies as st
from released import release_of
from small_city import CONFIG, write_city

import cbdp
from cbdp.app.cli import main
from cbdp.errors import InputError
from cbdp.mechanisms import ConstraintBased
from cbdp.release.about import About
from cbdp.release.export import export
from cbdp.text import (
    from_spreadsheet_cell,
    markdown_code,
    markdown_text,
    masked,
    message,
    printable,
    spreadsheet_cell,
)

ESCAPE, TURN = "\x1b", "\u202e"  # a terminal obeys the first; the second turns the order of reading around
NAMES = (f"{ESCAPE}[31mred", f"{TURN}gnp", "=1+1", "<img src=x onerror=alert(1)>")
SECRET = "hunter22"  # noqa: S105 - it is to be looked for


def _release(folder: Path) -> Path:
    stops = cbdp.Dimension(NAMES, zone=["@n", "-n", "+s", "|s`"])
    universe = cbdp.Universe(origin=stops, destination=stops).without_equal("origin", "destination")
    dag = cbdp.FeatureDag(
        universe, [cbdp.Feature(f"by {ESCAPE}[2Jzone", by=["origin.zone", "destination.zone"])]
    )
    trips = {"origin": [NAMES[0]] * 50 + [NAMES[2]] * 40, "destination": [NAMES[1]] * 50 + [NAMES[3]] * 40}
    return ConstraintBased(dag, epsilon=8).release(trips).save(folder).path


@pytest.mark.parametrize("arguments", [["ask", "--by", "origin"], ["audit"]])
def test_names_do_not_command_the_terminal(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stops, tables and folders with escape sequences are printed as what they are."""
    folder = _release(tmp_path / f"out{ESCAPE}[31m")
    main([arguments[0], str(folder), *arguments[1:]])
    main(["ask", str(folder / "missing")])
    main(["ask", str(folder), "--where", f"origin={ESCAPE}[0m"])
    shown = capsys.readouterr()
    assert "\\u001b[31m" in shown.out + shown.err
    assert ESCAPE not in shown.out + shown.err
    assert TURN not in shown.out + shown.err


def test_errors_in_python_are_printable_too() -> None:
    """A traceback or a log of somebody's program shows the text of our errors."""
    error = InputError(f"no stop {ESCAPE}[2J in postgres://me:{SECRET}@host/city")
    assert str(error) == "no stop \\u001b[2J in postgres://me:***@host/city"


def test_usage_errors_and_faults_are_printable_too(tmp_path: Path) -> None:
    """What a refusal repeats, and the traceback of a fault."""
    done = subprocess.run(
        [sys.executable, "-m", "cbdp", "ask", "x", f"--nonsense{ESCAPE}[31m", f"--password={SECRET}"],
        cwd=tmp_path, capture_output=True, text=True, check=False, env=_environment(),
    )  # fmt: skip
    assert done.returncode == 2
    assert "\\u001b[31m" in done.stderr
    assert ESCAPE not in done.stderr
    assert SECRET not in done.stderr
    broken = f"import sys; from cbdp.app import cli; from cbdp.commands import program; program._main = lambda *_: 1 / 0 if '{SECRET}' else 0; sys.argv = ['cbdp']; cli.main()"
    script = broken.replace("1 / 0", f"int('postgres://me:{SECRET}@host')").replace(f"'{SECRET}'", "1")
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=_environment()
    )
    assert "ValueError" in done.stderr
    assert SECRET not in done.stderr


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(Path(cbdp.__file__).parents[1])}


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)


def test_pages_and_readmes_show_names_as_text(tmp_path: Path) -> None:
    """No markup, no escape and no turned text reaches report.html, README.md, deployment.yaml or a notebook."""
    folder = _release(tmp_path / "out")
    release = cbdp.load(folder)
    main(["report", str(folder), "--out", str(tmp_path / "report.html")])
    report = (tmp_path / "report.html").read_text("utf-8")
    notebook = release._repr_html_() + release.table("singleton")._repr_html_()
    for page in (report, notebook):
        assert "img" not in _Page(page).tags
        assert ESCAPE not in page
        assert TURN not in page
    for name in ("README.md", "deployment.yaml"):
        text = (folder / name).read_text("utf-8")
        assert ESCAPE not in text
        assert TURN not in text
    for shown in (repr(release), repr(release.table("singleton"))):
        assert ESCAPE not in shown


def test_markdown_shows_text_as_it_is() -> None:
    """What a reader of CommonMark makes of it is the text again, on one line."""
    markdown = pytest.importorskip("markdown_it")
    for text in (
        "- a",
        "1. b",
        "# c",
        "<b>d</b>",
        "&lt;",
        "[e](http://x)",
        "![f](g)",
        "~~h~~",
        "a\n\n# i",
        "=== j",
        "`k`",
        "+ l",
        "---",
        "\\*",
    ):
        made = markdown.MarkdownIt("gfm-like", {"linkify": False}).parse(markdown_text(text))
        assert [t.type for t in made] == ["paragraph_open", "inline", "paragraph_close"], text
        inside = made[1].children
        assert {t.type for t in inside} == {"text"} | ({"text_special"} & {t.type for t in inside}), text
        assert "".join(t.content for t in inside) == printable(text).strip(), text
    (span,) = markdown.MarkdownIt().parse(markdown_code("a``b"))[1].children
    assert (span.type, span.content) == ("code_inline", "a``b")


def test_cells_that_a_spreadsheet_computes_are_guarded(tmp_path: Path) -> None:
    """In every CSV file that is written, and in what `ask` writes; numbers, also negative ones, are numbers."""
    stops = ("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)")
    release, _ = city_release(stops)
    export(release, tmp_path / "out", "csv")
    folder = _release(tmp_path / "release")
    assert main(["ask", str(folder), "--by", "origin,origin.zone", "--csv", str(tmp_path / "asked.csv")]) == 0
    printed = (tmp_path / "asked.csv").read_text("utf-8")
    files = [path.read_text("utf-8") for path in (tmp_path / "out").rglob("*.csv")]
    cells = [cell for text in (*files, printed) for row in csv.reader(io.StringIO(text)) for cell in row]
    computed = [c for c in cells if c[:1] in ("=", "+", "-", "@") and not _is_number(c)]
    assert computed == []
    assert {from_spreadsheet_cell(c) for c in cells} >= {*stops, "-n", "@n", "+s"}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@given(st.text(alphabet="'=+-@\t\r\n 0.5eéx＝", max_size=8))
def test_guarded_cells_come_back(text: str) -> None:
    """Whatever a name is, its cell says which; and two names are never one."""
    assert from_spreadsheet_cell(spreadsheet_cell(text)) == text


@pytest.mark.parametrize("ids", [("-1", "-2", "=A", "'=A"), (-1, -2, 5, 7)])
def test_release_files_keep_ids_that_look_like_formulas(ids: tuple[Any, ...], tmp_path: Path) -> None:
    """Guards are for spreadsheets: a release that is read back has the very same ids and counts."""
    stops = cbdp.Dimension(ids)
    dag = cbdp.FeatureDag(cbdp.Universe(origin=stops, destination=stops), [])
    release = ConstraintBased(dag, epsilon=4).release({"origin": [ids[0]] * 30, "destination": [ids[2]] * 30})
    again = cbdp.load(release.save(tmp_path / "out").path)
    assert tuple(again.features.universe.attributes["origin"].labels) == ids
    assert list(again.trips()) == list(release.trips())


CONNECTIONS = (
    f"postgres://me:{SECRET}@host/city::trips",
    f"postgresql+psycopg://me:{SECRET}@host:5432/city",
    f"mysql://me:{SECRET}%21@host/city",
    f"postgres://me@server.net:{SECRET}@server.net/city",
    f"me:{SECRET}@host/city",
    f"//me:{SECRET}@host:5432/city",
    f"postgres:/me:{SECRET}@host/city",
    f"postgres:me:{SECRET}@host/city",
    f"me/{SECRET}@host:1521/city",
    f"me/{SECRET}@//host:1521/city",
    f"contraseña={SECRET}",
    f"Kennwort = '{SECRET}'",
    f"mot_de_passe={SECRET}",
    f"senha={SECRET}",
    f"duckdb:///city.db?password={SECRET}",
    f"host=db user=me password={SECRET} dbname=city",
    f"host=db password = '{SECRET} with spaces' dbname=city",
    f"Server=db;Database=city;Uid=me;Pwd={SECRET};",
    f"mssql+pyodbc:///?odbc_connect=DRIVER%3D%7Bx%7D%3BUID%3Dme%3BPWD%3D{SECRET}",
    f"jdbc:postgresql://host/city?user=me&password={SECRET}",
    f"jdbc:oracle:thin:me/{SECRET}@host:1521/city",
    f"sc://host:15002/;token={SECRET}",
    f"snowflake://me:{SECRET}@account/db?warehouse=w",
    f"s3://key:{SECRET}@bucket/trips.parquet",
    f"https://storage/trips.parquet?X-Amz-Signature={SECRET}&X-Amz-Date=1",
    f"https://account.blob/trips.parquet?sv=1&sig={SECRET}",
    f"AccountKey={SECRET};EndpointSuffix=x",
    f"Authorization: Bearer {SECRET}{SECRET}",
    f'{{"user": "me", "password": "{SECRET}"}}',
    f"--password {SECRET}",
    f"password: {SECRET}",
)


@pytest.mark.parametrize("text", CONNECTIONS)
def test_what_looks_like_a_password_is_masked(text: str) -> None:
    """In every spelling of a connection that is common, inside other text or in quotes."""
    for written in (text, f"cannot open {text!r}: no", f"'{text}'", json.dumps({"trips": text})):
        assert SECRET not in masked(written)
        assert masked(masked(written)) == masked(written)


@pytest.mark.parametrize(
    "text",
    ["the stop 'Pass' has no zone", "12 passengers = 12 trips", "time<10:00", "http://city.org/data?id=7", "a@b.org", "mailto:a@b.org",
     "features/zones@north", "origin=A,B", "3 tokens", "at 08:00 by me@city.org", "E-Mail:someone@city.org", "mailto:someone@city.org",
     "[data] has no setting 'password': there are trips, id", "08:00@Main", "key = 'zone'", "C:\\data\\trips.csv"],
)  # fmt: skip
def test_what_is_no_password_is_left_alone(text: str) -> None:
    """Times, conditions, addresses and ordinary words."""
    assert masked(text) == text
    assert message(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "a=" * 20_000,
        "password='" * 4_000,
        "http://a:b" * 4_000,
        "pwd={" * 8_000,
        "a" * 40_000,
        "\\" * 40_000,
        "a%3D" * 10_000,
    ],
)
def test_masking_ends_whatever_a_text_repeats(text: str) -> None:
    """Errors hold values of others: looking for passwords in them must not fail itself."""
    assert len(message(text)) < 11_000


WRONG_KEYS = (
    ('id = "city"', 'id = "{}"'),
    ('stops = "stops.csv"', 'stops = "{}"'),
    ('ledger = "ledger.sqlite"', 'ledger = "{}"'),
    ('path = "release"', 'path = "{}"'),
    ('name = "constraint-based"', 'name = "{}"'),
    ("epsilon = 1.0", 'epsilon = "{}"'),
    ('preset = "odmts"', 'preset = "{}"'),
    ('id = "city"', 'id = "city"\nriders = "{}"'),
    ('id = "city"', 'id = "city"\nurl = "{}"'),
    ('id = "city"', 'id = "city"\n"{}" = 1'),
    ("[output]", '[about]\ntitle = "{}"\n[output]'),
    ("[output]", '[about]\ncontact = "{}"\n[output]'),
    ('trips = "trips.parquet"', 'trips = "{}"'),
    ('trips = "trips.parquet"', 'trips = ["{}", "trips.parquet"]'),
    ('trips = "trips.parquet"', 'trips = "trips.parquet" "{}"'),
)  # fmt: skip


@pytest.mark.parametrize(("before", "after"), WRONG_KEYS)
@pytest.mark.parametrize("command", ["check", "release"])
def test_a_connection_under_the_wrong_key_shows_no_password(
    before: str, after: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither on the screen nor in any file; and nothing is spent."""
    folder = write_city(tmp_path)
    assert CONFIG.count(before) == 1
    text = CONFIG.replace(before, after.format(f"postgres://me:{SECRET}@nowhere.invalid/city"))
    (folder / "cbdp.toml").write_text(text)
    assert main([command, str(folder / "cbdp.toml")]) == 2
    shown = capsys.readouterr()
    assert SECRET not in shown.out + shown.err
    assert not [p.name for p in folder.iterdir() if p.name not in ("cbdp.toml", "stops.csv", "trips.parquet")]


def test_a_manifest_holds_no_password(tmp_path: Path) -> None:
    """What a publisher says of a release, in Python, is masked in every file of it and in its exports."""
    about = About(title="Trips", contact=f"postgres://me:{SECRET}@host/city")
    release = release_of("constraint-based")
    folder = replace(release, about=about).save(tmp_path / "out").path
    export(cbdp.load(folder), tmp_path / "csv", "csv")
    for path in [*folder.rglob("*"), *(tmp_path / "csv").rglob("*")]:
        assert path.is_dir() or SECRET.encode() not in path.read_bytes(), path


def test_a_password_that_was_seen_is_in_no_later_message(tmp_path: Path) -> None:
    """Databases repeat it without the words around it."""
    from cbdp.config import parse

    secret = f"correct-{SECRET}-battery"
    parse(CONFIG.replace("trips.parquet", f"postgres://me:{secret}@host/city::trips"), tmp_path / "cbdp.toml")
    assert str(InputError(f"FATAL: no {secret} for me")) == "FATAL: no *** for me"
