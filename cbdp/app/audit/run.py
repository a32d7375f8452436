"""`cbdp audit` and `cbdp.audit_release`: all attacks that apply to a release, end to end, and what could not be looked at.

The attacks on published data are in `cbdp.audit`. What stands here needs more: the mechanism, which post-processes the published noisy
answers again (post-processing is deterministic, so the same numbers must follow); the configuration and the ledger; or, for the curator
alone, the trips (`cbdp.app.audit.truth`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cbdp.audit import detection, external_tables, guarantee_check, optimality
from cbdp.audit.external_tables import DESCRIPTION_FILE
from cbdp.audit.findings import Audit, Finding
from cbdp.audit.optimality import published_answers
from cbdp.audit.own_release import OwnRelease, open_own_release
from cbdp.audit.tables import from_release
from cbdp.errors import InputError
from cbdp.mechanisms import Mechanism, of
from cbdp.progress import tell
from cbdp.release.files import MANIFEST
from cbdp.release.release import Release

if TYPE_CHECKING:
    from cbdp.app.plan import Plan


# trip types: a table with more is not attacked cell by cell, which takes memory for each
MAX_TYPES_LISTED = 2**20


def audit_release(
    path: str | Path,
    *,
    ledger: str | Path | None = None,
    config: str | Path | None = None,
    trips: object = None,
) -> Audit:
    """Attack a release: a folder of ours, or one with tables that its `audit.toml` describes.

    The `ledger` is checked for the release's charge. `config` must be the configuration that the release was made from; it names
    the ledger too. `trips` (a table, files, a configuration; or True: those of `config`) are what the release was made from:
    then the noise itself is tested, and the result is for the curator's eyes only. Bad input is an `InputError`; what
    contradicts the release is a finding.

    >>> import tempfile
    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = cbdp.Laplace(features, epsilon=1).release(trips).save(f"{folder}/out")
    ...     audit = cbdp.audit_release(f"{folder}/out")
    >>> audit.verdict
    'clear'
    """
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r} with a release")
    if (folder / MANIFEST).is_file():
        return _OwnReleaseAudit(folder, ledger, config, trips).run()
    if not (folder / DESCRIPTION_FILE).is_file():
        raise InputError(
            f"{str(folder)!r} has neither a {MANIFEST} nor an {DESCRIPTION_FILE}: give the folder of a release, or describe its "
            f"tables in an {DESCRIPTION_FILE}"
        )
    for name, value in {"ledger": ledger, "config": config, "trips": trips}.items():
        if value is not None and value is not False:
            raise InputError(
                f"{name} is given for {str(folder)!r}, which is not a release of cbdp: leave it out"
            )
    return external_tables.audit_folder(folder)


@dataclass
class _OwnReleaseAudit:
    """The audit of a folder of ours, and what it had to leave out so far."""

    folder: Path
    ledger: str | Path | None
    config: str | Path | None
    trips: object
    left_out: list[str] = field(default_factory=list)

    def run(self) -> Audit:
        if self.config is None and isinstance(self.trips, str | Path) and Path(self.trips).suffix == ".toml":
            self.config, self.trips = self.trips, True
        planned = None if self.config is None else _plan_of(self.config, self.folder)
        if self.trips is True and planned is None:
            raise InputError(
                "trips without a file are those of the configuration: give config (--config) too, or name the file"
            )
        tell("reading the release, file by file")
        ours = open_own_release(self.folder)
        if planned is not None:
            _check_universe(planned, ours)
        private = self.trips is not None and self.trips is not False
        findings = [*ours.findings, *self._manifest(ours, planned), *self._release(ours)]
        if not private:
            self.left_out.append(
                "The trips were not given: the noise itself was not tested. Only the curator can do that."
            )
        elif ours.release is not None:
            findings += self._private(ours.release, planned)
        return Audit(
            self.folder.resolve().name,
            tuple(findings),
            private,
            ours.claim,
            tuple(self.left_out),
        )

    def _manifest(self, ours: OwnRelease, planned: Plan | None) -> Iterator[Finding]:
        """What the manifest says of privacy, and what the ledger says of the manifest."""
        readable = not any(f.check == "manifest" and ours.release is None for f in ours.findings)
        if readable:
            tell("adding up the manifest")
            release = ours.release
            yield from guarantee_check.attack(
                ours.manifest, None if release is None else release.levels or release.features
            )
        where = self.ledger
        if where is None and planned is not None:
            where = planned.config.path(planned.config.privacy.ledger)
        if where is None:
            self.left_out.append(
                "No ledger was given: whether ε was charged, once, and within the cap, was not checked."
            )
        elif readable:
            tell("reading the ledger")
            yield from guarantee_check.attack_ledger(
                where, ours, asked=None if planned is None else _ledger_request(planned)
            )

    def _release(self, ours: OwnRelease) -> Iterator[Finding]:
        """What can be found in the published numbers alone."""
        release = ours.release
        if release is None:
            self.left_out.append("The files cannot be read together: their numbers were not attacked.")
            return
        yield from self._post_processing(release)
        if release.features.universe.size > MAX_TYPES_LISTED:
            self.left_out.append(
                f"The release has more than {MAX_TYPES_LISTED:,} trip types: its tables were not attacked cell by cell."
            )
            return
        published = from_release(release)
        self.left_out += external_tables.left_out(published)
        for finding in external_tables.attack(published):
            # the manifest states every threshold, and every element has a row: a least count of many is no hidden threshold
            if not (finding.check == detection.CHECK and "at_threshold" in finding.figures):
                yield finding

    def _post_processing(self, release: Release) -> Iterator[Finding]:
        published = published_answers(release)
        if not published:
            return
        version = optimality.foreign_estimator_version(release)
        if version is not None:
            self.left_out.append(
                f"cbdp {version} made the release, and its expected counts are not those of this version: whether they follow from the "
                f"noisy answers was not checked. The audit of cbdp {version} checks it."
            )
            yield from optimality.attack_rounding(release)
            return
        tell("making the release again")
        try:
            mechanism = recipe_mechanism(release)
        except InputError as why:
            self.left_out.append(f"The release could not be made again from its noisy answers: {why}.")
            return
        yield from optimality.attack(release, lambda: mechanism.finish(published))

    def _private(self, release: Release, planned: Plan | None) -> Iterator[Finding]:
        from cbdp.app.audit import membership, residuals
        from cbdp.app.audit.truth import truth

        tell("counting the trips (private)")
        columns = None if planned is None else planned.columns
        clock = None if planned is None else planned.clock
        source = planned.trips if planned is not None and self.trips is True else self.trips
        true = truth(source, release, columns=columns, clock=clock)
        if len(true.loose):
            self.left_out.append(
                f"Persons with more trips than are kept: what they add to {len(true.loose):,} trip types is not known, and "
                "counts with those types were left out."
            )
        tell("testing the noise")
        noise = residuals.attack_residuals(release, true)
        if not noise:
            self.left_out.append(
                "No answer has noise of a declared law and a known truth: the noise was not tested."
            )
        yield from noise
        tell("inferring membership")
        members = membership.attack_membership(release, true)
        if not members:
            self.left_out.append(
                f"Fewer than {membership.MIN_RIDERS} riders have a count to themselves: membership inference would prove nothing."
            )
        yield from members


def _plan_of(config: str | Path, release: Path) -> Plan:
    """What the configuration asks for, whatever state its ledger and its output are in: the audit looks at those itself."""
    from cbdp.app.plan import plan
    from cbdp.config import read
    from cbdp.forecast.calendar import slot_of_release

    loaded = read(config)
    slot = None if loaded.series is None else slot_of_release(loaded, release)
    with tempfile.TemporaryDirectory() as folder:
        privacy = replace(loaded.privacy, ledger=f"{folder}/ledger", cap=None, cap_delta=None)
        output = replace(loaded.output, path=f"{folder}/output")
        if slot is not None:
            privacy = replace(privacy, cap=loaded.privacy.cap, cap_delta=loaded.privacy.cap_delta)
            output = replace(output, path=f"{folder}/{{period}}")
        return replace(plan(replace(loaded, privacy=privacy, output=output), slot), config=loaded)


def _ledger_request(planned: Plan) -> guarantee_check.LedgerRequest:
    privacy = planned.config.privacy
    return guarantee_check.LedgerRequest(planned.asked, planned.account.owner, privacy.cap, privacy.cap_delta)


def _check_universe(planned: Plan, ours: OwnRelease) -> None:
    from cbdp.release.layout import universe_hash

    if ours.release is None:
        return
    if universe_hash(planned.universe) != universe_hash(ours.release.features.universe):
        raise InputError(
            f"the configuration {str(planned.config.source.path)!r} describes another universe than the release "
            f"{str(ours.path)!r}: give the one that it was made from"
        )


# The setting that says how the program is solved, not what its solution is: it is solved again with the default, which is exact.
SOLVER_SETTING = "solver"


def recipe_mechanism(release: Release) -> Mechanism:
    """The mechanism that makes a release again. Raises `InputError` where the recipe does not say all that this takes."""
    settings = {name: value for name, value in release.recipe.settings.items() if name != SOLVER_SETTING}
    return of(replace(release, recipe=replace(release.recipe, settings=settings)))
