"""`cbdp plan`: one offline page to decide with. Spends nothing, reads no trip."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from cbdp.app.cli import COMMANDS


def main(argv: Sequence[str]) -> int:
    """Write the page of a configuration."""
    parser = argparse.ArgumentParser(prog="cbdp plan", description=COMMANDS["plan"][1])
    parser.add_argument("config", help="configuration file")
    parser.add_argument(
        "--page", metavar="FILE", default="plan.html", help="where to write it (default: plan.html)"
    )
    options = parser.parse_args(argv)
    from cbdp.app.explain.command import planned
    from cbdp.app.new_file import check_new, write_new
    from cbdp.app.planning.facts import facts
    from cbdp.report.plan import build

    path = Path(options.page)
    check_new(path, internal=False)
    plan = planned(options.config, must_fit=False)
    print("working out what other periods and zones would do …", file=sys.stderr, flush=True)
    write_new(path, build(facts(plan)))
    print(f"{path}\nOpen it in a browser: it needs no network, and no trip was read.")
    return 0
