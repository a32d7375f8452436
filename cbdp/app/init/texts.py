"""The fixed texts of a configuration that `cbdp init` writes, and how values are written in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

EDIT = "EDIT:"  # marks what could not be guessed

HEAD = """\
# A configuration of cbdp. Read it, edit it, then run:
#   cbdp check THIS_FILE      explains what would be released; spends nothing and reads no trip
#   cbdp inspect THIS_FILE    shows you, and nobody else, how your trips are read: what counts, what does not, and why
#   cbdp release THIS_FILE    counts, spends and publishes
# Lines marked EDIT could not be guessed; correct them first. Paths are relative to this file."""

PRESET = """\
# Tables by time, and as far as the universe has them: by zones and time, by mode and time, by day, by day and time, by each further
# dimension; by stop where there are no zones. `check` names what no table tells apart.
preset = "odmts\""""

STOP_TABLES = """\
# Boardings and alightings at every stop. If nobody reads counts by stop, delete both: the other tables then get more of epsilon.
[[feature]]
name = "origin"
by = ["origin"]

[[feature]]
name = "destination"
by = ["destination"]
"""

FEATURES = """\
# Further tables, each with a name and what it groups by. Each takes a share of epsilon from the others:
# [[feature]]
# name = "departures"
# by = ["origin", "time"]"""

MECHANISM = """\
[mechanism]
name = "constraint-based"
preset = "best"            # or "paper": as it was published, with ε shared evenly and least squares alone
# estimator = "posterior"  # or "projection", which weighs features by weights = "size"
# rounding = "nearest"     # whole trips near the estimates; "few": on few trip types, for simulations of riders
# prior = "boardings.csv"  # public weights (columns stop and weight) that say where trips are expected
solver = "newton\""""

ABOUT = """\
# What the release says about itself: in its report and in every file. Public, and all of it optional:
# [about]
# title = "Bus trips in Ann Arbor"
# place = "Ann Arbor, Michigan"
# period = "March 2026"
# publisher = "Transportation Authority"
# licence = "CC BY 4.0"
# contact = "opendata@example.org\""""

# how times are often written, with how each looks
TIME_FORMATS = {
    "%d/%m/%Y %H:%M": "31/01/2026 08:14, the day first",
    "%m/%d/%Y %H:%M": "01/31/2026 08:14, the month first",
    "%m/%d/%Y %I:%M:%S %p": "01/31/2026 08:14:00 AM",
    "%d.%m.%Y %H:%M": "31.01.2026 08:14",
    "epoch_s": "1769847240, seconds since 1970; epoch_ms: thousandths",
}
DATE_FORMATS = {
    "%d/%m/%Y": "31/01/2026, the day first",
    "%m/%d/%Y": "01/31/2026, the month first",
    "%Y%m%d": "20260131",
}


def quoted(text: str) -> str:
    """A text in quotes, as TOML has it."""
    return json.dumps(text, ensure_ascii=False)


def inline(table: Mapping[str, str]) -> str:
    """A table in one line."""
    return "{ " + ", ".join(f"{key} = {quoted(value)}" for key, value in table.items()) + " }"


def listed(texts: Sequence[str]) -> str:
    """A text, or a list where there are several."""
    return quoted(texts[0]) if len(texts) == 1 else "[" + ", ".join(map(quoted, texts)) + "]"
