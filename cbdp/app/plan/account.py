"""What the ledger says of a plan, and where its release goes. Both are only looked at."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path

from cbdp.app.config import Config
from cbdp.app.config.choices import formats
from cbdp.app.plan.chosen import check_chosen
from cbdp.app.plan.siblings import forgotten
from cbdp.errors import InputError
from cbdp.mechanisms import Mechanism
from cbdp.privacy.ledger import Amount, BudgetError, Charge, Finished, Ledger, Owner

MOST_CONFIDENT = 0.999


@dataclass(frozen=True)
class Account:
    """What the ledger says of this request. It was only read."""

    path: Path
    exists: bool
    owner: Owner
    cap: Amount  # of the ledger, or the one it would be created with
    spent: Amount
    charge: Amount  # what this release costs
    unpublished: Amount = field(
        default_factory=Amount
    )  # of what was spent: on runs that were never published
    forgotten: str | None = None  # an earlier release that the ledger ought to hold and does not
    finished: Finished | None = None  # an identical request that was released: it costs nothing again
    unfinished: tuple[Charge, ...] = ()  # identical requests that were charged and never released

    @property
    def left(self) -> Amount:
        return self.cap - self.spent

    @property
    def after(self) -> Amount:
        """What is left when this release is made."""
        return self.left if self.finished else self.left - self.charge


def account_of(config: Config, mechanism: Mechanism, request: str) -> Account:
    path = config.path(config.privacy.ledger)
    owner = Owner.of(config.data.id, config.data.riders)
    cost = mechanism.claim().cost
    charge = Amount.charge(cost.epsilon, cost.delta)
    with config.source.at("privacy", "ledger"):
        started = path.parent.is_dir() and Ledger.started(path)
    account = Account(path, started, owner, Amount(), Amount(), charge)
    account = _existing(config, account, request) if started else _new(config, account)
    if account.finished is None and not _written(config, account) and not charge.within(account.left):
        with config.source.at("privacy", "epsilon"):
            raise BudgetError(f"a charge of {charge} does not fit: {_choices(account)}")
    return account


def missing(config: Config, account: Account) -> str:
    """What to say where there is no ledger, and what to do."""
    state = "is an empty file" if account.path.exists() else "does not exist"
    never = "no trips of %s were ever released" if account.owner.riders else "%s was never released"
    return (
        f"the ledger {str(account.path)!r} {state}. If {never % account.owner}, create it: cbdp ledger create "
        f"{shlex.quote(str(config.source.path))}. Otherwise restore it: a new one would forget what was spent"
    )


def _choices(account: Account) -> str:
    """What is left, where the rest has gone, and what can be done. Lowering ε is not the only way."""
    lost = (
        ""
        if account.unpublished == Amount()
        else f" ({account.unpublished} was spent on runs that were never published, and stays spent)"
    )
    return (
        f"{account.left} of the cap {account.cap} is left for {account.owner}{lost}. Release less, by a smaller epsilon or "
        "delta; or decide that more may be spent: that is a new promise to the riders, and takes a new ledger"
    )


def _new(config: Config, account: Account) -> Account:
    """The account of a ledger that has yet to be created."""
    path, charge = account.path, account.charge
    privacy = config.privacy
    with config.source.at("privacy", "cap"):
        if privacy.cap_delta is not None and privacy.cap is None:
            raise InputError(f"cap_delta is {privacy.cap_delta} without a cap: give both or none")
        delta = charge.delta if privacy.cap_delta is None else privacy.cap_delta
        cap = charge if privacy.cap is None else Amount.limit(privacy.cap, delta)
    with config.source.at("privacy", "ledger"):
        if not path.parent.is_dir():
            raise InputError(f"there is no folder {str(path.parent)!r} for the ledger: create it first")
    lost = forgotten(config.path(config.output.path), account.owner, None)
    return replace(account, cap=cap, forgotten=lost)


def _existing(config: Config, account: Account, request: str) -> Account:
    owner = account.owner
    with config.source.at("privacy", "ledger"), Ledger.view(account.path) as ledger:
        ledger.verify()
        if ledger.owner != owner:
            keys = ("data", "riders" if owner.riders else "id")
            refusal = ledger.owner.refusal_of(owner)
            raise config.source.error(keys, f"the ledger {str(account.path)!r} {refusal}")
        account = replace(
            account,
            cap=ledger.cap,
            spent=ledger.spent,
            unpublished=ledger.unpublished,
            forgotten=forgotten(config.path(config.output.path), owner, ledger),
            finished=ledger.finished(request),
            unfinished=tuple(ledger.unfinished(request)),
        )
    _check_cap(config, account.cap)
    return account


def _check_cap(config: Config, cap: Amount) -> None:
    privacy = config.privacy
    if privacy.cap is None:
        return
    with config.source.at("privacy", "cap"):
        asked = Amount.limit(privacy.cap, cap.delta if privacy.cap_delta is None else privacy.cap_delta)
        if asked != cap:
            raise InputError(
                f"the ledger's cap is {cap}, not {asked}: it was fixed when the ledger was created, write {cap}"
            )


def _written(config: Config, account: Account) -> bool:
    """Whether an earlier run of this request may have got as far as writing its folder."""
    return bool(account.unfinished) and config.path(config.output.path).exists()


def output_of(config: Config, account: Account) -> Path:
    """The folder that the release is written to."""
    path = config.path(config.output.path)
    keys = ("output", "path")
    for n, name in enumerate(config.output.export):
        with config.source.at("output", "export", n):
            check_chosen(formats(), name)
    if config.output.confidence > MOST_CONFIDENT:
        raise config.source.error(
            ("output", "confidence"),
            f"confidence is {config.output.confidence}: give at most {MOST_CONFIDENT}, more takes too many simulations",
        )
    if not path.parent.is_dir():
        raise config.source.error(
            keys, f"there is no folder {str(path.parent)!r} for the release: create it first"
        )
    known = account.finished is not None or account.unfinished
    if (path.exists() or path.is_symlink()) and not known:
        if account.forgotten is not None:
            raise config.source.error(("privacy", "ledger"), account.forgotten)
        raise config.source.error(
            keys, f"the output {str(path)!r} exists already: choose another path, nothing is overwritten"
        )
    return path
