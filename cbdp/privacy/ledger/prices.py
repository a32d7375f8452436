"""What a release costs in the currency of a ledger."""

from __future__ import annotations

from typing import Any

from cbdp.errors import InputError
from cbdp.privacy.composition import Cost
from cbdp.privacy.ledger.amounts import Amount, Currency


def currency_of(cost: Cost) -> Currency:
    return cost.currency


def terms_of(cost: Cost) -> dict[str, Any]:
    """What `Ledger.reserve` is told."""
    return {"rho": cost.rho} if cost.currency == "rho" else {"epsilon": cost.epsilon, "delta": cost.delta}


def price_of(cost: Cost, currency: Currency) -> Amount:
    if cost.currency == "epsilon":
        return Amount.charge(cost.epsilon, cost.delta, currency=currency)
    if currency == "epsilon":
        raise InputError(
            'the ledger counts ε, and this law of noise costs ρ: write currency = "rho" and create a ledger of its own, or '
            "choose a law that costs ε"
        )
    return Amount.charge_rho(cost.rho)
