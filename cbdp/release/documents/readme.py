"""README.md: what a release is, how strongly it protects, how to read its files, how to cite it. For people who were handed the folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from cbdp import __version__
from cbdp.features import SINGLETON
from cbdp.release.counted import counted
from cbdp.release.documents.described import NUMBERS, Column, File
from cbdp.release.published import Published
from cbdp.release.release import Release
from cbdp.release.roles import listed
from cbdp.release.words import (
    HUGE,
    besides,
    factor,
    left_out,
    protected,
    strength,
    title_of,
    what,
    where_and_when,
)
from cbdp.rounding import ROUNDINGS
from cbdp.text import markdown_code, markdown_text, printable

OTHERS = {
    "report.html": "The report: maps, charts and how far each table can be trusted. One page that opens offline. Begin here.",
    "manifest.json": "All settings, what was promised and how it was kept, and the SHA-256 of every other file.",
    "datapackage.json": "The files and their columns for programs that read Data Packages (Frictionless).",
    "deployment.yaml": "An entry for the OpenDP registry of deployments of differential privacy, to be completed.",
}
READING = """\
```python
import cbdp

release = cbdp.load(".")  # checks every file first
release.table({table})  # counts with intervals
release.ask(by={by!r})  # any other question; it costs no privacy
```

Any program that reads Parquet will do as well: `pandas.read_parquet("trips.parquet")` in Python, `arrow::read_parquet("trips.parquet")`
in R, `select * from 'trips.parquet'` in DuckDB. `cbdp export` writes CSV and the formats of transport models and maps."""


def readme(release: Release, files: Sequence[File], others: Sequence[str]) -> str:
    """The text of README.md; `others` are the files that are not Parquet."""
    paragraphs = [
        *_head(release),
        *_protection(release),
        "## Files",
        _listed(files, others),
        "## Columns",
        *_columns(files),
        "## How to read it",
        *_advice(release, others),
        "## How to cite it",
        _citation(release),
        "## Licence",
        _licence(release),
    ]
    return "\n\n".join(paragraphs) + "\n"


def _head(release: Release) -> Iterator[str]:
    if not release.secure:
        yield "**Simulation, not a release.** Its noise came from a seed, so anybody can compute it and remove it: it protects nobody."
    yield f"# {markdown_text(title_of(release))}"
    known = where_and_when(release)
    if known is not None:
        yield markdown_text(known)
    several = len(release.features.features)
    agree = "" if release.tables else " that add up to each other"
    noise = "protected by random noise" if release.promise.holds else "with random noise"
    yield f"{what(release)}. Published as {several} tables{agree}, {noise}."
    if release.series is not None:
        s = release.series
        yield f"This is the {s.stage} release of {s.period} in the {s.calendar} series “{markdown_text(s.name)}”, version {s.version}."
    if release.about is not None and release.about.timezone is not None:
        yield f"Times are local times of {markdown_text(release.about.timezone)}."


def _protection(release: Release) -> Iterator[str]:
    """In one sentence what is promised, and precisely."""
    claim, noun = release.promise, counted(release.features.universe)
    bound = left_out(claim.unit, noun)
    yield "## Protection"
    if not claim.holds:
        yield f"No differential privacy is promised: {markdown_text(claim.caveat)}."
        if bound:
            yield bound
        return
    unit = protected(claim.unit, noun)
    yield f"**{strength(claim)}{besides(claim)} for each {unit}** (differential privacy). The smaller ε, the stronger the protection."
    sure = f", and a probability of δ = {float(claim.cost.delta):.2g} on top" if claim.cost.delta else ""
    epsilon = float(claim.cost.epsilon)
    most = (
        "a factor that is so large that it protects hardly anything"
        if epsilon > HUGE
        else f"a factor of {factor(epsilon)}"
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


def _listed(files: Sequence[File], others: Sequence[str]) -> str:
    """A table of all files, the report first and the universe last."""
    rows = [(name, OTHERS.get(name, "Added by the publisher."), "") for name in [*others, "manifest.json"]]
    rows.sort(key=lambda row: list(OTHERS).index(row[0]) if row[0] in OTHERS else len(OTHERS))
    first = [row for row in rows if row[0] == "report.html"]
    rest = [row for row in rows if row[0] != "report.html"]
    data = [(f.path, f.about, f"{f.rows:,}") for f in files]
    lines = [
        f"| {markdown_code(path)} | {markdown_text(about)} | {many} |"
        for path, about, many in [*first, *data, *rest]
    ]
    return "\n".join(["| file | what it holds | rows |", "|---|---|---:|", *lines])


def _columns(files: Sequence[File]) -> Iterator[str]:
    """Every column once: those that name rows first, then the numbers."""
    found: dict[str, list[Column]] = {}
    for file in files:
        for column in file.columns:
            found.setdefault(column.name, []).append(column)
    names = [n for n in found if n not in NUMBERS] + [n for n in NUMBERS if n in found]
    lines = [
        f"| {markdown_code(n)} | {_kind(found[n])} | {markdown_text(found[n][0].meaning)} |" for n in names
    ]
    yield "\n".join(["| column | type | meaning |", "|---|---|---|", *lines])
    if any(column.missing for held in found.values() for column in held):
        yield "A number is missing where there is none: nothing was measured, estimated or given an interval there."


def _kind(columns: Sequence[Column]) -> str:
    kinds = {"string": "text", "integer": "whole number", "any": "bytes"}
    return kinds.get(columns[0].type, columns[0].type)


def _advice(release: Release, others: Sequence[str]) -> Iterator[str]:
    sure, noun = f"{100 * (release.confidence or 0.9):g} %", counted(release.features.universe)
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
        yield from _sums(release)
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
    yield READING.format(
        table=printable(json.dumps(table, ensure_ascii=False)), by=list(release.features.features[table].by)
    )


def _sums(release: Release) -> Iterator[str]:
    """Which sums were measured, and what tells the error of others."""
    published, public = Published(release), release.recipe.public
    known = [
        n
        for n in release.features.features
        if n != SINGLETON and (n in public or published.law(n) is not None)
    ]
    if known:
        yield (
            f"Small counts are mostly noise. Sums that have a table of their own were measured as such ({markdown_text(listed(known))}). Any other sum adds up the "
            "errors of its parts: `release.ask` below and `cbdp ask` tell its interval."
        )


def _citation(release: Release) -> str:
    said = {} if release.about is None else release.about.texts()
    known = where_and_when(release)
    pieces = [said.get("publisher"), title_of(release), known]
    claim = release.promise
    promise = (
        f"Differentially private, {strength(claim)}{besides(claim)} for each {protected(claim.unit, counted(release.features.universe))}"
        if claim.holds
        else None
    )
    version = release.stored.software["cbdp"] if release.stored else __version__
    made = f"Made with cbdp {version}"
    line = ". ".join(markdown_text(piece.rstrip(".")) for piece in [*pieces, promise, made] if piece)
    return f"> {line}.\n\nTo name this very release, add the SHA-256 of `manifest.json`."


def _licence(release: Release) -> str:
    said = {} if release.about is None else release.about.texts()
    who = said.get("contact") or said.get("publisher") or "the publisher"
    line = (
        markdown_text(said["licence"])
        if "licence" in said
        else f"No licence is stated. Ask {markdown_text(who)} before you use the data."
    )
    contact = f"\n\nContact: {markdown_text(said['contact'])}" if "contact" in said else ""
    return line + contact
