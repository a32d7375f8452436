"""`cbdp check`: what a configuration would release, on one screen. Spends nothing, reads no trip."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cbdp.app.cli import COMMANDS
from cbdp.errors import InputError

if TYPE_CHECKING:
    from cbdp.app.config import Config
    from cbdp.app.plan import Plan
    from cbdp.app.plan.periods import Slot


def main(argv: Sequence[str]) -> int:
    """Explain a plan."""
    options = _options(argv)
    for wish in options.within:
        _check_wish(wish)
    from cbdp.app.explain import answers, explain
    from cbdp.app.explain.running import running_lines
    from cbdp.app.explain.screen import wrapped
    from cbdp.app.explain.stated import stated

    plan = planned(options.config)
    said = answers(plan, options.within)
    told = explain(plan)
    if options.json:
        print(json.dumps(stated(plan, told, said), indent=1, ensure_ascii=False))
        return 0
    if options.picture:
        print(told.mermaid)
        return 0
    body = [told.text] if options.all else [told.screen, *wrapped(running_lines(plan)[:1])]
    print("\n".join([*body, *wrapped(said), *_series(options.config, plan)]))
    return 0


def _options(argv: Sequence[str]) -> argparse.Namespace:
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


def planned(path: str, *, must_fit: bool = True) -> Plan:
    """What a configuration means; of a series, the next release that is to be made."""
    from cbdp.app.config import read
    from cbdp.app.plan import plan

    config = read(path)
    return plan(config, None if config.series is None else _next_slot(config), must_fit=must_fit)


def _next_slot(config: Config) -> Slot | None:
    """The next release of a series that is to be made; None: the first."""
    from cbdp.app.plan.periods import due_slots
    from cbdp.app.series.pending import pending
    from cbdp.app.series.today import last_ended_day

    return next(iter(pending(config, due_slots(config, last_ended_day(config)))), None)


def _series(path: str, plan: Plan) -> Iterator[str]:
    """Where a release stands in its series."""
    if plan.slot is None:
        return
    from cbdp.app.config import read
    from cbdp.app.series import status_of
    from cbdp.app.series.today import last_ended_day

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
