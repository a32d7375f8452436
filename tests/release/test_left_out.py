"""Where only some trips of each person count, every output says that its numbers are not about ridership; others are silent about it."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from exported import PLACES, city_release

import cbdp
from cbdp.app import cli
from cbdp.commands.releases import change_json, change_text
from cbdp.release.export import export
from cbdp.release.views import TRIP_NOUN, left_out
from cbdp.report import build
from cbdp.report.comparison import build as change_page
from cbdp.report.series import build as series_page
from cbdp.report.series import period_of

UNIT = cbdp.Person("card", 2, per="day")
SENTENCE = left_out(UNIT, TRIP_NOUN)
SIGN = "not about ridership"


@cache
def _release(unit: Any, seed: int = 3) -> cbdp.Release:
    """400 riders with four trips each, of which two count."""
    made, trips = city_release()
    rows = [key for key, count in trips.items() for _ in range(20 * count)]
    columns: dict[str, Any] = dict(
        zip(("origin", "destination", "time"), map(list, zip(*rows, strict=True)), strict=True)
    )
    columns["card"] = [n // 4 for n in range(len(rows))]
    mechanism = cbdp.ConstraintBased(made.features, epsilon=9, unit=unit)
    return replace(mechanism.simulate(columns, seed).with_intervals(), places=PLACES)


def _ask_text(release: cbdp.Release, place: Path, capsys: pytest.CaptureFixture[str]) -> str:
    release.save(place / "out", simulation=True)
    assert cli.main(["ask", str(place / "out"), "--by", "time"]) == 0
    return capsys.readouterr().out


def _ask_json(release: cbdp.Release, place: Path, capsys: pytest.CaptureFixture[str]) -> str:
    release.save(place / "out", simulation=True)
    assert cli.main(["ask", str(place / "out"), "--format", "json"]) == 0
    return "\n".join(json.loads(capsys.readouterr().out)["notes"])


def _readme(release: cbdp.Release, place: Path, _: Any) -> str:
    release.save(place / "out", simulation=True)
    return (place / "out" / "README.md").read_text(encoding="utf-8")


def _compared(release: cbdp.Release) -> Any:
    return cbdp.compare(release, _release(release.claim.unit, 4), by="time")


OUTPUTS: dict[str, Callable[..., str]] = {
    "ask, Python": lambda release, *_: "\n".join(release.ask("time").notes),
    "ask, text": _ask_text,
    "ask, JSON": _ask_json,
    "compare, text": lambda release, *_: change_text(_compared(release)),
    "compare, JSON": lambda release, *_: "\n".join(json.loads(change_json(_compared(release)))["notes"]),
    "compare, page": lambda release, *_: change_page(_compared(release), PLACES),
    "table": lambda release, *_: "\n".join(release.table("time").notes),
    "report": lambda release, *_: build(release),
    "readme": _readme,
    "series page": lambda release, *_: series_page([period_of(release, dt.date(2026, 3, 2))]),
}


@pytest.mark.parametrize("output", OUTPUTS)
def test_every_output_says_what_is_not_counted(
    output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same words everywhere; where trips are the unit nothing of the kind is said."""
    assert SENTENCE.startswith("At most 2 trips of each person a day are counted, chosen at random.")
    assert SIGN in SENTENCE
    for name in ("person", "trip"):
        (tmp_path / name).mkdir()
    assert SENTENCE in OUTPUTS[output](_release(UNIT), tmp_path / "person", capsys)
    assert SIGN not in OUTPUTS[output](_release("trip"), tmp_path / "trip", capsys)


@pytest.mark.parametrize(
    "format_",
    ["csv", "geojson", "omx", "geopackage", "geoparquet", "flowmap", "kepler", "xarray", "matsim", "sumo"],
)
def test_every_export_says_what_is_not_counted(format_: str, tmp_path: Path) -> None:
    """In its header or metadata, whatever the format."""
    wanted = {"omx": "tables", "xarray": "xarray"}.get(format_)
    if wanted is not None:
        pytest.importorskip(wanted)
    for unit, says in ((UNIT, True), ("trip", False)):
        options = {"crs": "EPSG:4326"} if format_ == "matsim" else {}
        out = export(_release(unit), tmp_path / f"{format_}-{says}", format_, **options)
        files = [out] if out.is_file() else [f for f in out.rglob("*") if f.is_file()]
        held = b"".join(
            gzip.decompress(f.read_bytes()) if f.suffix == ".gz" else f.read_bytes() for f in files
        )
        assert (SIGN.encode() in held) is says
