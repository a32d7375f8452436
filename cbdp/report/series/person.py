"""The statement for one person, in words and as a table."""

from __future__ import annotations

import math

from cbdp.privacy.ledger import Amount
from cbdp.privacy.ledger.amounts import SYMBOLS
from cbdp.privacy.spending import Statement, WorstCase
from cbdp.release.counted import TRIPS, Noun
from cbdp.report.markup import Html, join, table, tag

SAID = (
    "Noise protects what one person does. The more releases a person is in, the more all of them together may reveal. This table is "
    "the worst case of all that is published: for a person who is in every release, with as many trips as are counted. ε bounds by how much the releases may "
    "change anybody’s odds of guessing right whether the person is in the data: by at most a factor of e to the power of ε, except with a probability of δ."
)


def person(statement: Statement | None, noun: Noun = TRIPS) -> Html | None:
    """None where no ledger was given."""
    if statement is None:
        return None
    strict = any(w.strict != w.amount for w in statement.windows)
    rows = [
        [_span(w.days), *_prices(w, strict), "" if w.start is None else str(w.start)]
        for w in statement.windows
    ]
    head = ["Any", "ε at most", "δ", "Sum", *(["Strict sum"] if strict else []), "Highest from"]
    notes = [tag("p", noun.say(f"{note[0].upper()}{note[1:]}."), class_="note") for note in statement.notes]
    return join(
        tag("p", noun.say(SAID)), tag("div", table(head, rows, id="statement"), class_="scroll"), notes
    )


def _span(days: int | None) -> str:
    if days is None:
        return "since the start"
    return "1 day" if days == 1 else f"{days} days"


def _prices(worst: WorstCase, strict: bool) -> list[str]:
    delta = "0" if not worst.delta else f"{float(worst.delta):.2g}"
    epsilon = worst.shown if math.isfinite(worst.epsilon) else "no limit"
    return [epsilon, delta, _sum(worst.amount), *([_sum(worst.strict)] if strict else [])]


def _sum(amount: Amount) -> str:
    if amount.is_unlimited:
        return "no limit"
    return f"{SYMBOLS[amount.currency]} = {float(amount.value):.4g}"
