"""Whoever has an exported file alone knows what it is, who made it, and whether it protects anybody."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from exported import PLACES, city_release
from spoken_about import FULL

import cbdp
from cbdp.release import About
from cbdp.release.export import FORMATS, export
from cbdp.release.export.base import provenance, xml_comment
from cbdp.release.release import Release

JSON = ("csv", "geojson", "geoparquet")
SOURCE = f"cbdp {cbdp.__version__}, mechanism by hand"
SEEDED = "a simulation from a seeded source: it protects nobody"


def _csv(path: Path) -> dict[str, Any] | None:
    found = path / "about.json"
    return json.loads(found.read_text("utf-8")) if found.exists() else None


def _geojson(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text("utf-8")).get("about")


def _omx(path: Path) -> dict[str, Any] | None:
    openmatrix = pytest.importorskip("openmatrix", reason="openmatrix is not installed")
    with openmatrix.open_file(str(path)) as omx:
        held = omx.root._v_attrs
        ours = [name for name in held._f_list("user") if name not in ("OMX_VERSION", "SHAPE")]
        return {name: held[name].decode() for name in ours}


def _xarray(path: Path) -> dict[str, Any] | None:
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    with xarray.open_dataset(path, engine="h5netcdf") as stored:
        return {n: v for n, v in stored.attrs.items() if n not in ("mechanism", "claim")}


def _xml(path: Path) -> dict[str, Any] | None:
    """The lines of the only comment, which an XML parser finds before the root."""
    from xml.dom import minidom

    found = [n.data for n in minidom.parse(str(path)).childNodes if n.nodeType == n.COMMENT_NODE]  # noqa: S318
    if not found:
        return None
    (said,) = found
    return dict(line.split(": ", 1) for line in said.strip().splitlines())


def _geopackage(path: Path) -> dict[str, Any] | None:
    with sqlite3.connect(path) as held:
        found = dict(held.execute("SELECT name, value FROM about"))
    held.close()
    return found


def _geoparquet(path: Path) -> dict[str, Any] | None:
    return json.loads(pq.read_schema(path).metadata[b"about"])


def _described(text: str) -> dict[str, Any]:
    return dict(line.split(": ", 1) for line in text.split("; ") if ": " in line)


def _flowmap(path: Path) -> dict[str, Any] | None:
    with (path / "properties.csv").open(encoding="utf-8", newline="") as file:
        held = dict(row for row in csv.reader(file))
    title = {} if held["title"] == "Published trips" else {"title": held["title"]}
    names = {"publisher": held["createdBy.name"]} if "createdBy.name" in held else {}
    return title | names | _described(held["description"])


def _kepler(path: Path) -> dict[str, Any] | None:
    held = json.loads(path.read_text("utf-8"))["info"]
    title = {} if held["title"] == "Published trips" else {"title": held["title"]}
    return title | _described(held["description"])


READERS: dict[str, Callable[[Path], dict[str, Any] | None]] = {
    "csv": _csv,
    "omx": _omx,
    "geojson": _geojson,
    "geopackage": _geopackage,
    "geoparquet": _geoparquet,
    "flowmap": _flowmap,
    "kepler": _kepler,
    "matsim": _xml,
    "sumo": _xml,
    "xarray": _xarray,
}


def promised(form: str) -> dict[str, Any]:
    """What every export of the release says of its ε."""
    return {
        "epsilon": 1.0 if form in JSON else "1",
        "protects": "one trip, added or removed",
        "source": SOURCE,
    }


def _said(release: Release, form: str, folder: Path) -> dict[str, Any] | None:
    return READERS[form](export(release, folder / f"out-{form}", form))


def test_every_format_is_looked_at() -> None:
    """A new one must be added here."""
    assert set(READERS) == set(FORMATS.table)


@pytest.mark.slow
@pytest.mark.parametrize("form", READERS)
def test_every_export_has_the_publisher_s_words(form: str, tmp_path: Path) -> None:
    """All of them, unchanged but for two hyphens in XML, where they would end the comment; and no word of a simulation."""
    release, _ = city_release(places=PLACES, about=FULL)
    wanted = (FULL.json() if form in JSON else FULL.texts()) | promised(form)
    if form == "flowmap":
        wanted.pop("contact")  # it has no field for one, and the words are for everybody to see
    if form in ("matsim", "sumo"):
        wanted["title"] = "Trips - - all of them"
    assert _said(release, form, tmp_path) == wanted
    assert wanted["period"] in ({"first": "2026-03-01", "last": "2026-03-31"}, "2026-03-01 to 2026-03-31")


@pytest.mark.parametrize("form", READERS)
def test_every_export_of_a_simulation_says_so(form: str, tmp_path: Path) -> None:
    """With the publisher's words or without them, from memory and from a folder; a release says its ε instead."""
    release, _ = city_release(places=PLACES)
    assert _said(release, form, tmp_path) == promised(form)
    yes = True if form in JSON else "true"
    nothing = {"simulation": yes, "caveat": SEEDED, "source": SOURCE}
    seeded = replace(release, secure=False)
    seeded.save(tmp_path / "release", simulation=True)
    for place, given in (("memory", seeded), ("folder", cbdp.load(tmp_path / "release"))):
        (tmp_path / place).mkdir()
        assert _said(given, form, tmp_path / place) == nothing
    (tmp_path / "titled").mkdir()
    titled = _said(replace(seeded, about=About("Trips")), form, tmp_path / "titled")
    assert titled == {"title": "Trips", **nothing}


def test_numbers_are_those_of_an_export_without_words(tmp_path: Path) -> None:
    """The words stand beside the trips and change none of them."""
    plain, _ = city_release(places=PLACES)
    for form in ("csv", "sumo", "matsim", "geojson"):
        one = export(plain, tmp_path / f"plain-{form}", form)
        two = export(replace(plain, about=FULL), tmp_path / f"titled-{form}", form)
        if form == "csv":
            assert {p.name for p in two.iterdir()} == {p.name for p in one.iterdir()}
            assert (one / "trips.csv").read_bytes() == (two / "trips.csv").read_bytes()
        elif form == "geojson":
            pages = [json.loads(path.read_text("utf-8")) for path in (one, two)]
            assert pages[0]["features"] == pages[1]["features"]
        else:
            text = two.read_text("utf-8")
            words = xml_comment(FULL.texts() | promised(form))
            assert text.replace(words, xml_comment(promised(form))) == one.read_text("utf-8")


def test_a_simulation_of_a_mechanism_without_a_promise_keeps_its_caveat() -> None:
    """Both reasons are told."""
    dag = cbdp.FeatureDag(cbdp.Universe(origin=["A", "B"]), [])
    made = cbdp.ThresholdLaplace(dag, 1).simulate(np.array([30, 40]), 1)
    assert provenance(made)["caveat"] == f"{SEEDED}; {made.claim.caveat}"
    alone = provenance(replace(made, secure=True))
    assert alone["caveat"] == made.claim.caveat
    assert not {"epsilon", "rho", "protects"} & set(alone)


def test_gaussian_noise_states_rho_and_the_epsilon_at_its_delta() -> None:
    """As the claim does; a file never has an ε without the δ that belongs to it."""
    dag = cbdp.FeatureDag(cbdp.Universe(origin=["A", "B"]), [])
    made = cbdp.ConstraintBased(dag, law="gaussian", epsilon=1, delta="1e-6").simulate(np.array([30, 40]), 1)
    said = provenance(replace(made, secure=True))
    cost = made.claim.cost
    assert (said["rho"], said["delta"]) == (float(cost.rho), 1e-6)
    assert said["epsilon"] == float(cost.epsilon)


@pytest.mark.parametrize("text", ["-", "--", "---", "-->", "a--b---c", "<!-- x -->", "- -"])
def test_no_line_ends_a_comment(text: str) -> None:
    """Whatever hyphens it has."""
    from xml.dom import minidom

    made = minidom.parseString(f"{xml_comment({'title': text})}<a/>")  # noqa: S318
    assert [n.nodeType for n in made.childNodes] == [minidom.Node.COMMENT_NODE, minidom.Node.ELEMENT_NODE]
    assert made.childNodes[0].data.replace(" ", "") == f"\ntitle:{text}\n".replace(" ", "")
