"""`cbdp inspect`: print an inspection, or write it to a file that says what it is."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from cbdp.app.cli import COMMANDS


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="cbdp inspect", description=COMMANDS["inspect"][1])
    parser.add_argument("config", help="configuration file")
    parser.add_argument(
        "--out",
        help="write it to this new file instead, as text or (.html) as a page; never publish it: its name must contain 'internal'",
    )
    options = parser.parse_args(argv)
    from cbdp.app.config import read
    from cbdp.app.inspecting import causes_of, look, reading_of
    from cbdp.app.inspecting.taps import ROWS, linked_taps
    from cbdp.app.inspecting.words import Section, as_page, as_text, sections
    from cbdp.app.new_file import check_new, write_new
    from cbdp.report.markup import INTERNAL

    path = Path(options.out) if options.out else None
    if path is not None:
        check_new(path, internal=True)
    reading = reading_of(read(options.config))
    found = look(reading)
    made = sections(reading, found, causes_of(reading, found))
    if reading.config.series is not None:
        from cbdp.app.series.late import closed_periods, lines_of

        closed = lines_of(closed_periods(reading), "rows" if linked_taps(reading) is None else ROWS)
        made.append(Section("Closed periods of the series", tuple(closed)))
    if path is None:
        print(as_text(made))
        return 0
    web = path.suffix.lower() in (".html", ".htm")
    write_new(path, as_page(made) if web else as_text(made) + "\n", internal=True)
    print(f"{INTERNAL}\n{path}")
    return 0
