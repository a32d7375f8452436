"""What `cbdp init` tells whoever ran it."""

from __future__ import annotations

import tomllib
from pathlib import Path

from cbdp.app.config.choices import UNKNOWN
from cbdp.app.init.texts import EDIT


def told(file: Path) -> list[str]:
    """What was understood, what is left to edit, and what comes next: for whoever ran `cbdp init`."""
    text = file.read_text("utf-8")
    data = tomllib.loads(text)["data"]
    columns = data.get("columns", {})
    rows = "taps" if {"location", "action"} & set(columns) else "trips"
    kind = f"counts of {rows}" if "count" in columns else rows
    named = ", ".join(f"{role} is {column!r}" for role, column in columns.items() if column != UNKNOWN)
    edit = [
        f"{line.strip('# ').partition(' ')[0]} in line {n}"
        for n, line in enumerate(text.splitlines(), 1)
        if EDIT in line.partition("#")[2]
    ]
    return [
        f"wrote {file} for a file of {kind}",
        *([f"  {named}"] if named else []),
        f"you have to edit, marked {EDIT} {', '.join(edit)}"
        if edit
        else "nothing has to be edited; look it over",
        f"next: cbdp inspect {file} (how the rows are read), then cbdp check {file}",
    ]
