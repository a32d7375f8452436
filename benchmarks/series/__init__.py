"""Thirty days as a series: error per day and per month, by how the series is made, with the statement for one person.

    python -m benchmarks series --data ../shared/data --days 30

`data` has the days, `ways` the ways to publish them (add one there), `errors` compares with the truth, `table` prints.
"""

from __future__ import annotations

import argparse
import datetime as dt

from benchmarks.series.data import SEPTEMBER, bikes, city
from benchmarks.series.errors import errors_of
from benchmarks.series.table import lines_of
from benchmarks.series.ways import WAYS


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks series", description=__doc__)
    parser.add_argument(
        "--data", help="folder with bayarea_bike_2014; without it only the generated city is run"
    )
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument(
        "--from",
        dest="first",
        type=dt.date.fromisoformat,
        default=SEPTEMBER,
        help="the first day of the bikes",
    )
    parser.add_argument(
        "--epsilon", type=float, default=1.0, help="of each day, for what one person does on it"
    )
    parser.add_argument("--max-trips", type=int, default=2, help="of one person on one day (default 2)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--way", action="append", help=f"only these: {', '.join(WAYS)}")
    options = parser.parse_args(argv)
    cases = [city(options.days, options.max_trips)]
    if options.data:
        cases.append(bikes(options.data, options.days, options.max_trips, options.first))
    for case in cases:
        found = {}
        for name in options.way or WAYS:
            published = WAYS[name].publish(case, options.epsilon, options.seed)
            found[name] = errors_of(case, published)
        print("\n".join(lines_of(case, options.epsilon, found)), flush=True)
    return 0
