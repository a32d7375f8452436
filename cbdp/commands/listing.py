"""`cbdp ledger FILE` and `cbdp parts`: the entries of a ledger, and the parts of a table, as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from inspect import getdoc
from typing import TYPE_CHECKING, Any

from cbdp.commands.program import FILE, argument, group, option, say
from cbdp.parts import Parts
from cbdp.text import aligned

if TYPE_CHECKING:
    from cbdp.ledger import Entry, Ledger, TotalSpent


@group("ledger", default="show")
def ledger() -> None:
    """Create a ledger, or show what was spent and verify it; exit 1 if it is broken."""


BROKEN_EXIT_CODE = 1  # of a chain that does not verify


@ledger.command("show")
@argument("path", "ledger file", type=FILE)
@option("--contains", metavar="HEAD", about="also check that the ledger head of a manifest is in it")
def show_ledger(path: str, contains: str | None) -> int:
    """Show what was spent and verify the chain (`cbdp ledger FILE` does the same)."""
    from cbdp.ledger import Ledger, LedgerError

    with Ledger.view(path) as opened:
        try:
            opened.verify()
        except LedgerError as broken:
            say(f"cbdp: {broken}")
            return BROKEN_EXIT_CODE
        print("\n".join(_ledger_lines(opened)))
        if contains and not opened.contains(contains):
            say(f"cbdp: {path} does not contain {contains}: it is another ledger, or entries were cut off")
            return BROKEN_EXIT_CODE
    return 0


MAX_FIELD_CHARACTERS = 40  # characters of an entry's field; longer ones are cut


def _ledger_lines(ledger: Ledger) -> Iterator[str]:
    from cbdp.forecast.account import person_lines
    from cbdp.ledger.windows import privacy_statement

    if ledger.cap.is_unlimited:
        yield f"{ledger.owner}: {ledger.spent} spent in all; cap {ledger.caps}"
    else:
        yield f"{ledger.owner}: {ledger.spent} of {ledger.caps} spent, {ledger.left} left"
    spending = ledger.spending()
    if spending:
        yield from ("", *_spending_table(spending), "")
    if any(charge.covers is not None and charge.covers.first is not None for charge in ledger.charges()):
        yield from (*person_lines(privacy_statement(ledger.charges()), ledger.caps), "")
    for entry in ledger.entries():
        yield f"{entry.sequence:>5}  {entry.hash[:12]}  {entry.event:<10} {_entry_line(entry)}"
    yield f"the chain is whole; id {ledger.id}, head {ledger.head}"


def _spending_table(spending: dict[str, TotalSpent]) -> list[str]:
    from cbdp.ledger import TotalSpent

    rows = [("data set", "releases", "spent", "of that never published")]
    total = {"in all": sum(spending.values(), TotalSpent())} if len(spending) > 1 else {}
    rows += [(n, str(s.releases), str(s.spent), str(s.unpublished)) for n, s in (spending | total).items()]
    return aligned(rows, right=range(1, 4))


def _entry_line(entry: Entry) -> str:
    shown = {name: text for name, text in entry.shown.items() if name not in ("request", "ledger")}
    return ", ".join(f"{name} {text[:MAX_FIELD_CHARACTERS]}" for name, text in shown.items())


# Parts: those of a kind, also of installed packages


def part_rows(table: Parts[Any], shown: Mapping[str, str]) -> list[tuple[str, ...]]:
    """A title, and a row for each part: name, package, whether it can be used, capabilities (title → attribute), a line about it."""
    rows = [("name", "from", "installed", *shown, "about")]
    where = table.known()
    for name, part, broken in table.each():
        package = "cbdp" if name in table.table else where[name].partition(":")[0].partition(".")[0]
        if part is None:
            rows.append((name, package, "no", *("" for _ in shown), broken))
            continue
        here = _installed(part)
        about = (
            _about(part) if here else f"{_about(part)} — {getattr(part, 'install', 'its package is missing')}"
        )
        capabilities = (_capability_text(getattr(part, attribute, None)) for attribute in shown.values())
        rows.append((name, package, "yes" if here else "no", *capabilities, about))
    return rows


def _installed(part: Any) -> bool:
    return bool(part.installed()) if hasattr(part, "installed") else True


def _about(part: Any) -> str:
    """A part's line about itself; of one that has none, the first line of its documentation."""
    line = getattr(part, "about", "") or (getdoc(part) or "").partition("\n")[0]
    return str(line)


def _capability_text(capability: Any) -> str:
    if isinstance(capability, bool):
        return "yes" if capability else "no"
    return (
        "any"
        if capability is None
        else f"≤ {capability:,}"
        if isinstance(capability, int)
        else str(capability)
    )
