"""The state of a series: what is released and what is due, what was spent, and what all of it costs one person. No row is read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cbdp.forecast.calendar import Slot, check_series, due_slots, pending, request_of_slot, series_of
from cbdp.forecast.running import REDRAWN_SUMS
from cbdp.ledger import Amount, Caps, Charge, Ledger
from cbdp.ledger.windows import PrivacyStatement, WorstCase, privacy_statement, window_text
from cbdp.release.files import MANIFEST
from cbdp.release.series import RUNNING_TOTALS
from cbdp.text import aligned

if TYPE_CHECKING:
    from cbdp.config import Config


MAX_LISTED_RELEASES = 5  # releases that a line names


@dataclass(frozen=True)
class Status:
    """A series as its ledger and its folders show it."""

    config: Config = field(repr=False)
    until: dt.date
    released: tuple[tuple[Slot, Path], ...] = ()
    due: tuple[Slot, ...] = ()  # and not made
    lost: int = 0  # charges of the series whose release was never published
    spent: Amount | None = None  # None: there is no ledger yet
    caps: Caps | None = None
    person: PrivacyStatement | None = None  # by all that was charged: for the curator
    missing: tuple[Path, ...] = ()  # made, and no longer where they were put
    spans: tuple[Charge, ...] = ()  # what running totals have cost, each for a whole span
    noted: Mapping[Path, str] = field(
        default_factory=dict, repr=False
    )  # SHA-256 of the manifest of each release that was made
    published: PrivacyStatement | None = (
        None  # `person` by what published releases have charged: it does not tell which runs died
    )

    def lines(self) -> Iterator[str]:
        series = series_of(self.config)
        yield (
            f"series {series.name!r}, version {series.version}: {series.calendar} from {series.start}"
            f"{f' to {series.end}' if series.end else ''}; by the end of {self.until} {_due(len(self.released) + len(self.due))}, "
            f"{len(self.released)} {'is' if len(self.released) == 1 else 'are'} made"
        )
        if self.due:
            yield f"to be made: {_listed([slot.label for slot in self.due])}"
        if self.lost:
            yield f"{self.lost} charges went to runs that were never published; they stay spent"
        if self.missing:
            yield f"no longer in their place: {_listed([str(path) for path in self.missing])}"
        if self.spent is None or self.caps is None or self.person is None:
            yield "there is no ledger yet: nothing was spent"
            return
        for span in self.spans:
            yield f"running totals of {span.part and span.part.period.replace('..', ' to ')} are paid for: {span.amount}"
        yield f"spent {self.spent}; cap {self.caps}"
        yield ""
        yield from person_lines(self.person, self.caps)


def status_of(config: Config, until: dt.date) -> Status:
    check_series(config)
    slots = due_slots(config, until)
    path = config.path(config.privacy.ledger)
    if not path.parent.is_dir() or not Ledger.started(path):
        return Status(config, until, due=tuple(pending(config, slots)))
    with config.source.at("privacy", "ledger"), Ledger.view(path) as ledger:
        ledger.verify()
        return _seen(config, until, slots, ledger)


def _seen(config: Config, until: dt.date, slots: Sequence[Slot], ledger: Ledger) -> Status:
    name = series_of(config).name
    finished = {slot: ledger.finished(request_of_slot(config, slot)) for slot in slots}
    released = tuple((slot, Path(done.path)) for slot, done in finished.items() if done is not None)
    return Status(
        config,
        until,
        released,
        tuple(pending(config, slots)),
        sum(
            c.part is not None and c.part.series == name and c.part.stage != RUNNING_TOTALS
            for c in ledger.unfinished()
        ),
        ledger.spent,
        ledger.caps,
        privacy_statement(ledger.charges()),
        tuple(place for _, place in released if not (place / MANIFEST).is_file()),
        tuple(c for c in ledger.charges() if c.what == RUNNING_TOTALS and c.part and c.part.series == name),
        {Path(done.path): done.sha256 for done in finished.values() if done is not None},
        privacy_statement(published_charges(ledger)),
    )


def published_charges(ledger: Ledger) -> list[Charge]:
    """Charges of what anybody can see. Those of runs that died, and of sums that were drawn again for them, paid for noise that nobody saw."""
    lost = {charge.id for charge in ledger.unfinished()}
    return [charge for charge in ledger.charges() if charge.id not in lost and charge.what != REDRAWN_SUMS]


def person_lines(person: PrivacyStatement, caps: Caps) -> Iterator[str]:
    """The worst case for one person, window by window."""
    yield "what all releases of this ledger together cost one person at most (costs of days add up):"
    yield ""
    limits = dict(caps.windows)
    strict = any(worst.strict != worst.amount for worst in person.windows)
    name = "sum" if person.currency == "epsilon" else "ρ"
    rows = [("in any window of", name, *(["strict"] if strict else []), "as (ε, δ)", "cap", "highest from")]
    for worst in person.windows:
        limit = limits.get(worst.days or 0)
        cap = "" if limit is None else str(Amount(limit, 0, person.currency))
        length = "all days together" if worst.days is None else window_text(worst.days)
        sums = [str(worst.amount), *([str(worst.strict)] if strict else [])]
        rows.append((length, *sums, _approximate(worst), cap, str(worst.start or "")))
    yield from aligned(rows, right=range(1, 4 + strict))
    for note in person.notes:
        yield f"note: {note}"


def _approximate(worst: WorstCase) -> str:
    if not worst.delta:
        return f"({worst.shown}, 0)"
    return f"({worst.shown}, {float(worst.delta):.2g})"


def _due(many: int) -> str:
    return "1 release is due" if many == 1 else f"{many} releases are due"


def _listed(names: Sequence[str]) -> str:
    if len(names) <= MAX_LISTED_RELEASES:
        return ", ".join(names)
    return f"{', '.join(names[: MAX_LISTED_RELEASES - 1])}, …, {names[-1]} ({len(names)} in all)"
