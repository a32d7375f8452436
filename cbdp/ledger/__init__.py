"""What some riders' privacy has cost so far: an append-only, hash-chained file that is charged before noise is drawn.

A ledger belongs to one data set, or to riders whose trips several data sets hold (a year of one card system in twelve monthly
files): what a release of any of them costs adds up under one cap.

The order of a release is: `reserve` (committed to disk), draw, write the files, `released`. A crash at any instant leaves
ε spent, never noise drawn without a charge. Nothing gives ε back: what is spent is the sum of all that was reserved.

ε is counted in whole units of 10⁻⁹ and δ in units of 10⁻¹⁸. A charge rounds up and the cap rounds down, so the sums are
exact and err on the side of privacy. Ten charges of 1/10 fit a cap of 1. Three charges of 1/3 do not: each costs
0.333333334. Reserve 1 at once instead.

The chain shows every change to an entry that another one follows. If the tail is cut off whole, the shorter chain is
sound in itself: keep the head that a release's manifest states, and ask `contains`.

No entry holds a time: how long a release takes depends on private rows, and heads are published.

A ledger counts ε, or ρ (zero-concentrated differential privacy), and never both: where it counts ρ, a charge of ε is ε²/2 of it.
Charges may state the service days and the unit that they cover; then windows of days can have caps of their own.

A ledger is created when somebody asks for it, never because it is missing: a new one would forget what was spent.

| modules | what they do |
|---|---|
| charges | what is charged, for which days and unit, and to whom |
| windows | what charges cost one person in windows of days, and the caps on that |
| chain | entries, each checked against all before it, and their sum |
| store | the SQLite file: durable, append-only, locked between processes, read without a trace |
| ledger | the account, which puts these together |
"""

from __future__ import annotations

from cbdp.errors import BudgetError
from cbdp.ledger.chain import Entry, LedgerError
from cbdp.ledger.charges import (
    AccountOwner,
    Amount,
    Charge,
    ChargeScope,
    FinishedCharge,
    SeriesPart,
    TotalSpent,
)
from cbdp.ledger.ledger import Ledger
from cbdp.ledger.windows import Caps

__all__ = [
    "AccountOwner",
    "Amount",
    "BudgetError",
    "Caps",
    "Charge",
    "ChargeScope",
    "Entry",
    "FinishedCharge",
    "Ledger",
    "LedgerError",
    "SeriesPart",
    "TotalSpent",
]
