"""`cbdp ledger`: create a ledger, once, before the first release; show what was spent and verify the chain."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cbdp.app.cli import COMMANDS
from cbdp.app.printing import aligned

if TYPE_CHECKING:
    from cbdp.privacy.ledger import Entry, Ledger, Spending

FAILED = 1
SHOWN = 40  # characters of a field


def main(argv: Sequence[str]) -> int:
    options = _parser().parse_args(_with_action(argv))
    if options.action == "create":
        return _create(options.config)
    return _show(options.path, options.contains)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cbdp ledger", description=COMMANDS["ledger"][1])
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    about = "create the ledger that a configuration names, once, before the first release"
    actions.add_parser("create", help=about, description=about).add_argument(
        "config", help="configuration file"
    )
    about = "show what was spent and verify the chain (`cbdp ledger FILE` does the same)"
    show = actions.add_parser("show", help=about, description=about)
    show.add_argument("path", help="ledger file")
    show.add_argument(
        "--contains", metavar="HEAD", help="also check that the ledger head of a manifest is in it"
    )
    return parser


def _with_action(argv: Sequence[str]) -> list[str]:
    """Without an action a ledger is shown; one whose file is called `create` is shown as ./create."""
    known = ("create", "show", "-h", "--help")
    return list(argv) if not argv or argv[0] in known else ["show", *argv]


def _create(config: str) -> int:
    from cbdp.app.config import read
    from cbdp.app.plan import plan
    from cbdp.app.publish.opening import opened

    planned = plan(read(config))
    existed = planned.account.exists
    with opened(planned, create=True) as ledger:
        state = "exists already, nothing was changed" if existed else "created"
        left = f"cap {ledger.caps}, spent {ledger.spent}"
        print(
            f"{state}: {ledger.path} of {ledger.owner}, {left}\nkeep copies of it: nothing else knows what was spent"
        )
    return 0


def _show(path: str, contains: str | None) -> int:
    from cbdp.privacy.ledger import Ledger, LedgerError

    with Ledger.view(path) as opened:
        try:
            opened.verify()
        except LedgerError as broken:
            return _failed(str(broken))
        print("\n".join(_lines(opened)))
        if contains and not opened.contains(contains):
            return _failed(
                f"{path} does not contain {contains}: it is another ledger, or entries were cut off"
            )
    return 0


def _lines(ledger: Ledger) -> Iterator[str]:
    if ledger.cap.is_unlimited:
        yield f"{ledger.owner}: {ledger.spent} spent in all; cap {ledger.caps}"
    else:
        yield f"{ledger.owner}: {ledger.spent} of {ledger.caps} spent, {ledger.left} left"
    spending = ledger.spending()
    if spending:
        yield from ("", *_table(spending), "")
    if any(charge.covers is not None and charge.covers.first is not None for charge in ledger.charges()):
        yield from (*_person(ledger), "")
    for entry in ledger.entries():
        yield f"{entry.sequence:>5}  {entry.hash[:12]}  {entry.event:<10} {_told(entry)}"
    yield f"the chain is whole; id {ledger.id}, head {ledger.head}"


def _table(spending: dict[str, Spending]) -> list[str]:
    from cbdp.privacy.ledger import Spending

    rows = [("data set", "releases", "spent", "of that never published")]
    total = {"in all": sum(spending.values(), Spending())} if len(spending) > 1 else {}
    rows += [(n, str(s.releases), str(s.spent), str(s.unpublished)) for n, s in (spending | total).items()]
    return aligned(rows, right=range(1, 4))


def _person(ledger: Ledger) -> Iterator[str]:
    from cbdp.app.series.status import person_lines
    from cbdp.privacy.spending import statement

    return person_lines(statement(ledger.charges()), ledger.caps)


def _told(entry: Entry) -> str:
    shown = {name: text for name, text in entry.shown.items() if name not in ("request", "ledger")}
    return ", ".join(f"{name} {text[:SHOWN]}" for name, text in shown.items())


def _failed(why: str) -> int:
    print(f"cbdp: {why}", file=sys.stderr)
    return FAILED
