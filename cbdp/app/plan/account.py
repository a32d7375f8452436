"""What the ledger says of a plan, and where its release goes. Both are only looked at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cbdp.app.config import Config
from cbdp.app.config.choices import formats
from cbdp.app.plan.chosen import check_chosen
from cbdp.errors import InputError
from cbdp.mechanisms import Mechanism
from cbdp.privacy.ledger import Amount, BudgetError, Charge, Finished, Ledger

MOST_CONFIDENT = 0.999


@dataclass(frozen=True)
class Account:
    """What the ledger says of this request. It was only read."""

    path: Path
    exists: bool
    cap: Amount  # of the ledger, or the one it will be created with
    spent: Amount
    charge: Amount  # what this release costs
    finished: Finished | None = None  # an identical request that was released: it costs nothing again
    unfinished: tuple[Charge, ...] = ()  # identical requests that were charged and never released

    @property
    def left(self) -> Amount:
        return self.cap - self.spent

    @property
    def after(self) -> Amount:
        """What is left when this release is made."""
        return self.left if self.finished else self.left - self.charge


def account_of(config: Config, dataset: str, mechanism: Mechanism, request: str) -> Account:
    path = config.path(config.privacy.ledger)
    cost = mechanism.claim().cost
    charge = Amount.charge(cost.epsilon, cost.delta)
    with config.source.at("privacy", "ledger"):
        started = path.parent.is_dir() and Ledger.started(path)
    account = _existing(config, path, dataset, charge, request) if started else _new(config, path, charge)
    if account.finished is None and not _written(config, account) and not charge.within(account.left):
        with config.source.at("privacy", "epsilon"):
            raise BudgetError(
                f"a charge of {charge} does not fit: {account.left} of the cap {account.cap} is left for data set "
                f"{dataset!r}: lower epsilon, or delta"
            )
    return account


def _new(config: Config, path: Path, charge: Amount) -> Account:
    """The account of a ledger that the release will create."""
    privacy = config.privacy
    with config.source.at("privacy", "cap"):
        if privacy.cap_delta is not None and privacy.cap is None:
            raise InputError(f"cap_delta is {privacy.cap_delta} without a cap: give both or none")
        delta = charge.delta if privacy.cap_delta is None else privacy.cap_delta
        cap = charge if privacy.cap is None else Amount.limit(privacy.cap, delta)
    with config.source.at("privacy", "ledger"):
        if not path.parent.is_dir():
            raise InputError(f"there is no folder {str(path.parent)!r} for the ledger: create it first")
    return Account(path, False, cap, Amount(), charge)


def _existing(config: Config, path: Path, dataset: str, charge: Amount, request: str) -> Account:
    privacy = config.privacy
    with config.source.at("privacy", "ledger"), Ledger.view(path) as ledger:
        ledger.verify()
        cap, spent, owner = ledger.cap, ledger.spent, ledger.dataset
        finished, unfinished = ledger.finished(request), tuple(ledger.unfinished(request))
    if owner != dataset:
        keys = ("data", "id") if config.data.id else ("privacy", "ledger")
        raise config.source.error(
            keys,
            f"the ledger {str(path)!r} belongs to data set {owner!r}, not {dataset!r}: give each data set its own",
        )
    if privacy.cap is not None:
        with config.source.at("privacy", "cap"):
            asked = Amount.limit(privacy.cap, cap.delta if privacy.cap_delta is None else privacy.cap_delta)
            if asked != cap:
                raise InputError(
                    f"the ledger's cap is {cap}, not {asked}: it was fixed when the ledger was created, write {cap}"
                )
    return Account(path, True, cap, spent, charge, finished, unfinished)


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
        raise config.source.error(
            keys, f"the output {str(path)!r} exists already: choose another path, nothing is overwritten"
        )
    return path
