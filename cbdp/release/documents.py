"""What stands beside the data of a release, so that it speaks for itself: README.md, datapackage.json and deployment.yaml.

All three follow from one description of the files and their columns. README.md is for people who were handed the folder, datapackage.json is
a Data Package (Frictionless) for catalogues and programs, and deployment.yaml an entry for the OpenDP registry of deployments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from cbdp import __version__
from cbdp.features import SINGLETON, TOTAL
from cbdp.numbers import MAX_PICTURABLE_EPSILON, factor_text
from cbdp.release.manifest import registry_fields
from cbdp.release.release import Release
from cbdp.release.serialization import unit_json
from cbdp.release.views import (
    PLACE_NAMES,
    Published,
    contents_text,
    counted_noun,
    delta_rho_text,
    enumerated,
    epsilon_text,
    guarantee_text,
    left_out,
    period_names,
    protected_text,
    title_of,
    where_and_when,
)
from cbdp.rounding import ROUNDINGS
from cbdp.text import markdown_code, markdown_text, printable
from cbdp_features.tables import ENCODED_KIND

if TYPE_CHECKING:
    from cbdp.release.manifest_model import (
        DimensionJson,
        FeatureJson,
        LayoutSections,
        PlacesJson,
        UniverseJson,
    )

README_FILE, PACKAGE_FILE, REGISTRY_FILE = "README.md", "datapackage.json", "deployment.yaml"
DOCUMENT_NAMES = (README_FILE, PACKAGE_FILE, REGISTRY_FILE)
FRICTIONLESS_TYPES: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "integer"),
    (pa.types.is_floating, "number"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "datetime"),
    (pa.types.is_time, "time"),
    (pa.types.is_string, "string"),
)
NUMBER_MEANINGS = {
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
PLACE_MEANINGS = {
    "id": "Identifier of the stop, as in the columns of the tables.",
    "name": "Name of the stop.",
    "lat": "Latitude in degrees (WGS 84).",
    "lon": "Longitude in degrees (WGS 84).",
    "zone": "Zone of the stop.",
}


@dataclass(frozen=True)
class ColumnDescription:
    """A column: its type in the words of Frictionless tables, its meaning, and how many of its values are missing."""

    name: str
    type: str
    meaning: str
    missing: int = 0


@dataclass(frozen=True)
class FileDescription:
    """A Parquet file of a release. `keys` name its rows: no two rows have the same."""

    path: str
    about: str
    columns: tuple[ColumnDescription, ...]
    rows: int
    keys: tuple[str, ...] = ()


def documents(
    release: Release,
    sections: LayoutSections,
    folder: Path,
    extra: Collection[str] = (),
) -> dict[str, str]:
    """The documents of a release by name, from what the manifest says of its files and from the files as they lie in a folder.

    They depend on published values only, and the same release gives the same text. What promises nothing is not registered.
    """
    files = describe_files(release, sections, folder)
    entry = registry_entry(release)
    registered = [] if entry is None else [REGISTRY_FILE]
    texts = {
        README_FILE: readme(release, files, [*extra, PACKAGE_FILE, *registered]),
        PACKAGE_FILE: data_package(release, files),
    }
    return texts if entry is None else {**texts, REGISTRY_FILE: entry}


# What every file holds and what its columns mean


def describe_files(release: Release, sections: LayoutSections, folder: Path) -> list[FileDescription]:
    """Every Parquet file, those that most people want first."""
    words, noun = _column_meanings(release, sections), counted_noun(release.features.universe)
    return [
        _file_description(folder, path, noun.say(about), {**words, **particular}, keys)
        for path, about, particular, keys in _file_entries(sections)
    ]


def _file_entries(
    sections: LayoutSections,
) -> Iterator[tuple[str, str, Mapping[str, str], tuple[str, ...]]]:
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
        yield f["file"], _table_description(f), {}, tuple(f["by"])
    for m in sections["measurements"]:
        if m["file"] not in seen:
            seen.add(m["file"])
            yield m["file"], f"Measurements of “{m['feature']}”, as they were made.", {}, ()
        if m["floors"] is not None:
            yield m["floors"], f"Where small measurements of “{m['feature']}” were left out.", {}, ()
    if sections["places"] is not None:
        yield sections["places"]["file"], "Where the stops are. Public.", PLACE_MEANINGS, ("id",)
    yield from _universe_entries(sections["universe"])
    if "prior" in sections:
        yield sections["prior"]["file"], "Public weights that entered the estimate.", {}, dimensions


def combination(names: Sequence[str]) -> str:
    """What single counts are of.

    >>> combination(["origin", "destination", "time"]), combination(["time"])
    ('combination of origin, destination and time', 'time')
    """
    return f"combination of {enumerated(list(names))}" if len(names) > 1 else "".join(names)


def _table_description(feature: FeatureJson) -> str:
    if feature["name"] == TOTAL:
        return "Table “total”: all trips together, one row."
    if feature["name"] == SINGLETON:
        some = "" if feature["rows"] == "all" else " about which anything was published"
        return f"Table “singleton”: every {combination(feature['by'])}{some}."
    return f"Table “{feature['name']}”: counts by {enumerated([name.replace('.', ' ') for name in feature['by']])}."


def _universe_entries(
    universe: UniverseJson,
) -> Iterator[tuple[str, str, Mapping[str, str], tuple[str, ...]]]:
    for d in universe["dimensions"]:
        values = "The only possible value" if d["size"] == 1 else f"All {d['size']:,} possible values"
        yield d["file"], f"{values} of “{d['name']}”. Public.", {}, (d["name"],)
    for a in universe["attributes"]:
        if len(a["of"]) > 1:
            yield a["file"], f"The {a['name']} for every {enumerated(a['of'])}. Public.", {}, tuple(a["of"])
    for z in universe["zeros"]:
        about = f"Combinations of {enumerated(z['of'])} that cannot occur. Public."
        yield z["file"], about, {}, tuple(z["of"])


def _column_meanings(release: Release, sections: LayoutSections) -> dict[str, str]:
    """The meaning of every column that is not a file's own: numbers, dimensions and attributes."""
    sure = f"{100 * (release.confidence or 0.9):g} %"
    noun = counted_noun(release.features.universe)
    words = {name: noun.say(text.format(sure=sure)) for name, text in NUMBER_MEANINGS.items()}
    for d in sections["universe"]["dimensions"]:
        words[d["name"]] = _dimension_meaning(release, d, sections["places"])
    for a in sections["universe"]["attributes"]:
        kind = a["name"].rpartition(".")[2]
        whose = f"of the {a['of'][0]}" if len(a["of"]) == 1 else f"for this {enumerated(a['of'])}"
        text = f"The {kind} {whose}; see {a['file']}."
        words[a["name"]] = text + (" Text in JSON." if a["labels"] == ENCODED_KIND else "")
    return words


def _dimension_meaning(release: Release, stated: DimensionJson, places: PlacesJson | None) -> str:
    name, dimension = stated["name"], release.features.universe.dimension(stated["name"])
    noun = counted_noun(release.features.universe)
    json = " Text in JSON." if stated["labels"] == ENCODED_KIND else ""
    if stated["edges"] is not None:
        names = period_names(dimension)
        long = f"The {len(names)} periods" if len(names) > 1 else "The period"
        zone = None if release.about is None else release.about.timezone
        local = "" if zone is None else f" Time zone: {zone}."
        run = f"{names[0]} to {names[-1]}" if len(names) > 1 else names[0]
        return f"The period of the {noun.one}, named by its start. {long}: {run}.{local}{json}"
    stop_ids = set() if release.places is None else {str(stop) for stop in release.places.ids}
    if places is not None and stop_ids.issuperset(map(str, dimension.values)):
        whose = "" if name in PLACE_NAMES else f" that is the {name}"
        return f"The stop{whose} of the {noun.one}; see {places['file']}.{json}"
    return f"One of the values in {stated['file']}.{json}"


def _file_description(
    folder: Path, path: str, about: str, words: Mapping[str, str], keys: tuple[str, ...]
) -> FileDescription:
    with pq.ParquetFile(folder / path) as file:
        schema, metadata = file.schema_arrow, file.metadata
        groups = [metadata.row_group(g) for g in range(metadata.num_row_groups)]
        missing = [
            sum(g.column(c).statistics.null_count if g.column(c).statistics else 0 for g in groups)
            for c in range(len(schema))
        ]
        columns = [
            ColumnDescription(f.name, _frictionless_type(f.type), words.get(f.name, ""), many)
            for f, many in zip(schema, missing, strict=True)
        ]
        return FileDescription(path, about, tuple(columns), metadata.num_rows, keys)


def _frictionless_type(arrow_type: pa.DataType) -> str:
    """The type of a column as Frictionless tables name it; for bytes they have no name."""
    return next((name for fits, name in FRICTIONLESS_TYPES if fits(arrow_type)), "any")


# README.md

OTHER_FILES = {
    "report.html": "The report: maps, charts and how far each table can be trusted. One page that opens offline. Begin here.",
    "manifest.json": "All settings, what was promised and how it was kept, and the SHA-256 of every other file.",
    "datapackage.json": "The files and their columns for programs that read Data Packages (Frictionless).",
    "deployment.yaml": "An entry for the OpenDP registry of deployments of differential privacy, to be completed.",
}
READING_ADVICE = """\
```python
import cbdp

release = cbdp.load(".")  # checks every file first
release.table({table})  # counts with intervals
release.ask(by={by!r})  # any other question; it costs no privacy
```

Any program that reads Parquet will do as well: `pandas.read_parquet("trips.parquet")` in Python, `arrow::read_parquet("trips.parquet")`
in R, `select * from 'trips.parquet'` in DuckDB. `cbdp export` writes CSV and the formats of transport models and maps."""


def readme(release: Release, files: Sequence[FileDescription], others: Sequence[str]) -> str:
    """The text of README.md; `others` are the files that are not Parquet."""
    paragraphs = [
        *_readme_head(release),
        *_protection_paragraphs(release),
        "## Files",
        _file_table(files, others),
        "## Columns",
        *_column_table(files),
        "## How to read it",
        *_reading_advice(release, others),
        "## How to cite it",
        _citation(release),
        "## Licence",
        _licence(release),
    ]
    return "\n\n".join(paragraphs) + "\n"


def _readme_head(release: Release) -> Iterator[str]:
    if not release.secure:
        yield "**Simulation, not a release.** Its noise came from a seed, so anybody can compute it and remove it: it protects nobody."
    yield f"# {markdown_text(title_of(release))}"
    setting = where_and_when(release)
    if setting is not None:
        yield markdown_text(setting)
    several = len(release.features.features)
    agree = "" if release.tables else " that add up to each other"
    noise = "protected by random noise" if release.promise.holds else "with random noise"
    yield f"{contents_text(release)}. Published as {several} tables{agree}, {noise}."
    if release.series is not None:
        s = release.series
        yield f"This is the {s.stage} release of {s.period} in the {s.calendar} series “{markdown_text(s.name)}”, version {s.version}."
    if release.about is not None and release.about.timezone is not None:
        yield f"Times are local times of {markdown_text(release.about.timezone)}."


def _protection_paragraphs(release: Release) -> Iterator[str]:
    """In one sentence what is promised, and precisely."""
    claim, noun = release.promise, counted_noun(release.features.universe)
    bound = left_out(claim.unit, noun)
    yield "## Protection"
    if not claim.holds:
        yield f"No differential privacy is promised: {markdown_text(claim.caveat)}."
        if bound:
            yield bound
        return
    unit = protected_text(claim.unit, noun)
    yield f"**{epsilon_text(claim)}{delta_rho_text(claim)} for each {unit}** (differential privacy). The smaller ε, the stronger the protection."
    sure = f", and a probability of δ = {float(claim.cost.delta):.2g} on top" if claim.cost.delta else ""
    epsilon = float(claim.cost.epsilon)
    most = (
        "a factor that is so large that it protects hardly anything"
        if epsilon > MAX_PICTURABLE_EPSILON
        else f"a factor of {factor_text(epsilon)}"
    )
    yield (
        f"Whether any one {unit} is in the data changes the chance of any result by at most {most} (e to the power of ε){sure}. "
        "This holds whatever else anybody knows."
    )
    yield f"For reviewers, precisely: {markdown_text(noun.say(str(claim)))}."
    if bound:
        yield bound
    if release.recipe.public:
        yield f"These counts were public already and were not protected: {markdown_text(', '.join(sorted(release.recipe.public)))}."


def _file_table(files: Sequence[FileDescription], others: Sequence[str]) -> str:
    """A table of all files, the report first and the universe last."""
    rows = [
        (name, OTHER_FILES.get(name, "Added by the publisher."), "") for name in [*others, "manifest.json"]
    ]
    rows.sort(key=lambda row: list(OTHER_FILES).index(row[0]) if row[0] in OTHER_FILES else len(OTHER_FILES))
    first = [row for row in rows if row[0] == "report.html"]
    rest = [row for row in rows if row[0] != "report.html"]
    data = [(f.path, f.about, f"{f.rows:,}") for f in files]
    lines = [
        f"| {markdown_code(path)} | {markdown_text(about)} | {many} |"
        for path, about, many in [*first, *data, *rest]
    ]
    return "\n".join(["| file | what it holds | rows |", "|---|---|---:|", *lines])


def _column_table(files: Sequence[FileDescription]) -> Iterator[str]:
    """Every column once: those that name rows first, then the numbers."""
    columns: dict[str, list[ColumnDescription]] = {}
    for file in files:
        for column in file.columns:
            columns.setdefault(column.name, []).append(column)
    names = [n for n in columns if n not in NUMBER_MEANINGS] + [n for n in NUMBER_MEANINGS if n in columns]
    lines = [
        f"| {markdown_code(n)} | {_column_kind(columns[n])} | {markdown_text(columns[n][0].meaning)} |"
        for n in names
    ]
    yield "\n".join(["| column | type | meaning |", "|---|---|---|", *lines])
    if any(column.missing for same_name in columns.values() for column in same_name):
        yield "A number is missing where there is none: nothing was measured, estimated or given an interval there."


def _column_kind(columns: Sequence[ColumnDescription]) -> str:
    kinds = {"string": "text", "integer": "whole number", "any": "bytes"}
    return kinds.get(columns[0].type, columns[0].type)


def _reading_advice(release: Release, others: Sequence[str]) -> Iterator[str]:
    sure, noun = f"{100 * (release.confidence or 0.9):g} %", counted_noun(release.features.universe)
    yield (
        noun.say("Use `count`. It is near the true number of trips")
        + ", not equal to it: random noise was added on purpose."
    )
    if release.intervals:
        yield (
            f"Quote a count with its interval, `low` to `high`: it holds the true count with {sure} confidence. The two are worked out in "
            "different ways, so a count may stand at one end of its interval; that is no mistake."
        )
    if release.tables:
        yield "The tables were published one by one: do not combine numbers of different tables. Small counts were left out."
    else:
        yield noun.say("All tables are sums of the same published trips, so they agree with each other.")
        yield from _sums_advice(release)
    rounding = release.recipe.rounding
    if rounding is not None and ROUNDINGS.installed(rounding).needs_expected:
        yield (
            "To read single rows of “singleton” use `estimate`: whole trips were put on the most likely rows, and only counts of the other tables are near the "
            "truth."
        )
    if "report.html" in others:
        yield "`report.html` says of each table how far it can be trusted and what it may be used for."
    names = [n for n in release.features.features if release.features.features[n].by]
    table = names[0] if names else "total"
    yield READING_ADVICE.format(
        table=printable(json.dumps(table, ensure_ascii=False)), by=list(release.features.features[table].by)
    )


def _sums_advice(release: Release) -> Iterator[str]:
    """Which sums were measured, and where to ask for the intervals of others."""
    published, public = Published(release), release.recipe.public
    measured = [
        n
        for n in release.features.features
        if n != SINGLETON and (n in public or published.noise_distribution(n) is not None)
    ]
    if measured:
        yield (
            f"Small counts are mostly noise. Sums that have a table of their own were measured as such ({markdown_text(enumerated(measured))}). Any other sum adds up the "
            "errors of its parts: `release.ask` below and `cbdp ask` tell its interval."
        )


def _citation(release: Release) -> str:
    texts = {} if release.about is None else release.about.texts()
    setting = where_and_when(release)
    pieces = [texts.get("publisher"), title_of(release), setting]
    claim = release.promise
    promise = (
        f"Differentially private, {epsilon_text(claim)}{delta_rho_text(claim)} for each {protected_text(claim.unit, counted_noun(release.features.universe))}"
        if claim.holds
        else None
    )
    version = release.stored.software["cbdp"] if release.stored else __version__
    software = f"Made with cbdp {version}"
    line = ". ".join(markdown_text(piece.rstrip(".")) for piece in [*pieces, promise, software] if piece)
    return f"> {line}.\n\nTo name this very release, add the SHA-256 of `manifest.json`."


def _licence(release: Release) -> str:
    texts = {} if release.about is None else release.about.texts()
    who = texts.get("contact") or texts.get("publisher") or "the publisher"
    line = (
        markdown_text(texts["licence"])
        if "licence" in texts
        else f"No licence is stated. Ask {markdown_text(who)} before you use the data."
    )
    contact = f"\n\nContact: {markdown_text(texts['contact'])}" if "contact" in texts else ""
    return line + contact


# datapackage.json

DATA_PACKAGE_PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
PARQUET_MEDIA_TYPE = "application/vnd.apache.parquet"


def data_package(release: Release, files: Sequence[FileDescription]) -> str:
    """The text of datapackage.json. Sizes and hashes are in the manifest: validators of Data Packages cannot check those of Parquet files."""
    names = _resource_names([f.path for f in files])
    package = {
        "$schema": DATA_PACKAGE_PROFILE,
        "name": slug(title_of(release)) or "release",
        "title": title_of(release),
        "description": f"{contents_text(release)}; {guarantee_text(release)}. README.md tells how to read the files; manifest.json has their hashes.",
        "keywords": ["differential privacy", "mobility", "origin-destination"],
        **_publisher_fields(release),
        "privacy": _privacy_fields(release),
        "resources": [_resource_descriptor(f, names[f.path]) for f in files],
    }
    return json.dumps(package, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _publisher_fields(release: Release) -> dict[str, object]:
    """What the publisher says, under the names that Data Packages have for it; the rest under ours."""
    about = release.about
    if about is None:
        return {}
    licence = licence_of(about.licence)
    fields: dict[str, object] = {"licenses": [licence]} if licence is not None else {}
    if about.publisher is not None:
        fields["contributors"] = [{"title": about.publisher, "roles": ["publisher"], "role": "publisher"}]
    stated = {key: value for key, value in about.json().items() if key != "title"}
    return fields | ({"about": stated} if stated else {})


def _privacy_fields(release: Release) -> dict[str, object]:
    """The promise in numbers; what a simulation states are no numbers."""
    claim = release.promise
    cost = claim.cost
    epsilon, delta = (float(cost.epsilon), float(cost.delta)) if claim.holds else (None, None)
    rho: dict[str, object] = {"rho": float(cost.rho)} if claim.holds and cost.currency == "rho" else {}
    unit = unit_json(claim.unit)
    return {"statement": str(claim), "unit": unit["words"], "epsilon": epsilon, "delta": delta, **rho}


def _resource_descriptor(file: FileDescription, name: str) -> dict[str, object]:
    keys = {"primaryKey": list(file.keys)} if file.keys else {}
    return {
        "name": name,
        "path": file.path,
        "type": "table",
        "format": "parquet",
        "mediatype": PARQUET_MEDIA_TYPE,
        "description": file.about,
        "schema": {"fields": [_field_descriptor(c, file.rows) for c in file.columns], **keys},
    }


def _field_descriptor(column: ColumnDescription, rows: int) -> dict[str, object]:
    """Readers make floating-point numbers of whole ones where some are missing: the type says what can be relied on."""
    empty = rows > 0 and column.missing == rows
    type_ = "any" if empty else "number" if column.type == "integer" and column.missing else column.type
    sentences = [column.meaning, "Empty in this file." if empty else ""]
    description = " ".join(filter(None, sentences))
    return {"name": column.name, "type": type_, **({"description": description} if description else {})}


def slug(text: str) -> str:
    """Text as a name of small letters, digits, dots and dashes.

    >>> slug("Zürich: trips, 2026")
    'z-rich-trips-2026'
    """
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")


def _resource_names(paths: Sequence[str]) -> dict[str, str]:
    """A name for each file, no two alike."""
    resource_names: dict[str, str] = {}
    for path in paths:
        plain = slug(path.removesuffix(".parquet").removeprefix("features/")) or "table"
        taken = set(resource_names.values())
        numbered = (f"{plain}-{n}" for n in range(2, len(paths) + 2))
        resource_names[path] = next(name for name in (plain, *numbered) if name not in taken)
    return resource_names


# Licences, by the names that catalogues know

CREATIVE_COMMONS = "https://creativecommons.org"
OPEN_DATA = "https://opendatacommons.org/licenses"
# SPDX identifier → address of the text
KNOWN_LICENCES = {
    "CC0-1.0": f"{CREATIVE_COMMONS}/publicdomain/zero/1.0/",
    "CC-BY-4.0": f"{CREATIVE_COMMONS}/licenses/by/4.0/",
    "CC-BY-SA-4.0": f"{CREATIVE_COMMONS}/licenses/by-sa/4.0/",
    "CC-BY-NC-4.0": f"{CREATIVE_COMMONS}/licenses/by-nc/4.0/",
    "ODbL-1.0": f"{OPEN_DATA}/odbl/1-0/",
    "ODC-By-1.0": f"{OPEN_DATA}/by/1-0/",
    "PDDL-1.0": f"{OPEN_DATA}/pddl/1-0/",
    "DL-DE-BY-2.0": "https://www.govdata.de/dl-de/by-2-0",
    "OGL-UK-3.0": "https://www.nationalarchives.gov.uk/doc/open-government-licence/version/3/",
}


def licence_of(text: str | None) -> dict[str, str] | None:
    """A licence as Data Packages state it; None for words that no catalogue knows.

    >>> licence_of("CC BY 4.0")["name"], licence_of("https://example.org/terms")
    ('CC-BY-4.0', {'path': 'https://example.org/terms'})
    >>> licence_of("ask us") is None
    True
    """
    if text is None:
        return None
    if re.fullmatch(r"https?://\S+", text):
        return {"path": text}
    for name, path in KNOWN_LICENCES.items():
        if _normalised_licence(text) in (
            _normalised_licence(name),
            _normalised_licence(name.removesuffix("-1.0")),
        ):
            return {"name": name, "title": text, "path": path}
    return None


def _normalised_licence(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


# deployment.yaml: what a release cannot know (its intended use, the day of publication, why ε was chosen) stands there as comments

REGISTRY_VARIANTS = {"zCDP": "Zero-concentrated DP"}  # where the registry has another name than the manifest
CURATOR_FIELDS = {  # what only the publisher knows, by the section that it belongs to
    "basic": {
        "intended_use": "what the release is meant for",
        "publication_date": "the day of publication, as YYYY-MM-DD in quotes",
        "data_product_sector": "Government, Technology …",
    },
    "implementation": {"justification": "why this unit and this ε were chosen, and by whom"},
    "administrative": {"registry_authors": "who fills in this entry"},
}
REGISTRY_SOURCES = "README.md, report.html and manifest.json in the folder of the release."
REGISTRY_HEAD = """\
# An entry for the OpenDP registry of deployments of differential privacy (https://registry.opendp.org).
# Complete, except for the lines that begin with “# fill in”: only the publisher knows these.
"""


def registry_entry(release: Release) -> str | None:
    """The entry as YAML; None where nothing is promised, so that there is nothing to register.

    Every text is a JSON string, which YAML reads as it is.
    """
    if not release.promise.holds:
        return None
    stated = registry_fields(release)
    entry = {
        "url_slug": slug(f"{title_of(release)} {_publisher_word(release, 'place') or ''}") or "release",
        "status": "Draft",
        "tier": 2,
        "deployment": {
            "basic": _registry_basics(release, stated["basic"]),
            "dp_variant": _registry_variant(stated["dp_variant"]),
            "privacy_loss": stated["privacy_loss"],
            "deployment_model": _registry_model(release, stated["deployment_model"]),
            "accounting": stated["accounting"],
            "implementation": stated["implementation"],
            "administrative": {"sources": REGISTRY_SOURCES},
        },
    }
    return REGISTRY_HEAD + "\n".join(_yaml_lines(entry)) + "\n"


def _publisher_word(release: Release, name: str) -> str | None:
    return None if release.about is None else release.about.texts().get(name)


def _registry_basics(release: Release, stated: Mapping[str, object]) -> dict[str, object]:
    publisher, region = _publisher_word(release, "publisher"), _publisher_word(release, "place")
    return {
        "name": title_of(release),
        **({} if publisher is None else {"data_curators": [{"data_curator_name": publisher}]}),
        "data_product_type": stated["data_product_type"],
        **({} if region is None else {"data_product_region": region}),
        "description": f"{contents_text(release)}. {stated['description']}",
    }


def _registry_variant(stated: Mapping[str, object]) -> dict[str, object]:
    name = str(stated["variant_name"])
    return {**stated, "variant_name": REGISTRY_VARIANTS.get(name, name)}


def _registry_model(release: Release, stated: Mapping[str, object]) -> dict[str, object]:
    series = release.series
    if series is None:
        return dict(stated)
    details = f"The release of {series.period} in the {series.calendar} series “{series.name}”."
    return {**stated, "release_type": "Many releases", "release_type_details": details}


def _yaml_lines(value: Mapping[str, object], indent: str = "", section: str = "") -> Iterator[str]:
    """YAML of mappings, lists of mappings and plain values; what is open stands as comments at the end of its section."""
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            yield f"{indent}{key}:"
            yield from _yaml_lines(inner, f"{indent}  ", key)
        elif isinstance(inner, list):
            yield f"{indent}{key}:"
            for item in inner:
                first, *rest = _yaml_lines(item, f"{indent}    ")
                yield f"{indent}  - {first.strip()}"
                yield from rest
        else:
            yield f"{indent}{key}: {_yaml_scalar(inner)}"
    for key, meaning in CURATOR_FIELDS.get(section, {}).items():
        yield f"{indent}# fill in {key}: {meaning}"


def _yaml_scalar(value: object) -> str:
    """A value as JSON, which YAML reads too; of 1e-06 only with a point.

    >>> _yaml_scalar(1e-6), _yaml_scalar(0.5), _yaml_scalar("a: b")
    ('1.0e-06', '0.5', '"a: b"')
    """
    written = printable(json.dumps(value, ensure_ascii=False))
    mantissa, e, power = written.partition("e")
    return f"{mantissa}.0{e}{power}" if isinstance(value, float) and e and "." not in mantissa else written
