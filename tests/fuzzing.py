"""Files and questions as strangers might write them, drawn from a seed; whatever ends in a traceback is a fault.

Tests draw a few hundred. The full run, with everything that reads what was drawn: `PYTHONPATH=tests python -m fuzzing --count 2000`.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import tempfile
import traceback
import zipfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from cbdp.errors import CbdpError

TEXTS = (
    "", " ", "x", "A", "total", "singleton", "time", "1/0", "0/1", "-1/3", "1/3", "9" * 400, "1e400", "nan", "inf", "-inf", "\x1b[31mred",
    "\x00", "\x1a", "a\nb", "\u202egnp", "\ud800"[:0] + "é", "../../etc/passwd", "/etc/passwd", "C:\\x", "features/total.parquet",
    "antigravity:fly", "os:system", "this:s", "cbdp.parts:Parts", "by element", "release", "geometric", "posterior", "nearest", "newton",
    "2026-01-01", "2026-13-45", "0000-00-00", "08:00", "25:99", "=1+1", "<script>", "postgres://u:hunter22@h/d", "a" * 5000,
)  # fmt: skip
NUMBERS = (
    0,
    1,
    -1,
    2,
    7,
    10**6,
    2**31,
    2**53,
    2**63 - 1,
    10**30,
    -(10**200),
    -(2**63) + 1,
    0.0,
    0.5,
    -0.5,
    1.5,
    1e-300,
    1e30,
    1e300,
    -1e300,
)


def hostile(rng: random.Random, depth: int = 2) -> Any:
    """Any value of JSON, rather one that is wrong."""
    kind = rng.randrange(8 if depth else 5)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind in (1, 2):
        return rng.choice(TEXTS)
    if kind in (3, 4):
        return rng.choice(NUMBERS)
    if kind == 5:
        return [hostile(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 6:
        return {"exact": rng.choice(TEXTS), "decimal": rng.choice(NUMBERS)}
    return {rng.choice(TEXTS): hostile(rng, depth - 1) for _ in range(rng.randrange(3))}


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of everything inside a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        yield (*path, key)
        yield from places_in(inner, (*path, key))


def mutated(rng: random.Random, content: Any) -> Any:
    """A JSON value with one to three changes."""
    changed = copy.deepcopy(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        paths = list(places_in(changed))
        if not paths:
            return changed
        *above, key = rng.choice(paths)
        holder = changed
        for step in above:
            holder = holder[step]
        change = rng.randrange(8)
        if change <= 3:
            holder[key] = hostile(rng)
        elif change == 4:
            del holder[key]
        elif change == 5:
            other = rng.choice(paths)
            value = changed
            for step in other:
                value = value[step]
            holder[key] = copy.deepcopy(value)
        elif change == 6 and isinstance(holder, dict):
            holder[rng.choice(TEXTS)] = holder.pop(key)
        elif isinstance(holder, list):
            holder.insert(0, copy.deepcopy(holder[key]))
        else:
            holder[key] = [holder[key]] if rng.random() < 0.5 else {"x": holder[key]}
    return changed


def toml_value(rng: random.Random) -> str:
    """A value of TOML, rather a wrong one."""
    choices = (
        lambda: json.dumps(rng.choice(TEXTS)),
        lambda: str(rng.choice(NUMBERS)),
        lambda: rng.choice(["true", "nan", "inf", "-inf", "2026-03-02", "08:00:00", "2026-03-02T08:00:00Z", "1_000", "0x10", "1e999", "-0.0"]),
        lambda: f"[{', '.join(json.dumps(rng.choice(TEXTS)) for _ in range(rng.randrange(3)))}]",
        lambda: f"{{ {rng.choice(['person', 'column', 'every', 'x'])} = {json.dumps(rng.choice(TEXTS))} }}",
        lambda: "[[1, 2], ['a']]",
        lambda: rng.choice(["[" * 100 + "]" * 100, "0x" + "f" * 300, "9" * 5000, "1e999999999", "-1e-999999999", "1e" + "9" * 30]),
        lambda: rng.choice(['"1e999999999"', '"1e-99999999"', "10000000000000000000000", '"1/' + "9" * 3000 + '"']),
        lambda: "{}",
    )  # fmt: skip
    return rng.choice(choices)()


def mutated_toml(rng: random.Random, text: str) -> str:
    """A configuration with one to three changes of its lines, values or letters."""
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(lines))
        change = rng.randrange(7)
        if change <= 3 and "=" in lines[at]:
            lines[at] = f"{lines[at].partition('=')[0]}= {toml_value(rng)}"
        elif change == 4:
            lines[at] = ""
        elif change == 5:
            letter = rng.choice('"[]{}=#,.\n\t\x00\x1b0-x')
            place = rng.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:place] + letter + lines[at][place:]
        else:
            lines.insert(rng.randrange(len(lines)), rng.choice(lines))
    return "\n".join(lines)


def question(rng: random.Random, names: list[str], labels: list[Any]) -> dict[str, Any]:
    """Arguments of `Release.ask`."""
    among = [*names, *labels, *TEXTS, *NUMBERS, None, True, (), ("origin", "time"), {}, object]

    def anything() -> Any:
        return rng.choice(among)

    def several(draw: Callable[[], Any]) -> Any:
        return rng.choice(
            [
                draw,
                lambda: [draw() for _ in range(rng.randrange(3))],
                lambda: tuple(draw() for _ in range(rng.randrange(3))),
            ]
        )()

    def condition() -> str:
        sign = rng.choice(["=", "<", ">", "<=", ">=", "!=", "+", "", "=="])
        return f"{rng.choice([*names, *TEXTS])}{sign}{','.join(map(str, (anything() for _ in range(rng.randrange(3)))))}"

    def mapping() -> dict[Any, Any]:
        among = [*names, ("origin", "destination"), *NUMBERS, *TEXTS, None]
        keys = [rng.choice(among) for _ in range(rng.randrange(3))]
        return {key: several(anything) for key in keys}

    asked: dict[str, Any] = {}
    if rng.random() < 0.7:
        asked["by"] = several(lambda: rng.choice(names)) if rng.random() < 0.6 else several(anything)
    if rng.random() < 0.7:
        asked["where"] = rng.choice(
            [condition, lambda: [condition() for _ in range(2)], mapping, anything, lambda: several(anything)]
        )()
    if rng.random() < 0.3:
        asked["confidence"] = rng.choice(
            [0.9, 0.5, 0, 1, -1, 2, "0.9", None, [], float("nan"), float("inf"), True]
        )
    if rng.random() < 0.3:
        asked["share_of"] = several(lambda: rng.choice(names)) if rng.random() < 0.5 else several(anything)
    return asked


def csv_head(rng: random.Random) -> bytes:
    """The beginning of a file that is called a CSV file."""
    words = ["origin", "destination", "start_time", "end_time", "from_stop", "to_stop", "card_id", "count", "date", "lat", "lon", "stop_id", "zone",
             "name", "tap", "on", "off", *TEXTS]  # fmt: skip
    cells = [rng.choice(words) for _ in range(rng.randrange(8))]
    if rng.random() < 0.4 and cells:
        place = rng.randrange(len(cells))
        cells[place] = (
            cells[place][:3]
            + rng.choice("\x00\x1a\x1b\x7f\x85\"'\r\n\t;|\u2028\u202e\ufeff\U0001f600")
            + cells[place][3:]
        )
    mark = rng.choice(",,,;\t|")
    quoted = [f'"{c.replace(chr(34), chr(34) * 2)}"' if rng.random() < 0.2 else c for c in cells]
    row = mark.join(
        rng.choice(["A", "1", "2026-03-02 08:00", "", *TEXTS[:8]])
        for _ in range(max(0, len(cells) + rng.choice((0, 0, 0, 1, -1))))
    )
    content = (mark.join(quoted) + rng.choice(["\n", "\r\n", "\r", ""]) + row + "\n").encode(
        "utf-8", "surrogatepass"
    )
    form = rng.randrange(12)
    if form == 0:
        return b"\xef\xbb\xbf" + content
    if form == 1:
        return content.decode("utf-8", "replace").encode("utf-16")
    if form == 2:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(200)))
    return content[: rng.randrange(len(content) + 1)] if form == 3 else content


# What is done with them


class Faults(list[str]):
    """Tracebacks, each with what led to it."""

    def run(self, what: str, action: Callable[[], Any]) -> Any:
        """What the action returns; None where it refuses, which is what it should do."""
        try:
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                return action()
        except (CbdpError, SystemExit):
            return None
        except Exception:  # noqa: BLE001 - this is what is looked for
            self.append(f"{what}\n{traceback.format_exc(limit=-6)}")
            return None


def saved_releases(folder: Path) -> list[Path]:
    """Folders of releases of several kinds."""
    from released import city_features, made_by, release_of

    import cbdp

    kinds = (
        "constraint-based",
        "prior",
        "target",
        "person",
        "sparse",
        "threshold-laplace",
        "laplace",
        "hierarchical",
    )
    paths = [release_of(kind).save(folder / kind.replace(" ", "-")).path for kind in kinds]
    gaussian = cbdp.ConstraintBased(city_features(), law="gaussian", rho="1/8", public={"total": 372})
    return [*paths, made_by(gaussian).save(folder / "gaussian").path]


def fuzz_manifests(count: int, seed: int, *, thorough: bool = False) -> Faults:
    """Releases whose manifest was changed are loaded, asked and, where `thorough`, audited, reported and compared."""
    from cbdp.audit import guarantee_check, own_release
    from cbdp.mechanisms import of
    from cbdp.release import load

    rng, faults = random.Random(seed), Faults()
    with tempfile.TemporaryDirectory() as place:
        folders = saved_releases(Path(place))
        originals = {path: (path / "manifest.json").read_text("utf-8") for path in folders}
        for number in range(count):
            path = rng.choice(folders)
            text = json.dumps(mutated(rng, json.loads(originals[path])))
            if rng.random() < 0.05:
                at = rng.randrange(len(text))
                text = (
                    text[:at]
                    + rng.choice(["[" * 100_000, "}", "1" * 5000, "NaN", '"', "\\ud800"])
                    + text[at:]
                )
            (path / "manifest.json").write_text(text, "utf-8")
            what = f"manifest {number} of seed {seed} ({path.name})"
            for verify in (True, False):
                release = faults.run(
                    f"{what}: load(verify={verify})", lambda path=path, verify=verify: load(path, verify)
                )
                if release is not None:
                    faults.run(f"{what}: ask", lambda release=release: release.ask(by="time", sharp=False))
                    faults.run(f"{what}: mechanism", lambda release=release: of(release))
                    if thorough:
                        _used(faults, what, release)
            opened = faults.run(f"{what}: audit", lambda path=path: own_release.open_own_release(path))
            if opened is not None and opened.release is not None:
                features = opened.release.levels or opened.release.features
                faults.run(
                    f"{what}: promises",
                    lambda o=opened, f=features: list(guarantee_check.attack(o.manifest, f)),
                )
            if thorough:
                _commands(faults, what, path, Path(place), number)
            (path / "manifest.json").write_text(originals[path], "utf-8")
    return faults


def _used(faults: Faults, what: str, release: Any) -> None:
    from cbdp.report import build

    faults.run(f"{what}: report", lambda: build(release))


def _commands(faults: Faults, what: str, path: Path, place: Path, number: int) -> None:
    from cbdp.app.cli import main

    if number % 10 == 0:
        faults.run(f"{what}: cbdp audit", lambda: main(["audit", str(path)]))
        faults.run(f"{what}: cbdp ask", lambda: main(["ask", str(path), "--by", "time", "--no-sharp"]))
        faults.run(f"{what}: cbdp compare", lambda: main(["compare", str(path), str(path)]))
        faults.run(
            f"{what}: cbdp export",
            lambda: main(["export", str(path), "--format", "csv", "--out", str(place / f"csv-{number}")]),
        )


def fuzz_configurations(count: int, seed: int, *, thorough: bool = False) -> Faults:
    """Configurations that were changed are read and planned, and explained where `thorough`."""
    from small_city import CONFIG, write_city

    from cbdp.app.plan import plan
    from cbdp.config import parse
    from cbdp.forecast import explain

    examples = (Path(__file__).parents[1] / "docs/building/examples.toml").read_text("utf-8")
    import tomllib

    pieces = list(tomllib.loads(examples).values())
    rng, faults = random.Random(seed), Faults()
    with tempfile.TemporaryDirectory() as place:
        folder = write_city(Path(place))
        for number in range(count):
            base = CONFIG if rng.random() < 0.6 else f"{rng.choice(pieces)}\n"
            text = mutated_toml(rng, base)
            what = f"configuration {number} of seed {seed}:\n{text}\n"
            config = faults.run(f"{what}parse", lambda text=text: parse(text, folder / "cbdp.toml"))
            if config is not None:
                planned = faults.run(f"{what}plan", lambda config=config: plan(config))
                if planned is not None and thorough:
                    faults.run(f"{what}check", lambda planned=planned: explain(planned))
    return faults


def fuzz_questions(count: int, seed: int) -> Faults:
    """A release is asked anything, in Python and by the command."""
    from released import release_of

    release = release_of("constraint-based")
    universe = release.features.universe
    names = list(universe.attributes)
    labels = [label for a in universe.attributes.values() for label in a.labels[:3]]
    rng, faults = random.Random(seed), Faults()
    for number in range(count):
        asked = question(rng, names, labels)
        what = f"question {number} of seed {seed}: {asked!r}"
        faults.run(what, lambda asked=asked: release.ask(**asked, sharp=False))
    return faults


def fuzz_heads(count: int, seed: int) -> Faults:
    """Files of trips and stops with any beginning are looked at by `cbdp init`, and what it writes is read back."""
    from cbdp.app.cli import main
    from cbdp.config import parse

    rng, faults = random.Random(seed), Faults()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        trips, stops = folder / "trips.csv", folder / "stops.csv"
        for number in range(count):
            trips.write_bytes(csv_head(rng))
            stops.write_bytes(
                csv_head(rng)
                if rng.random() < 0.5
                else b"stop_id,name,lat,lon,zone\nA,North,1,2,n\nB,South,1.1,2,s\n"
            )
            public = stops if rng.random() < 0.7 else None
            what = f"head {number} of seed {seed}: {trips.read_bytes()[:300]!r}, stops {stops.read_bytes()[:300]!r}"
            written = folder / "cbdp.toml"
            written.unlink(missing_ok=True)
            named = ["--stops", str(stops)] if public else []
            faults.run(
                f"{what}: init",
                lambda named=named, out=written: main(["init", str(trips), *named, "--out", str(out)]),
            )
            if written.exists():
                text = written.read_text("utf-8")
                faults.run(f"{what}: reading {text!r}", lambda text=text: _read_back(parse, text, folder))
    return faults


def _read_back(parse: Any, text: str, folder: Path) -> None:
    """What init writes must be TOML; a value that is still to be edited may be refused."""
    try:
        parse(text, folder / "cbdp.toml")
    except CbdpError as refused:
        if "not valid TOML" in str(refused):
            raise AssertionError(str(refused)) from refused


def fuzz_descriptions(count: int, seed: int) -> Faults:
    """Folders of somebody else's tables, whose description or whose tables were changed, are read and audited."""
    import numpy as np
    from table_folders import truth, written

    from cbdp.app.cli import main
    from cbdp.audit import external_tables

    rng, faults = random.Random(seed), Faults()
    with tempfile.TemporaryDirectory() as place:
        counts = truth(np.random.default_rng(0), small=0.1)
        noise = 'threshold = 5\nnoise = { law = "laplace", scale = 1.4 }\nrounded = 5\nzeros = "skipped"\nhidden = "small"\nuniverse = 400'
        folder = written(
            Path(place) / "tables",
            counts,
            counts.sum(1),
            counts.sum(0),
            noise,
            top="epsilon = 1.0\ndelta = 1e-6\n",
        )
        files = {path: path.read_bytes() for path in sorted(folder.iterdir())}
        for number in range(count):
            path = folder / "audit.toml"
            if rng.random() < 0.7:
                path.write_text(mutated_toml(rng, files[path].decode()), "utf-8")
            else:
                path = rng.choice(sorted(files))
                path.write_bytes(_damaged(rng, files[path]))
            what = f"description {number} of seed {seed}: {path.name} is {path.read_bytes()[:600]!r}"
            published = faults.run(f"{what}: reading", lambda: external_tables.read(folder))
            if published is not None and number % 20 == 0:
                faults.run(f"{what}: cbdp audit", lambda: main(["audit", str(folder)]))
            path.write_bytes(files[path])
    return faults


def _damaged(rng: random.Random, content: bytes) -> bytes:
    """A file with a few bytes changed, put in or cut off."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 3))):
        place = rng.randrange(len(changed) + 1)
        extra = rng.choice(
            [
                b"\x00",
                b"\xff\xfe",
                b'"',
                b"\n",
                b",",
                b";",
                b"1e999",
                b"-",
                "\u202e".encode(),
                b"\x1b[2J",
                b"9" * 5000,
            ]
        )
        changed[place : place + rng.choice((0, 1, 5))] = extra
    return bytes(changed[: rng.randrange(len(changed))] if rng.random() < 0.2 else changed)


def fuzz_places(count: int, seed: int) -> Faults:
    """Stops, polygons, stations and feeds with changed bytes or values are read."""
    from cbdp_features import places

    polygons = {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "properties": {"zone": "north", "id": 1},
                "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [0, 1], [1, 1], [0, 0]]]},
            },
            {
                "type": "Feature",
                "properties": {"id": "A"},
                "geometry": {"type": "Point", "coordinates": [0.2, 0.3]},
            },
        ],
    }
    points = {"type": "FeatureCollection", "features": polygons["features"][1:]}
    stations = {"data": {"stations": [{"station_id": "A", "name": "North", "lat": 0.2, "lon": 0.3}]}}
    table = b"id,name,lat,lon,zone\nA,North,0.2,0.3,n\nB,South,0.4,0.5,s\n"
    rng, faults = random.Random(seed), Faults()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "located.csv").write_bytes(table)
        located = places.stops(folder / "located.csv")
        for number in range(count):
            kind = rng.randrange(5)
            file = (
                folder
                / ("stops.csv", "zones.geojson", "station_information.json", "feed.zip", "points.geojson")[
                    kind
                ]
            )
            if kind == 0:
                file.write_bytes(_damaged(rng, table))
            elif kind == 3:
                with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as feed:
                    feed.writestr(
                        "stops.txt",
                        _damaged(
                            rng, table.replace(b"id,name,lat,lon", b"stop_id,stop_name,stop_lat,stop_lon")
                        ),
                    )
                if rng.random() < 0.5:
                    file.write_bytes(_damaged(rng, file.read_bytes()))
            else:
                text = json.dumps(mutated(rng, {1: polygons, 2: stations, 4: points}[kind])).encode()
                file.write_bytes(_damaged(rng, text) if rng.random() < 0.3 else text)
            what = f"places {number} of seed {seed}: {file.name} is {file.read_bytes()[:300]!r}"
            faults.run(f"{what}: stops", lambda file=file: places.stops(file))
            if kind == 1:
                faults.run(f"{what}: polygons", lambda file=file: places.zones_by_polygon(located, file))
    return faults


FUZZES: dict[str, Callable[..., Faults]] = {
    "manifests": fuzz_manifests,
    "configurations": fuzz_configurations,
    "questions": fuzz_questions,
    "heads": fuzz_heads,
    "descriptions": fuzz_descriptions,
    "places": fuzz_places,
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Draw files and questions of strangers, and look for tracebacks."
    )
    parser.add_argument("kinds", nargs="*", choices=[*FUZZES, []], help="what to draw (default: all)")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    failed = 0
    for kind in options.kinds or FUZZES:
        more = {"thorough": True} if kind in ("manifests", "configurations") else {}
        faults = FUZZES[kind](options.count, options.seed, **more)
        failed += len(faults)
        print(f"{kind}: {options.count} drawn from seed {options.seed}, {len(faults)} tracebacks")
        for fault in faults[:20]:
            print(fault)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
