"""What every file of a release holds and what its columns mean: one description, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cbdp.features import SINGLETON, TOTAL
from cbdp.release.counted import PLACES, counted
from cbdp.release.labels import ENCODED
from cbdp.release.release import Release
from cbdp.release.roles import listed, period_names

TYPES: tuple[tuple[Any, str], ...] = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "integer"),
    (pa.types.is_floating, "number"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "datetime"),
    (pa.types.is_time, "time"),
    (pa.types.is_string, "string"),
)
NUMBERS = {
    "count": "The published count: a whole number of trips. The one to use.",
    "low": "Lower end of the {sure} interval of the true count, in trips.",
    "high": "Upper end of the {sure} interval of the true count, in trips.",
    "estimate": "The count before it was rounded to whole trips.",
    "noisy": "The measurement: the true count plus random noise, in trips. It may be below zero.",
    "scale": "The size of the noise in “noisy”, in trips: typical noise is about as large (the scale of its law).",
    "variance": "The variance of the noise in “noisy”, in trips squared: the square of its usual size.",
    "floor": "Measurements of single combinations at or below this number of trips were not looked at.",
    "weight": "Public weight of the combination that entered the estimate.",
}
PLACE = {
    "id": "Identifier of the stop, as in the columns of the tables.",
    "name": "Name of the stop.",
    "lat": "Latitude in degrees (WGS 84).",
    "lon": "Longitude in degrees (WGS 84).",
    "zone": "Zone of the stop.",
}


@dataclass(frozen=True)
class Column:
    """A column: its type in the words of Frictionless tables, its meaning, and how many of its values are missing."""

    name: str
    type: str
    meaning: str
    missing: int = 0


@dataclass(frozen=True)
class File:
    """A Parquet file of a release. `keys` name its rows: no two rows have the same."""

    path: str
    about: str
    columns: tuple[Column, ...]
    rows: int
    keys: tuple[str, ...] = ()


def described(release: Release, sections: Mapping[str, Any], folder: Path) -> list[File]:
    """Every Parquet file, those that most people want first."""
    words, noun = _words(release, sections), counted(release.features.universe)
    return [
        _file(folder, path, noun.say(about), {**words, **own}, keys)
        for path, about, own, keys in _listed(sections)
    ]


def _listed(sections: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, str], tuple[str, ...]]]:
    """Path, content, meanings of its own, and keys of every file."""
    dimensions = tuple(d["name"] for d in sections["universe"]["dimensions"])
    yield (
        sections["trips"]["file"],
        f"All published trips: one row for each {combination(dimensions)} that has any.",
        {},
        dimensions,
    )
    seen = set()
    for f in sections["features"]:
        seen.add(f["file"])
        yield f["file"], _table(f), {}, tuple(f["by"])
    for m in sections["measurements"]:
        if m["file"] not in seen:
            seen.add(m["file"])
            yield m["file"], f"Measurements of “{m['feature']}”, as they were made.", {}, ()
        if m["floors"] is not None:
            yield m["floors"], f"Where small measurements of “{m['feature']}” were left out.", {}, ()
    if sections["places"] is not None:
        yield sections["places"]["file"], "Where the stops are. Public.", PLACE, ("id",)
    yield from _universe(sections["universe"])
    if "prior" in sections:
        yield sections["prior"]["file"], "Public weights that entered the estimate.", {}, dimensions


def combination(names: Sequence[str]) -> str:
    """What single counts are of.

    >>> combination(["origin", "destination", "time"]), combination(["time"])
    ('combination of origin, destination and time', 'time')
    """
    return f"combination of {listed(list(names))}" if len(names) > 1 else "".join(names)


def _table(feature: Mapping[str, Any]) -> str:
    if feature["name"] == TOTAL:
        return "Table “total”: all trips together, one row."
    if feature["name"] == SINGLETON:
        some = "" if feature["rows"] == "all" else " about which anything was published"
        return f"Table “singleton”: every {combination(feature['by'])}{some}."
    return (
        f"Table “{feature['name']}”: counts by {listed([name.replace('.', ' ') for name in feature['by']])}."
    )


def _universe(universe: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, str], tuple[str, ...]]]:
    for d in universe["dimensions"]:
        values = "The only possible value" if d["size"] == 1 else f"All {d['size']:,} possible values"
        yield d["file"], f"{values} of “{d['name']}”. Public.", {}, (d["name"],)
    for a in universe["attributes"]:
        if len(a["of"]) > 1:
            yield a["file"], f"The {a['name']} for every {listed(a['of'])}. Public.", {}, tuple(a["of"])
    for z in universe["zeros"]:
        about = f"Combinations of {listed(z['of'])} that cannot occur. Public."
        yield z["file"], about, {}, tuple(z["of"])


def _words(release: Release, sections: Mapping[str, Any]) -> dict[str, str]:
    """The meaning of every column that is not a file's own: numbers, dimensions and attributes."""
    sure = f"{100 * (release.confidence or 0.9):g} %"
    noun = counted(release.features.universe)
    words = {name: noun.say(text.format(sure=sure)) for name, text in NUMBERS.items()}
    for d in sections["universe"]["dimensions"]:
        words[d["name"]] = _dimension(release, d, sections["places"])
    for a in sections["universe"]["attributes"]:
        kind = a["name"].rpartition(".")[2]
        whose = f"of the {a['of'][0]}" if len(a["of"]) == 1 else f"for this {listed(a['of'])}"
        text = f"The {kind} {whose}; see {a['file']}."
        words[a["name"]] = text + (" Text in JSON." if a["labels"] == ENCODED else "")
    return words


def _dimension(release: Release, stated: Mapping[str, Any], places: Mapping[str, Any] | None) -> str:
    name, held = stated["name"], release.features.universe.dimension(stated["name"])
    noun = counted(release.features.universe)
    json = " Text in JSON." if stated["labels"] == ENCODED else ""
    if stated["edges"] is not None:
        names = period_names(held)
        long = f"The {len(names)} periods" if len(names) > 1 else "The period"
        zone = None if release.about is None else release.about.timezone
        local = "" if zone is None else f" Time zone: {zone}."
        run = f"{names[0]} to {names[-1]}" if len(names) > 1 else names[0]
        return f"The period of the {noun.one}, named by its start. {long}: {run}.{local}{json}"
    known = set() if release.places is None else {str(stop) for stop in release.places.ids}
    if places is not None and known.issuperset(map(str, held.values)):
        whose = "" if name in PLACES else f" that is the {name}"
        return f"The stop{whose} of the {noun.one}; see {places['file']}.{json}"
    return f"One of the values in {stated['file']}.{json}"


def _file(folder: Path, path: str, about: str, words: Mapping[str, str], keys: tuple[str, ...]) -> File:
    with pq.ParquetFile(folder / path) as held:
        schema, metadata = held.schema_arrow, held.metadata
        groups = [metadata.row_group(g) for g in range(metadata.num_row_groups)]
        missing = [
            sum(g.column(c).statistics.null_count if g.column(c).statistics else 0 for g in groups)
            for c in range(len(schema))
        ]
        columns = [
            Column(f.name, _type(f.type), words.get(f.name, ""), many)
            for f, many in zip(schema, missing, strict=True)
        ]
        return File(path, about, tuple(columns), metadata.num_rows, keys)


def _type(held: Any) -> str:
    """The type of a column as Frictionless tables name it; for bytes they have no name."""
    return next((name for fits, name in TYPES if fits(held)), "any")
