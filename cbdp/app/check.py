"""`cbdp check` and `cbdp plan`: what a configuration would release, on one screen or on one offline page. Neither spends anything or reads a trip."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cbdp.app.cli import COMMANDS
from cbdp.errors import InputError

if TYPE_CHECKING:
    from cbdp.app.plan import Plan
    from cbdp.config import Config
    from cbdp.forecast.calendar import Slot


def check_main(argv: Sequence[str]) -> int:
    """Explain a plan."""
    options = _check_options(argv)
    for wish in options.within:
        _check_wish(wish)
    from cbdp.forecast import answers, explain
    from cbdp.forecast.check import plan_as_json, wrapped
    from cbdp.forecast.running import running_lines

    plan = plan_of_file(options.config)
    wish_answers = answers(plan, options.within)
    explanation = explain(plan)
    if options.json:
        print(json.dumps(plan_as_json(plan, explanation, wish_answers), indent=1, ensure_ascii=False))
        return 0
    if options.picture:
        print(explanation.mermaid)
        return 0
    body = [explanation.text] if options.all else [explanation.screen, *wrapped(running_lines(plan)[:1])]
    print("\n".join([*body, *wrapped(wish_answers), *_place_in_series(options.config, plan)]))
    return 0


def _check_options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="cbdp check", description=COMMANDS["check"][1])
    parser.add_argument("config", help="configuration file")
    parser.add_argument(
        "--within",
        metavar="FEATURE=PERCENT",
        action="append",
        default=[],
        help="also say which ε makes a feature so precise, for example zone=5",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--all", "--verbose", action="store_true", help="everything, section by section")
    how.add_argument("--picture", action="store_true", help="only the tables as a Mermaid graph")
    how.add_argument("--json", action="store_true", help="only the numbers, for programs")
    return parser.parse_args(argv)


def plan_of_file(path: str, *, must_fit: bool = True) -> Plan:
    """What a configuration means; of a series, the next release that is to be made."""
    from cbdp.app.plan import plan
    from cbdp.config import read

    config = read(path)
    return plan(config, None if config.series is None else _next_slot(config), must_fit=must_fit)


def _next_slot(config: Config) -> Slot | None:
    """The next release of a series that is to be made; None: the first."""
    from cbdp.app.series.continuity import last_ended_day
    from cbdp.forecast.calendar import due_slots, pending

    return next(iter(pending(config, due_slots(config, last_ended_day(config)))), None)


def _place_in_series(path: str, plan: Plan) -> Iterator[str]:
    """Where a release stands in its series."""
    if plan.slot is None:
        return
    from cbdp.app.series import status_of
    from cbdp.app.series.continuity import last_ended_day
    from cbdp.config import read

    config = read(path)  # the plan's is that of one release
    yield ""
    yield f"This is release {plan.slot.label} of a series:"
    yield from status_of(config, last_ended_day(config)).lines()


def _check_wish(wish: str) -> None:
    from cbdp.privacy.numbers import positive

    feature, _, percent = wish.partition("=")
    try:
        positive(percent.replace("%", "").strip())
    except InputError:
        feature = ""
    if not feature:
        raise InputError(f"--within takes FEATURE=PERCENT, for example zone=5, not {wish!r}")


# `cbdp plan`: the page


def plan_main(argv: Sequence[str]) -> int:
    """Write the page of a configuration."""
    parser = argparse.ArgumentParser(prog="cbdp plan", description=COMMANDS["plan"][1])
    parser.add_argument("config", help="configuration file")
    parser.add_argument(
        "--page", metavar="FILE", default="plan.html", help="where to write it (default: plan.html)"
    )
    options = parser.parse_args(argv)
    from cbdp.app.new_file import check_new, write_new
    from cbdp.forecast.page import page_facts
    from cbdp.forecast.plan_page import build

    path = Path(options.page)
    check_new(path, internal=False)
    plan = plan_of_file(options.config, must_fit=False)
    print("working out what other periods and zones would do …", file=sys.stderr, flush=True)
    write_new(path, build(page_facts(plan)))
    print(f"{path}\nOpen it in a browser: it needs no network, and no trip was read.")
    return 0
