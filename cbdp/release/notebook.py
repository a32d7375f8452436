"""What a notebook shows of a release: what it is, how strongly it protects, and its tables."""

from __future__ import annotations

from typing import Any

from cbdp.features.showing import as_html
from cbdp.privacy.unit import Person
from cbdp.release.counted import counted
from cbdp.release.release import Release
from cbdp.release.roles import listed
from cbdp.release.words import bounded, guarantee, title_of, what, where_and_when
from cbdp.text import html_text, message, printable


def release_html(release: Release) -> str:
    """A few lines and the list of tables, in the notebook's own colours."""
    unit = release.promise.unit
    lines = [
        where_and_when(release),
        f"{what(release)}.",
        f"{_capital(guarantee(release))}.",
        f"{_capital(bounded(unit, counted(release.features.universe)))}: the true numbers may be higher."
        if isinstance(unit, Person)
        else None,
    ]
    said = "".join(f"<div>{html_text(line)}</div>" for line in lines if line)
    return f'<div><div style="font-size:1.2em;font-weight:600">{html_text(title_of(release))}</div>{said}{_tables(release)}</div>'


def release_text(release: Release) -> str:
    """The same in three lines, for a terminal."""
    names = ", ".join(map(printable, _published(release)))
    known = where_and_when(release)
    head = f"{title_of(release)} ({known})" if known else title_of(release)
    return message(f"{printable(head)}\n{what(release)}; {guarantee(release)}\ntables: {names}")


def _published(release: Release) -> list[str]:
    return [name for name in release.features.features if name in release.tables or not release.tables]


def _tables(release: Release) -> str:
    features = [release.features.features[name] for name in _published(release)]
    columns: dict[str, list[Any]] = {
        "table": [f.name for f in features],
        "counts by": [listed(f.by) or "all trips together" for f in features],
        "counts": [release.features.size(f.name) for f in features],
        "intervals": [_sure(release) if f.name in release.intervals else "none" for f in features],
    }
    return as_html(
        "Tables",
        columns,
        ["counts"],
        list(range(len(features))),
        note='release.table("…") shows one; release.ask(…) answers other questions; release.plot.day(), .flows() and .map() draw',
    )


def _sure(release: Release) -> str:
    return f"{100 * (release.confidence or 0.9):g} %"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
