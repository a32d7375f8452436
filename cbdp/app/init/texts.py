"""The fixed texts of a configuration that `cbdp init` writes, and how values are written in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

EDIT = "EDIT:"  # marks what could not be guessed
OTHERS = "# other columns of the trips: "

HEAD = """\
# A configuration of cbdp. What stands behind a # is a note; to use a setting that stands in one, take away its #.
#   cbdp inspect THIS_FILE    shows you, and nobody else, how your rows are read: what counts, what does not, and why
#   cbdp check THIS_FILE      tells what would be released; spends nothing and reads no trip
#   cbdp release THIS_FILE    counts, spends and publishes
# Lines marked EDIT could not be guessed; correct them first. Paths are relative to this file."""

PRESET = """\
# The usual tables of trips: by time, by zones and time (without zones by stop), by day and by mode if you add these below.
preset = "odmts\""""

DATA = "# 1. Your files\n[data]"

UNIVERSE = """\
# 2. What is counted: trips from every stop to every stop, in every period. "From A to B at 8" is one combination, or trip type;
# all of them together are the universe.
[universe]"""

UNIVERSE_OF_TAPS = """\
# 2. What is counted: taps at every stop, in every period. "At A at 8" is one combination; all of them together
# are the universe.
[universe]"""

PRIVACY = "# 3. How it is protected\n[privacy]"

ABOUT = """\
# 4. What the release says about itself, in its report and in every file. Public, and all of it optional
[about]
# title = "Bus trips in Ann Arbor"
# place = "Ann Arbor, Michigan"
# period = "March 2026"
# publisher = "Transportation Authority"
# licence = "CC BY 4.0"
# contact = "opendata@example.org\""""

ENOUGH = f"""\
# {"-" * 70}
# You need not change anything below this line.
# {"-" * 70}"""

STOP_TABLES = """\
# Two more tables: boardings and alightings at every stop. If nobody reads them, delete both: the other tables then get more of epsilon.
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
# by = [{by}]"""

MECHANISM = """\
# How the published counts are worked out from the noisy ones.
[mechanism]
name = "constraint-based"
preset = "best"            # or "paper": as it was first published, with equal shares of epsilon
# rounding = "nearest"     # or "few": on few trip types, for simulations of single riders
# prior = "boardings.csv"  # if there are public numbers of how busy stops are (columns stop and weight): they help small counts
solver = "newton"          # the program that does it"""

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
