"""The case study's Table 2 (which part of the mechanism matters), and which choices account for the differences.

Claim: two rows of the case study's Table 2 cannot be reproduced by anything that was tried (docs/results/ablation.md).

python -m benchmarks ablation [--runs 50] [--quick] [--no-explain]
"""

from __future__ import annotations

import argparse

from benchmarks.ablation.case import PUBLISHED
from benchmarks.ablation.report import explain
from benchmarks.ablation.table import HEADING, table


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks ablation", description=__doc__)
    parser.add_argument("--runs", type=int, default=50, help="simulated releases per figure of the table")
    parser.add_argument("--quick", action="store_true", help="a few runs of everything")
    parser.add_argument(
        "--explain", action=argparse.BooleanOptionalAction, default=True, help="experiment too"
    )
    options = parser.parse_args(argv)
    runs, tries, each = (3, 1, 1) if options.quick else (options.runs, 10, 2)
    print(HEADING.format(runs=runs))
    for day in PUBLISHED:
        print(table(day, runs), end="\n\n", flush=True)
    if options.explain:
        explain(runs, tries, each)
    return 0
