"""What `cbdp init` tells whoever ran it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cbdp.app.config.choices import UNKNOWN
from cbdp.app.guessing.stops import guess_stops
from cbdp.app.init.texts import EDIT, OTHERS

MOST = 8  # columns that are named


def told(file: Path) -> list[str]:
    """What was understood, what is left to edit, and what comes next: for whoever ran `cbdp init`."""
    text = file.read_text("utf-8")
    written = tomllib.loads(text)
    columns = written["data"].get("columns", {})
    edit = [
        f"{line.strip('# ').partition(' ')[0]} in line {n}"
        for n, line in enumerate(text.splitlines(), 1)
        if EDIT in line.partition("#")[2]
    ]
    return [
        f"wrote {file} for a file of {_kind(columns)}",
        *([f"  {_named(columns)}"] if _named(columns) else []),
        *(f"  {line}" for line in ([] if _asked(edit, "stops") else _stops(written, file.absolute().parent))),
        *(f"  {line}" for line in _protected(written, text)),
        f"you have to edit, marked {EDIT} {', '.join(edit)}"
        if edit
        else "nothing has to be edited; look it over",
        f"next: cbdp inspect {file} (how the rows are read), then cbdp check {file}",
    ]


def _asked(edit: list[str], key: str) -> bool:
    """Whether a setting is left to edit."""
    return any(line.startswith(f"{key} ") for line in edit)


def _kind(columns: Mapping[str, str]) -> str:
    if "action" in columns:
        return "taps, which are linked to trips"
    rows = "taps, which are counted by stop" if "location" in columns else "trips"
    return f"counts of {rows.partition(',')[0]}" if "count" in columns else rows


def _named(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{role} is {column!r}" for role, column in columns.items() if column != UNKNOWN)


def _protected(written: Mapping[str, Any], text: str) -> list[str]:
    """Where each row is protected on its own although a column may tell people apart: nobody shall overlook it."""
    columns = written["data"].get("columns", {})
    if written["privacy"]["unit"] != "trip" or "count" in columns:
        return []
    row = "tap" if "location" in columns else "trip"
    line = re.search(r'^unit = "trip".*$', text, re.MULTILINE)
    known = None if line is None else re.search(r"# (EDIT:.*)?person = (\"[^\"]*\")", line[0])
    if line is not None and known is not None:
        sure = "seems to tell" if "seems to tell" in line[0] else "may tell"
        who = "people apart" if sure == "seems to tell" else "people apart; look at it"
        return [
            f"ATTENTION: column {known[2]} {sure} {who}, and each {row} is protected on its own: a person with many trips is not hidden",
            f'  to protect people, write unit = {{ person = {known[2]}, max_trips = 4, per = "day" }}',
        ]
    others = re.search(rf"^{OTHERS}(.*)$", text, re.MULTILINE)
    named = others[1].split(", ") if others else []
    if not named:
        return []
    shown = ", ".join(named[:MOST]) + (", …" if len(named) > MOST else "")
    return [
        f"each {row} is protected on its own; no column of cards or persons was found among {shown}",
        '  if one of them tells people apart, write unit = { person = "its name", max_trips = 4, per = "day" }',
    ]


def _stops(written: Mapping[str, Any], folder: Path) -> list[str]:
    """What is read of the stops, and where their zones come from: a column that was taken by its name may be the wrong one."""
    data, zones = written["data"], written["universe"].get("zones", {})
    path = folder / data["stops"]
    found = guess_stops(path, data.get("stop_columns"), zones.get("column"))
    columns = _named(found.roles) or "ids, names and coordinates as the format has them"
    if "column" in zones:
        said = f"zones: column {zones['column']!r} of the stops, {found.zones} zones"
    elif "balanced" in zones:
        said = f"zones: {zones['balanced']}, made from the coordinates; no column of zones was found"
    else:
        said = "zones: none; no column of zones and no coordinates were found"
    return [f"of the {found.number:,} stops, {columns}", said]
