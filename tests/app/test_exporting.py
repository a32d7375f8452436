"""`cbdp export`: options reach the format that has them, others are refused, and files are read from where they are named."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from exported import PLACES, STOPS, mechanism_release
from small_city import plan_of

import cbdp
from cbdp.app import cli
from cbdp.forecast.check import files_of_release


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release without coordinates, and the stops with them in a table."""
    made = tmp_path_factory.mktemp("released")
    replace(mechanism_release(), places=None).save(made / "release", simulation=True)
    rows = [f"{s},{y},{x}" for s, y, x in zip(PLACES.ids, PLACES.lat, PLACES.lon, strict=True)]
    (made / "stops.csv").write_text("\n".join(["id,lat,lon", *rows]))
    (made / "zones.txt").write_text("\n".join(map(str, (*sorted(STOPS), 5000))))
    return made


def run(folder: Path, tmp_path: Path, *words: str) -> Path:
    out = tmp_path / "out"
    assert cli.main(["export", str(folder / "release"), "--out", str(out), *words]) == 0
    return out


def test_intervals_have_a_default_and_a_level(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--intervals` alone is 90 %; the long table has what the release answers."""
    out = run(folder, tmp_path, "--format", "CSV", "--level", "zone", "--intervals")
    assert capsys.readouterr().out == f"{out}\n"
    assert json.loads((out / "about.json").read_text("utf-8"))["confidence"] == 0.9
    answer = cbdp.load(folder / "release").ask(by=["origin.zone", "destination.zone", "time"])
    with (out / "od.csv").open(encoding="utf-8", newline="") as file:
        assert sum(int(row["high"]) for row in csv.DictReader(file)) == answer["high"].sum()


def test_zones_are_read_from_a_file(folder: Path, tmp_path: Path) -> None:
    """The matrices have the order and size of the list, and with a confidence their intervals."""
    openmatrix = pytest.importorskip("openmatrix", reason="openmatrix is not installed")
    zones = str(folder / "zones.txt")
    with openmatrix.open_file(
        str(run(folder, tmp_path, "--format", "omx", "--zones", zones, "--intervals", "0.5"))
    ) as omx:
        assert list(omx.mapping("stop")) == [*sorted(STOPS), 5000]
        assert len(omx.list_matrices()) == 6
        assert omx.root._v_attrs["confidence"] == 0.5


def test_places_are_read_from_a_file(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A release without coordinates says what to give; given, the ids are numbers as in the release."""
    words = ["export", str(folder / "release"), "--format", "geojson", "--out", str(tmp_path / "none")]
    assert cli.main(words) == 2
    assert "--places FILE" in capsys.readouterr().err
    out = run(folder, tmp_path, "--format", "geojson", "--places", str(folder / "stops.csv"))
    origins = {f["properties"]["origin"] for f in json.loads(out.read_text("utf-8"))["features"]}
    assert origins <= set(STOPS)


def test_the_ending_names_the_format(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file called od.omx is Open Matrix; one whose ending says nothing needs --format."""
    release, out = str(folder / "release"), tmp_path / "OD.OMX"
    assert cli.main(["export", release, "--out", str(out)]) == 0
    assert out.read_bytes()[:4] == b"\x89HDF"
    assert cli.main(["export", release, "--out", str(tmp_path / "od.xlsx")]) == 2
    assert "say which with --format" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--format", "omx", "--network", "x"], "omx has no option 'network'"),
        (["--format", "xarray", "--intervals"], "xarray has no option 'intervals'"),
        (["--format", "shapefile"], "unknown format 'shapefile'"),
        (["--format", "omx", "--intervals", "1.5"], "confidence"),
    ],
)
def test_wrong_wishes_are_one_line(
    folder: Path, tmp_path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, and nothing is written."""
    assert cli.main(["export", str(folder / "release"), "--out", str(tmp_path / "out"), *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_configuration_names_formats_in_any_case(city: Path) -> None:
    """As people write them; the plan has our names, and the exports their readers' endings."""
    made = plan_of(city, ('"release"', '"release"\nexport = ["OMX", "GeoPackage", "Csv"]'))
    assert made.exports == ("omx", "geopackage", "csv")
    assert [f for f in files_of_release(made) if "beside" in f] == [
        f"and beside it {name}" for name in ("release.omx", "release.gpkg", "release-csv")
    ]
