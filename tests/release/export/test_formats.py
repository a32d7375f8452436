"""What all formats share: each trip in its flow, the same file again, clear errors, and formats of others.

Which program of its field reads each format, in the test module of that name:

| format | read by | in |
|---|---|---|
| csv | the standard library's csv | test_csv |
| omx | openmatrix; AequilibraE, which assigns a matrix to a network | test_omx, test_aequilibrae |
| geojson | GDAL (pyogrio, GeoPandas); the standard library's json, by RFC 7946 | test_geojson |
| geopackage | GDAL (pyogrio, GeoPandas); SQLite, by the OGC's requirements | test_geopackage |
| geoparquet | GeoPandas; DuckDB | test_geoparquet |
| flowmap | pandas, by Flowmap.blue's rules (its reader is a web page) | test_flowmap |
| kepler | kepler.gl in a browser | test_kepler |
| matsim | matsim-tools; its DTD's grammar (MATSim itself is not on PyPI or in Debian) | test_matsim |
| sumo | sumolib; od2trips and duarouter, on networks by netconvert and netgenerate | test_sumo, test_sumo_chain |
| xarray | xarray with h5netcdf | test_xarray |
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from exported import PLACES, city_release, released_trips
from hypothesis import given, settings
from hypothesis import strategies as st

import cbdp
from cbdp.errors import InputError
from cbdp.release.export import FORMATS, export
from cbdp.release.export.flows import flows_of


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_flows_add_up_however_trips_lie(data: Any) -> None:
    """Origins and destinations of different kinds and order, other dimensions around them: each trip is in its flow."""
    origins = data.draw(st.permutations([1, 2, "x", "y"]))[:3]
    destinations = data.draw(st.permutations([2, "y", "z"]))
    dims = {"destination": destinations, "kind": ["p", "q"], "origin": origins, "day": ["m", "n"]}
    universe = cbdp.Universe(**{name: dims[name] for name in data.draw(st.permutations(list(dims)))})
    names = list(universe.dimensions)
    keys = st.tuples(*(st.sampled_from(dims[name]) for name in names))
    trips = data.draw(st.dictionaries(keys, st.integers(1, 10**12), max_size=20))
    made = flows_of(released_trips(universe, trips))
    found = {}
    for period, rows in made.by_period():
        for row in range(rows.start, rows.stop):
            ends = {"origin": made.ids[made.origin[row]], "destination": made.ids[made.destination[row]]}
            at = ends | dict(period.labels)
            found[tuple(at[n] for n in names)] = int(made.count[row])
    assert found == trips


@pytest.mark.parametrize("form", list(FORMATS.table))
def test_every_format_writes_a_saved_release_once_and_the_same_again(form: str, tmp_path: Path) -> None:
    """From a folder as from memory, with the same bytes (but for HDF5's own); a path that exists is left alone."""
    release, _ = city_release(places=PLACES)
    release.save(tmp_path / "release")
    one, two = export(release, tmp_path / "one", form), export(tmp_path / "release", tmp_path / "two", form)
    first, second = (
        [p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()]
        if path.is_dir()
        else [path.read_bytes()]
        for path in (one, two)
    )
    assert first == second
    with pytest.raises(InputError, match="exists already"):
        export(release, tmp_path / "one", form)
    with pytest.raises(InputError, match="no folder"):
        export(release, tmp_path / "none" / "out", form)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one", "release", "two"]


@pytest.mark.parametrize("form", list(FORMATS.table))
def test_a_release_without_trips_is_exported(form: str, tmp_path: Path) -> None:
    """Nothing to say is said in every format."""
    release, _ = city_release(places=PLACES)
    empty = replace(release, index=release.index[:0], value=release.value[:0])
    assert export(empty, tmp_path / "out", form).exists()


def test_every_format_is_in_the_table_of_readers() -> None:
    """A new format needs a reader, and the tests that the table names are there."""
    rows = [line.split(" | ") for line in (__doc__ or "").splitlines() if line.startswith("| ")][1:]
    assert [row[0].removeprefix("| ") for row in rows] == list(FORMATS.table)
    for row in rows:
        for name in row[2].removesuffix(" |").split(", "):
            assert Path(__file__).with_name(f"{name}.py").exists()


def test_names_of_formats_are_known_in_any_case(tmp_path: Path) -> None:
    """As people write them: OMX, GeoJSON, GeoPackage."""
    release, _ = city_release(places=PLACES)
    for name in ("OMX", "GeoJSON", "GeoPackage", "GeoParquet", "SUMO", "MATSim", "CSV"):
        assert FORMATS.get(name).name == name.lower()
        assert export(release, tmp_path / name, name).exists()
    with pytest.raises(InputError, match="did you mean 'geojson'"):
        export(release, tmp_path / "out", "GeoJason")


def test_an_export_beside_a_release_is_named_as_its_readers_expect() -> None:
    """Files have the ending that programs know them by, and no two formats share a name."""
    names = [FORMATS.get(name).beside("march") for name in FORMATS.table]
    assert len(set(names)) == len(names)
    assert {"march.omx", "march.gpkg", "march.parquet", "march.geojson", "march.nc", "march-csv"} <= set(
        names
    )


def test_wrong_wishes_are_one_clear_error(tmp_path: Path) -> None:
    """Unknown formats, options, levels and dimensions, and ids that look alike; nothing is written."""
    release, _ = city_release(places=PLACES)
    taps = released_trips(cbdp.Universe(tap=["on", "off"], location=["A", "B"]), {("on", "A"): 1})
    alike, _ = city_release((1, "1", 2, 3))
    for given_, form, options, said in (
        (release, "xls", {}, "unknown format 'xls': there are csv, omx"),
        (release, "csv", {"places": PLACES}, "csv has no option 'places'"),
        (
            replace(release, tables={"time": release.counts("time")}),
            "omx",
            {"intervals": 0.9},
            "no intervals: export without",
        ),
        (release, "matsim", {"level": "zone"}, "no option 'level'"),
        (release, "omx", {"level": "county"}, r"no attribute 'origin\.county'"),
        (release, "sumo", {"level": None, "origin": "from"}, "no dimension 'from'"),
        (taps, "sumo", {}, "no dimension 'origin'"),
        (alike, "sumo", {}, "both be called '1'"),
        (tmp_path / "nowhere", "csv", {}, "no folder"),
    ):
        with pytest.raises(InputError, match=said):
            export(given_, tmp_path / "out", form, **options)
    assert list(tmp_path.iterdir()) == []
    export(taps, tmp_path / "out", "sumo", origin="tap", destination="location")


@pytest.mark.slow
def test_a_missing_library_is_named_with_its_extra(tmp_path: Path) -> None:
    """Without h5py, xarray or pyogrio the other formats work, and these say what to install."""
    script = (
        "import sys; sys.modules.update(dict.fromkeys(['h5py', 'xarray', 'h5netcdf', 'pyproj', 'pyogrio']));"
        "sys.path[:0] = ['tests']; from exported import city_release, PLACES; from cbdp.errors import InputError; from cbdp.release.export import export;"
        "release, _ = city_release(places=PLACES)\n"
        "for form in ('csv', 'geojson', 'geoparquet', 'flowmap', 'kepler', 'matsim', 'sumo'):\n"
        "    export(release, sys.argv[1] + '/' + form, form)\n"
        "for form, options in (('omx', {}), ('xarray', {}), ('geopackage', {}), ('matsim', {'crs': 'EPSG:32617'})):\n"
        "    try: export(release, sys.argv[1] + '/other', form, **options)\n"
        "    except InputError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    assert "cbdp[omx]" in done.stdout
    assert "cbdp[xarray]" in done.stdout
    assert "cbdp[matsim]" in done.stdout
    assert "cbdp[geo]" in done.stdout
    assert {p.name for p in tmp_path.iterdir()} == set(FORMATS.table) - {"omx", "xarray", "geopackage"}


PLAIN = '''"""Trips as lines of text."""

from dataclasses import dataclass
from typing import ClassVar

from cbdp.release.export import Format


@dataclass(frozen=True)
class Lines(Format):
    name: ClassVar[str] = "lines"
    about: ClassVar[str] = "a line of text per trip type"

    def write(self, release, path, *, mark: str = " "):
        trips = release.trips()
        rows = zip(*trips.values(), strict=True)
        path.write_text("".join(mark.join(map(str, row)) + "\\n" for row in rows), encoding="utf-8")
'''


def test_a_format_is_added_by_one_file_of_another_package(tmp_path: Path, monkeypatch: Any) -> None:
    """Found by its entry point: by name in `export`, in the list of parts and in messages; its options are its arguments."""
    package = tmp_path / "packages"
    (package / "lines-1.dist-info").mkdir(parents=True)
    (package / "lines.py").write_text(PLAIN, encoding="utf-8")
    (package / "lines-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: lines\nVersion: 1\n"
    )
    (package / "lines-1.dist-info" / "entry_points.txt").write_text("[cbdp.export]\nlines = lines:Lines\n")
    monkeypatch.syspath_prepend(str(package))
    assert len(PLAIN.splitlines()) <= 40
    assert "lines" in FORMATS.names()
    release, trips = city_release()
    path = export(release, tmp_path / "out.txt", "lines", mark=";")
    rows = [line.split(";") for line in path.read_text("utf-8").splitlines()]
    assert {(int(o), int(d), t): int(n) for o, d, t, n in rows} == trips
    with pytest.raises(InputError, match="lines has no option 'level': it has mark"):
        export(release, tmp_path / "other", "lines", level="zone")
    with pytest.raises(InputError, match="did you mean 'lines'"):
        export(release, tmp_path / "other", "line")
