"""Which releases are still to be made: the ledger alone decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cbdp.app.plan.periods import Slot
from cbdp.app.plan.slots import request_of_slot
from cbdp.privacy.ledger import Charge, Ledger
from cbdp.release.series import FINAL, RUNNING

if TYPE_CHECKING:
    from cbdp.app.config import Config


def pending(config: Config, slots: Sequence[Slot]) -> list[Slot]:
    """The slots whose release the ledger does not know. A preliminary one is left out when the final one is due, unless it was charged."""
    path = config.path(config.privacy.ledger)
    final = {slot.period for slot in slots if slot.stage == FINAL}
    late = {slot for slot in slots if slot.stage != FINAL and slot.period in final}
    if not path.parent.is_dir() or not Ledger.started(path):
        return [slot for slot in slots if slot not in late]
    with config.source.at("privacy", "ledger"), Ledger.view(path) as ledger:
        ledger.verify()
        open_requests = {charge.request for charge in ledger.unfinished()}
        found = [(slot, request_of_slot(config, slot)) for slot in slots]
        return [
            slot
            for slot, request in found
            if ledger.finished(request) is None and (slot not in late or request in open_requests)
        ]


def charges_of(ledger: Ledger, name: str, dataset: str) -> list[Charge]:
    """The charges of one series for its releases; those for running totals pay no single one."""
    return [
        c
        for c in ledger.charges()
        if c.part is not None and c.part.series == name and c.part.stage != RUNNING and c.dataset == dataset
    ]
