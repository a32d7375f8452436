"""`cbdp series page`: every release of a series on one page, with the statement for one person. No row is read."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cbdp.app.plan.periods import Slot, series_of
from cbdp.app.publish.run import Say, silent
from cbdp.app.series.status import Status, status_of
from cbdp.errors import InputError
from cbdp.mechanisms import load
from cbdp.release import Release
from cbdp.release.loading import read_manifest, verify_files
from cbdp.release.saving import MANIFEST
from cbdp.release.series import PRELIMINARY
from cbdp.report.series import PeriodFacts, build, period_of

if TYPE_CHECKING:
    from cbdp.app.config import Config

OFTEN = 50  # releases after which progress is told
UNNAMED = "series"  # what a series is called unless told
OFTEN_IN_WORDS = {"daily": "day by day", "weekly": "week by week", "monthly": "month by month"}


def page_of(config: Config, status: Status, say: Say = silent) -> str:
    """The page of what is made; where a period has two releases, of the final one. It is public: charges of runs that died are not in it."""
    facts: list[PeriodFacts] = []
    secure = True
    for number, (slot, path) in enumerate(latest(status)):
        release = _read(path, status.noted[path])
        secure = secure and release.secure
        facts.append(period_of(release, slot.first, slot.last, preliminary=slot.stage == PRELIMINARY))
        if number and number % OFTEN == 0:
            say(f"read {number:,} releases")
    if not facts:
        raise InputError("the series has no release yet: run `cbdp series run` first")
    return build(facts, status.published, title=title_of(config), simulation=not secure)


def _read(folder: Path, sha256: str) -> Release:
    """A release whose manifest the ledger knows and whose files the manifest knows: so they need not be worked out again to be believed."""
    try:
        same = hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest() == sha256
    except OSError:
        same = False
    if not same:
        raise InputError(
            f"the manifest in {str(folder)!r} is not the one that was released: restore the folder"
        )
    verify_files(folder, read_manifest(folder)["files"])
    return load(folder, verify=False)


def title_of(config: Config) -> str:
    """As the publisher says, or what is counted and how often; two series of one ledger have names of their own."""
    about, series = config.about, series_of(config)
    if about is not None and about.title:
        return about.title
    own = "" if series.name == UNNAMED else f" ({series.name})"
    return f"{config.data.id}, {OFTEN_IN_WORDS[series.calendar]}{own}"


def latest(status: Status) -> Iterator[tuple[Slot, Path]]:
    """The last release of every period whose folder is there, in the order of the calendar."""
    held: dict[str, tuple[Slot, Path]] = {}
    gone = set(status.missing)
    for slot, path in status.made:
        if path in gone or (slot.stage == PRELIMINARY and slot.period in held):
            continue
        held[slot.period] = (slot, path)
    yield from sorted(held.values(), key=lambda pair: pair[0].first)


def run_page(options: argparse.Namespace, say: Say) -> int:
    from cbdp.app.config import read
    from cbdp.app.new_file import check_new, write_new
    from cbdp.app.series.today import until_of

    out = Path(options.out)
    check_new(out, internal=False)
    config = read(options.config)
    write_new(out, page_of(config, status_of(config, until_of(config, options.until)), say))
    print(out)
    return 0
