"""An audit from end to end: all attacks that apply to a release, and what could not be looked at."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbdp.audit import book, consistency, described, detection, differencing, promises, scale, solved
from cbdp.audit.finding import Finding
from cbdp.audit.ours import Ours, opened
from cbdp.audit.result import Audit
from cbdp.audit.tables import Published, from_release
from cbdp.errors import CbdpError, InputError
from cbdp.release import manifest as said
from cbdp.release.saving import MANIFEST

if TYPE_CHECKING:
    from cbdp.app.config import Config
    from cbdp.app.plan import Plan
    from cbdp.release.release import Release

DESCRIPTION = described.NAME
LARGEST = 2**20  # trip types up to which tables are attacked as lists of all their cells

Say = Callable[[str], None]


def audit_release(
    path: str | Path,
    *,
    ledger: str | Path | None = None,
    config: str | Path | None = None,
    trips: Any = None,
    progress: Say | None = None,
) -> Audit:
    """Attack a release: a folder of ours, or one with tables that its `audit.toml` describes.

    `ledger` is checked for the release's charge; `config` names the ledger, and must be the configuration that was released.
    `trips` (a table, files, a configuration; or True: those of `config`) are what the release was made from: then the noise itself is tested, and the
    result is for the curator's eyes only. Bad input is an `InputError`; what contradicts the release is a finding.
    """
    place, say = Path(path), progress or (lambda _: None)
    if not place.is_dir():
        raise InputError(f"there is no folder {str(place)!r} with a release")
    if (place / MANIFEST).is_file():
        return _ours(place, ledger, config, trips, say)
    if not (place / DESCRIPTION).is_file():
        raise InputError(
            f"{str(place)!r} has neither a {MANIFEST} nor an {DESCRIPTION}: it is no release, or its tables need a description"
        )
    given = {"ledger": ledger, "config": config, "trips": trips}
    for name, value in given.items():
        if value is not None and value is not False:
            raise InputError(
                f"{name} is given for {str(place)!r}, which is no release of cbdp: only those have one"
            )
    say("reading the described tables …")
    published = described.read(place)
    findings = tuple(_attacks(published, say))
    claim = "nothing is claimed" if published.epsilon is None else f"ε = {published.epsilon:g} is claimed"
    if published.epsilon is not None and published.delta:
        claim = f"ε = {published.epsilon:g} and δ = {published.delta:g} are claimed"
    left_out = ("There is no manifest and no ledger: what was spent in all was not looked at.",)
    return Audit(place.resolve().name, findings, claim=claim, left_out=left_out)


def _attacks(published: Published, say: Say) -> Iterator[Finding]:
    for attack in (consistency, scale, detection, differencing):
        say(f"{attack.__name__.rpartition('.')[2]} …")
        yield from attack.attack(published)


# Ours


def _ours(place: Path, ledger: str | Path | None, config: str | Path | None, trips: Any, say: Say) -> Audit:
    if config is None and isinstance(trips, str | Path) and Path(trips).suffix == ".toml":
        config, trips = trips, True
    planned = None if config is None else _planned(config)
    wanted = trips is not None and trips is not False
    if trips is True and planned is None:
        raise InputError("the trips are those of a configuration: give it with --config, or name their file")
    say("reading the release, file by file …")
    ours = opened(place)
    findings, left_out = list(ours.findings), []
    readable = not any(f.check == "manifest" and ours.release is None for f in ours.findings)
    if readable:
        say("adding up the manifest …")
        findings += promises.attack(ours.manifest)
    if planned is not None:
        _same_universe(planned, ours)
    where = ledger if ledger is not None else None if planned is None else _ledger_of(planned.config)
    if where is None:
        left_out.append(
            "No ledger was given: whether ε was charged, once, and under the cap, was not looked at."
        )
    elif readable:
        say("reading the ledger …")
        findings += book.attack(where, ours, asked=None if planned is None else _asked(planned))
    release = ours.release
    if release is None:
        left_out.append("The files cannot be read together: their numbers were not attacked.")
    else:
        findings += _released(release, ours, left_out, say)
    if not wanted:
        left_out.append("The trips were not given: the noise itself was not looked at. Only the curator can.")
    elif release is not None:
        findings += _private(release, trips, planned, left_out, say)
    return Audit(place.resolve().name, tuple(findings), wanted, _claimed(ours.manifest), tuple(left_out))


def _claimed(manifest: Mapping[str, Any]) -> str:
    try:
        return f"{manifest['mechanism']['name']}, {said.claim_of(manifest['privacy'])}"
    except (CbdpError, KeyError, TypeError, ValueError, ArithmeticError):
        return "the manifest's claim cannot be understood"


def _released(release: Release, ours: Ours, left_out: list[str], say: Say) -> Iterator[Finding]:
    say("solving again …")
    made = solved.attack(release, ours.manifest)
    if not made and release.estimate is not None:
        left_out.append("The weights are stated by their hash only: the program could not be solved again.")
    yield from made
    if release.features.universe.size > LARGEST:
        left_out.append(
            f"The release has more than {LARGEST:,} trip types: tables were not attacked cell by cell, for they are not listed."
        )
        return
    for found in _attacks(from_release(release), say):
        # the manifest states every threshold, and every element has a row: a least count of many is no hidden threshold
        if not (found.check == detection.CHECK and "at_threshold" in found.figures):
            yield found


def _planned(config: str | Path) -> Plan:
    """What the configuration asks for, whatever state its ledger and its output are in: the audit looks at those itself."""
    from cbdp.app.config import read
    from cbdp.app.plan import plan

    given = read(config)
    with tempfile.TemporaryDirectory() as folder:
        privacy = replace(given.privacy, ledger=f"{folder}/ledger", cap=None, cap_delta=None)
        output = replace(given.output, path=f"{folder}/output")
        return replace(plan(replace(given, privacy=privacy, output=output)), config=given)


def _asked(planned: Plan) -> book.Asked:
    privacy = planned.config.privacy
    return book.Asked(planned.request, planned.dataset, privacy.cap, privacy.cap_delta)


def _ledger_of(config: Config) -> Path:
    return config.path(config.privacy.ledger)


def _same_universe(planned: Plan, ours: Ours) -> None:
    from cbdp.release.universe_files import universe_hash

    if ours.release is None:
        return
    if universe_hash(planned.universe) != universe_hash(ours.release.features.universe):
        raise InputError(
            f"the configuration {str(planned.config.source.path)!r} describes another universe than the release "
            f"{str(ours.path)!r}: give the one that it was made from"
        )


def _private(
    release: Release, trips: Any, planned: Plan | None, left_out: list[str], say: Say
) -> Iterator[Finding]:
    from cbdp.app.audit import membership, records

    say("counting the trips (private) …")
    columns = None if planned is None else planned.columns
    clock = None if planned is None else planned.clock
    source = planned.trips if planned is not None and trips is True else trips
    true = records.truth(source, release, columns=columns, clock=clock)
    if len(true.loose):
        left_out.append(
            f"Persons with more trips than are kept: what they add to {len(true.loose):,} trip types is not known, and counts "
            "with those types were left out."
        )
    say("testing the noise …")
    residuals = records.attack(release, true)
    if not residuals:
        left_out.append("No answer has noise of a declared law and a known truth: residuals were not tested.")
    yield from residuals
    say("inferring membership …")
    members = membership.attack(release, true)
    if not members:
        left_out.append(
            f"Fewer than {membership.LEAST} riders have a count to themselves: membership inference would prove nothing."
        )
    yield from members
