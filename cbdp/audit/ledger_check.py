"""The release's entry in the ledger: charged before the noise was drawn, for the ε it claims, under the hash it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from cbdp.audit.findings import Finding, clear_finding
from cbdp.audit.own_release import OwnRelease
from cbdp.errors import CbdpError
from cbdp.ledger import AccountOwner, Amount, Caps, Entry, Ledger, LedgerError
from cbdp.ledger.charges import PrivacyMeasure, amount_charged
from cbdp.privacy.accounting import DPCost, ZCDPCost, cost_amount
from cbdp.release.files import MANIFEST
from cbdp.release.serialization import exact_from, guarantee_from

if TYPE_CHECKING:
    from cbdp.release.manifest_model import Manifest

ATTACK_ON_UNCHARGED = "Releases that no ledger counts add up: with enough of them the noise averages out."
REWRITTEN_NOTE = (
    "A ledger that can be rewritten lets ε be spent again and again; every release looks like the first."
)
TRUST_NOTE = (
    "Go back to a copy of the ledger that you trust, and keep the heads that manifests state elsewhere too."
)


@dataclass(frozen=True)
class LedgerRequest:
    """What a configuration asks the ledger for: the request, whose privacy it spends, and the caps it states."""

    request: str
    owner: AccountOwner
    cap: Fraction | Mapping[str, Fraction] | None = None
    cap_delta: Fraction | None = None


def attack(ledger: str | Path, ours: OwnRelease, *, asked: LedgerRequest | None = None) -> list[Finding]:
    """What the ledger says of this release; `asked` is what the configuration that it is said to come from asks for.

    A file that is no ledger is bad input (`InputError`); a ledger whose chain is broken is a finding.
    """
    with Ledger.view(ledger) as book:
        broken = [*_chain_findings(book)]
        if broken:
            return broken
        findings = [*_check_charge(book, ours, asked), *_check_account(book, asked)]
        if findings:
            return findings
        return [
            clear_finding(
                "ledger",
                "The ledger is intact, and holds this release",
                f"{len(book.entries())} entries; {book.spent} of {book.cap} spent; the manifest's hash and ε are in it.",
                "A ledger that was cut or rewritten, a missing or different charge and another manifest would have been found for "
                "certain; a second ledger that nobody told us of would not.",
                {"spent": float(book.spent.value)} | _cap_figures(book),
            )
        ]


def _cap_figures(book: Ledger) -> dict[str, float]:
    return {} if book.cap.is_unlimited else {"cap": float(book.cap.value)}


def _contradiction(
    title: str, evidence: str, attack: str = ATTACK_ON_UNCHARGED, cure: str = TRUST_NOTE
) -> Finding:
    return Finding("ledger", "contradicts", title, evidence, attack, cure)


def _chain_findings(book: Ledger) -> Iterator[Finding]:
    """A ledger may be broken in its schema and in an entry: both are named."""
    messages: list[str] = []
    for look in (book.verify, lambda: book.head):
        try:
            look()
        except LedgerError as wrong:
            if str(wrong) not in messages:
                messages.append(str(wrong))
    for words in messages:
        short = words.replace(str(book.path), book.path.name)
        yield _contradiction(
            f"The ledger was tampered with: {short.partition(';')[0]}", words + ".", REWRITTEN_NOTE
        )


def _check_charge(book: Ledger, ours: OwnRelease, asked: LedgerRequest | None) -> Iterator[Finding]:
    head = ours.manifest["ledger"]["head"]
    if head is None:
        yield _contradiction(
            f"{MANIFEST}: ledger/head names no charge",
            f"The manifest does not say under which charge the release was made; {book.path.name} cannot hold it.",
        )
        return
    entries = book.entries()
    at = next((e for e in entries if e.hash == head), None)
    if at is None:
        yield _contradiction(
            f"The ledger does not hold the charge {head[:12]}… of {MANIFEST}: it is another ledger, or was cut off",
            f"ledger/head is {head}; none of the {len(entries)} entries of {book.path.name} has that hash.",
            REWRITTEN_NOTE,
        )
        return
    if at.event != "reserved":
        yield _contradiction(
            f"{MANIFEST}: ledger/head is entry {at.sequence}, which is no charge",
            f"Entry {at.sequence} of {book.path.name} is {at.event!r}.",
        )
        return
    yield from _check_amount(entries, at, ours.manifest)
    yield from _check_release_note(entries, at, ours)
    # the request is "asked:source". The trips may have been moved since; a request of the first version has one part, of another make
    request, _, source = at.fields["request"].partition(":")
    if asked is not None and source and request != asked.request:
        yield _contradiction(
            f"Entry {at.sequence} of the ledger is the charge of another request, not of the configuration's",
            "The configuration asks for another release than the one that was charged: universe, features, unit, mechanism or ε differ.",
            "What was announced is not what was released.",
            "Audit with the configuration that the release was made from.",
        )


def _check_account(book: Ledger, asked: LedgerRequest | None) -> Iterator[Finding]:
    """Owner and cap, as the configuration has them."""
    if asked is None:
        return
    if book.owner != asked.owner:
        yield _contradiction(
            f"The ledger is of {book.owner}, the configuration is of {asked.owner}",
            "A ledger accounts for its own riders; charges for others say nothing about these.",
            REWRITTEN_NOTE,
            "Audit with the ledger that the configuration names.",
        )
    if asked.cap is None:
        return
    delta = book.cap.delta if asked.cap_delta is None else asked.cap_delta
    caps = Caps.of(asked.cap, delta, currency=book.currency)
    if caps != book.caps:
        yield _contradiction(
            f"The ledger's cap is {book.caps}, the configuration's {caps}",
            f"Entry 1 of {book.path.name} opens it with a cap of {book.caps}. A cap is fixed when a ledger is created.",
            "A ledger begun anew with a higher cap lets more be spent than was announced.",
        )


def _check_amount(entries: tuple[Entry, ...], at: Entry, manifest: Manifest) -> Iterator[Finding]:
    paid, running = at.amount, manifest.get("running")
    try:
        due, span = _charges_due(manifest, paid.currency)
    except (CbdpError, KeyError, TypeError, ValueError, ArithmeticError):
        return  # what cannot be understood is a finding of its own
    if paid != due:
        yield _contradiction(
            f"Entry {at.sequence} of the ledger charges {paid}, the release claims {due}",
            f"Charged were {paid}; privacy/spent of {MANIFEST} comes to {due}.",
            "A release that was charged too little leaves room for more than the cap allows.",
            "Find out which of the two was changed; the ledger's chain protects the charge.",
        )
    before = [e for e in entries if e.event == "reserved" and e.sequence < at.sequence]
    if running is not None and all(
        (e.fields["request"], e.amount) != (running["request"], span) for e in before
    ):
        yield _contradiction(
            f"The ledger holds no charge of {span} for the running totals since {running['first']}",
            f"running/request of {MANIFEST} is {running['request'][:12]}…; no earlier entry charges that.",
            ATTACK_ON_UNCHARGED,
        )


def _charges_due(manifest: Manifest, currency: PrivacyMeasure) -> tuple[Amount, Amount | None]:
    """What the release itself costs, and the span of running totals that it is part of: two charges."""
    cost = guarantee_from(manifest["privacy"]).cost
    running = manifest.get("running")
    if running is None:
        return amount_charged(cost, currency), None
    span = sum((exact_from(t[cost.currency]) for t in running["tables"]), Fraction(0))
    kind = ZCDPCost if cost.currency == "rho" else DPCost
    release_charge, span_charge = (kind("", amount) for amount in (cost_amount(cost) - span, span))
    return amount_charged(release_charge, currency), amount_charged(span_charge, currency)


def _check_release_note(entries: tuple[Entry, ...], at: Entry, ours: OwnRelease) -> Iterator[Finding]:
    """The entry that notes the release, after its charge."""
    notes = [e for e in entries if e.event == "released" and e.fields["charge"] == at.fields["charge"]]
    if not notes:
        yield _contradiction(
            f"The ledger does not note that the charge of entry {at.sequence} was released",
            "The release is published, and its ledger ends before the note of its hash: it was cut off, or the run died just then.",
            REWRITTEN_NOTE,
            "If the run died, run cbdp release again, which notes the hash; otherwise "
            + TRUST_NOTE[0].lower()
            + TRUST_NOTE[1:],
        )
    elif notes[0].fields["sha256"] != ours.sha256:
        yield _contradiction(
            f"{MANIFEST} is not the one that was released",
            f"Its SHA-256 is {ours.sha256}; entry {notes[0].sequence} of the ledger notes {notes[0].fields['sha256']}.",
            "Whoever changes a file and corrects the hashes in the manifest cannot change this one.",
            "Restore the folder from a copy whose manifest has the SHA-256 that the ledger notes.",
        )
