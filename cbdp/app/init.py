"""What `cbdp init` writes: a commented configuration for the user's files, to be read and edited."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from cbdp.app.config.choices import budgets, formats
from cbdp.app.guessing import Guess, guess
from cbdp.app.new_file import write_new
from cbdp.errors import InputError

GENERIC = {"trips", "trip", "data", "rides", "journeys", "records", "table"}


def write(
    path: str | Path, trips: str | Path | Sequence[str | Path], stops: str | Path | None = None
) -> Path:
    """Write a configuration for these files; one that is there is left alone."""
    file = Path(path)
    text = starter(trips, stops, file.absolute().parent)
    write_new(file, text)
    return file


def starter(
    trips: str | Path | Sequence[str | Path], stops: str | Path | None = None, folder: Path | None = None
) -> str:
    """The text of a configuration in this folder."""
    listed = [trips] if isinstance(trips, str | Path) else list(trips)
    if not listed:
        raise InputError("there are no trips: name at least one file")
    return _render(
        [_relative(t, folder) for t in listed],
        None if stops is None else _relative(stops, folder),
        guess([str(t) for t in listed], stops),
    )


def _relative(given: str | Path, folder: Path | None) -> str:
    """A path as the configuration's folder sees it; one that was given in full stays so, and a URL as well."""
    if "://" in str(given) or folder is None or Path(given).is_absolute():
        return str(given)
    return Path(os.path.relpath(given, folder)).as_posix()


def _name(trips: Sequence[str]) -> str:
    """A name for the data set: of the file or table, or of its folder where every file is called so."""
    first = trips[0].rpartition("::")[2] if "://" in trips[0] else trips[0]
    path = Path(first).absolute()
    stem = path.name.partition(".")[0].strip("*?-_ ") or path.parent.name
    return (
        path.parent.name if stem.lower() in GENERIC and "://" not in trips[0] and path.parent.name else stem
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _inline(table: Mapping[str, str]) -> str:
    return "{ " + ", ".join(f"{key} = {_quoted(value)}" for key, value in table.items()) + " }"


def _render(trips: Sequence[str], stops: str | None, found: Guess) -> str:
    sections = [
        HEAD,
        'preset = "odmts"  # tables by time, by zones and time, and by mode and time, if there are zones and modes',
        _data(trips, stops, found),
        "\n".join(_universe(found)),
        FEATURES,
        _privacy(found.columns.get("person", "card_id")),
        MECHANISM,
        _output(),
    ]
    return "\n\n".join(sections) + "\n"


HEAD = """\
# A configuration of cbdp. Read it, edit it, then run:
#   cbdp check THIS_FILE            explains what would be released; spends nothing and reads no trip
#   cbdp ledger create THIS_FILE    once, before the first release: begins the account of what is spent
#   cbdp release THIS_FILE          counts, spends and publishes
# Lines marked EDIT could not be guessed. Paths are relative to this file."""

FEATURES = """\
# Further tables, each with a name and what it groups by:
# [[feature]]
# name = "departures"
# by = ["origin", "time"]"""

MECHANISM = """\
[mechanism]
name = "constraint-based"
preset = "best"            # or "paper": as it was published, with ε shared evenly and least squares alone
# estimator = "posterior"  # or "projection", which weighs features by weights = "size"
# rounding = "few"         # whole trips on few trip types; "nearest": as close to the estimate as possible
# prior = "boardings.csv"  # public weights (columns stop and weight) that say where trips are expected
solver = "newton\""""


def _data(trips: Sequence[str], stops: str | None, found: Guess) -> str:
    given = _quoted(trips[0]) if len(trips) == 1 else "[" + ", ".join(map(_quoted, trips)) + "]"
    lines = [
        "[data]",
        f'trips = {given}  # a file, a list of files, a pattern, or a table: "duckdb:///city.db::trips"',
        f"id = {_quoted(_name(trips))}  # a public name of the data set: keep it as long as the trips are the same",
        '# riders = "card holders"  # if other data sets hold trips of the same people: one ledger and one cap for all of them',
        _columns(found.columns),
    ]
    if found.others:
        lines.append(f"# other columns of the trips: {', '.join(' '.join(n.split()) for n in found.others)}")
    lines += _stops(stops, found)
    if found.text_times:
        lines.append(
            '# time_format = "%m/%d/%Y %H:%M"  # for times like 8/29/2013 14:13; without it they are read like 2013-08-29 14:13'
        )
    zone = (
        "name yours; otherwise times count in their own zone" if found.zoned_times else "if times are in UTC"
    )
    return "\n".join(
        [
            *lines,
            f'# timezone = "America/Los_Angeles"  # {zone}',
            "# expected_trips = 100000  # a public order of magnitude, so that `check` can tell the errors to expect",
            "# expected_filled = 0.05   # a public guess of the share of trip types that have any trips, likewise",
        ]
    )


def _columns(guessed: Mapping[str, str]) -> str:
    roles = {role: guessed.get(role, "?") for role in ("origin", "destination", "time")}
    if "person" in guessed:
        roles["person"] = guessed["person"]
    missing = [role for role, column in roles.items() if column == "?"]
    edit = f"EDIT: the column of {', '.join(missing)}" if missing else "guessed by their names"
    return f"columns = {_inline(roles)}  # {edit}"


def _stops(stops: str | None, found: Guess) -> list[str]:
    if stops is None:
        return [
            'stops = "stops.csv"  # EDIT: a public list of all stops (CSV, GTFS or GeoJSON), used or not',
            '# stop_columns = { id = "stop_id", name = "stop_name", lat = "lat", lon = "lon" }',
        ]
    named = [f"stop_columns = {_inline(found.stop_columns)}"] if found.stop_columns else []
    return [f"stops = {_quoted(stops)}", *named]


def _universe(found: Guess) -> list[str]:
    if found.zone is not None:
        zones = f'zones = {{ column = {_quoted(found.zone)} }}  # or {{ clusters = 8 }}, or {{ polygons = "zones.geojson" }}'
    elif found.located:
        clusters = max(1, min(8, found.stops // 4))
        zones = f"zones = {{ clusters = {clusters} }}  # compact zones made from the coordinates"
    else:
        zones = '# zones = { column = "zone" }  # or { clusters = 8 }, or { polygons = "zones.geojson" }'
    return [
        "[universe]",
        'time = { start = "00:00", end = "24:00", every = "1h" }  # trips at other times are left out',
        '# days = ["weekday", "saturday", "sunday"]  # or { first = "2026-03-02", last = "2026-03-08" }: a dimension `day`',
        "origin_is_destination = true  # false: no trip ends where it began; such trips are left out",
        zones,
        '# modes = { distance_km = [1, 2, 4] }  # or { table = "pairs.csv" }, or { column = "mode", values = ["bus"] }',
        '# dimensions = { fare = ["adult", "child"] }  # further columns to count by, with all their values',
    ]


def _privacy(person: str) -> str:
    others = ", ".join(_quoted(name) for name in budgets().table if name not in ("balanced", "optimal"))
    return "\n".join(
        [
            "[privacy]",
            "epsilon = 1.0           # of the whole release; smaller is more private and noisier",
            f'unit = "trip"           # or {{ person = {_quoted(person)}, max_trips = 4 }}: hides whether a person travelled at all',
            f'budget = "balanced"     # what epsilon is spent on; also {others},',
            "                        # or { total = 0.1, … } with a share for every table; `check` shows what each would do",
            "# target = { singleton = 1, zone = 2 }  # instead of budget: how much the error of each table matters",
            'ledger = "ledger.sqlite"',
            "cap = 1.0               # the most that may ever be spent on it: fixed when the ledger is created",
        ]
    )


def _output() -> str:
    others = ", ".join(name for name in formats().table if name != "csv")
    return f"""\
[output]
path = "release"        # a folder that does not exist yet
confidence = 0.9        # of the intervals
# export = ["csv"]      # also: {others}
# noise_bound = 0.5     # `check` warns of tables whose expected relative noise is above this"""
