"""The ledger of a plan: there, created because somebody asked for it, or missing. A missing one is never made anew by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cbdp.app.plan.account import missing
from cbdp.app.plan.siblings import forgotten
from cbdp.errors import InputError
from cbdp.privacy.ledger import Ledger

if TYPE_CHECKING:
    from cbdp.app.plan import Plan


def check_ledger(plan: Plan, *, create: bool) -> None:
    """Refuse a release whose ledger is missing, or is asked for where it is not new, before any work is done."""
    if Ledger.started(plan.account.path):
        if create:
            _must_be_new(plan)
    elif create:
        _check_siblings(plan, None)
    else:
        raise InputError(missing(plan.config, plan.account))


def _must_be_new(plan: Plan) -> None:
    """Creating may be repeated after a kill; but nobody shall get used to asking for it with every release."""
    with Ledger.view(plan.account.path) as ledger:
        others = [e for e in ledger.entries() if e.fields.get("request", plan.request) != plan.request]
    if others:
        raise InputError(
            f"the ledger {str(plan.account.path)!r} exists already and holds charges of other releases: "
            "leave --create-ledger out"
        )


def opened(plan: Plan, *, create: bool) -> Ledger:
    """The ledger, ready to be charged; earlier releases beside the output must be in it."""
    account, data = plan.account, plan.config.data
    if create and not Ledger.started(account.path):
        _check_siblings(plan, None)
    ledger = Ledger.open(
        account.path,
        dataset=plan.dataset,
        riders=data.riders,
        cap=account.caps if create else None,
        currency=account.cap.currency,
        create=create,
    )
    try:
        _check_siblings(plan, ledger)
    except BaseException:
        ledger.close()
        raise
    return ledger


def _check_siblings(plan: Plan, ledger: Ledger | None) -> None:
    lost = forgotten(plan.output, plan.account.owner, ledger)
    if lost is not None:
        raise InputError(lost)
