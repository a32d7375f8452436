"""An audit from end to end: all attacks that apply to a release, and what could not be looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbdp.app.audit.remaking import answers, remaker
from cbdp.audit import book, consistency, described, detection, differencing, exact, promises, scale, solved
from cbdp.audit.finding import Finding
from cbdp.audit.ours import Ours, opened
from cbdp.audit.released import from_release
from cbdp.audit.result import Audit
from cbdp.audit.tables import PublishedTables
from cbdp.audit.undeclared import taken
from cbdp.errors import CbdpError, InputError
from cbdp.progress import tell
from cbdp.release.saving import MANIFEST
from cbdp.release.stated import claim_of

if TYPE_CHECKING:
    from cbdp.app.config import Config
    from cbdp.app.plan import Plan
    from cbdp.app.plan.periods import Slot
    from cbdp.release.release import Release

DESCRIPTION = described.NAME
LARGEST = 2**20  # trip types up to which tables are attacked as lists of all their cells


def audit_release(
    path: str | Path,
    *,
    ledger: str | Path | None = None,
    config: str | Path | None = None,
    trips: Any = None,
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
    place = Path(path)
    if not place.is_dir():
        raise InputError(f"there is no folder {str(place)!r} with a release")
    if (place / MANIFEST).is_file():
        return _OfOurs(place, ledger, config, trips).made()
    if not (place / DESCRIPTION).is_file():
        raise InputError(
            f"{str(place)!r} has neither a {MANIFEST} nor an {DESCRIPTION}: give the folder of a release, or describe its "
            f"tables in an {DESCRIPTION}"
        )
    for name, value in {"ledger": ledger, "config": config, "trips": trips}.items():
        if value is not None and value is not False:
            raise InputError(
                f"{name} is given for {str(place)!r}, which is not a release of cbdp: leave it out"
            )
    return _of_others(place)


def _of_others(place: Path) -> Audit:
    tell("reading the described tables")
    published = described.read(place)
    findings = tuple(_attacks(published))
    claim = "no ε is claimed" if published.epsilon is None else f"ε = {published.epsilon:g} is claimed"
    if published.epsilon is None and not all(t.shown.all() for t in published.tables):
        claim += "; some counts are hidden"
    if published.epsilon is not None and published.delta:
        claim = f"ε = {published.epsilon:g} and δ = {published.delta:g} are claimed"
    left_out = list(_left_out(published))
    left_out.append("There is no manifest and no ledger: how much was spent in all was not checked.")
    return Audit(place.resolve().name, findings, claim=claim, left_out=tuple(left_out))


ATTACKS = (consistency, scale, exact, detection, differencing)
SETTLING = (exact, differencing)  # these make out themselves what noise there is where none is declared


def _attacks(published: PublishedTables) -> Iterator[Finding]:
    settled = taken(published).settled
    for attack in ATTACKS:
        tell(f"attack: {attack.CHECK}")
        yield from attack.attack(published if attack in SETTLING else settled)


def _left_out(published: PublishedTables) -> Iterator[str]:
    """What the attacks could not look at."""
    settled = taken(published).settled
    for attack in ATTACKS:
        yield from attack.left_out(published if attack in SETTLING else settled)


@dataclass
class _OfOurs:
    """The audit of a folder of ours, and what it had to leave out so far."""

    place: Path
    ledger: str | Path | None
    config: str | Path | None
    trips: Any
    left_out: list[str] = field(default_factory=list)

    def made(self) -> Audit:
        if self.config is None and isinstance(self.trips, str | Path) and Path(self.trips).suffix == ".toml":
            self.config, self.trips = self.trips, True
        planned = None if self.config is None else _planned(self.config, self.place)
        if self.trips is True and planned is None:
            raise InputError(
                "trips without a file are those of the configuration: give config (--config) too, or name the file"
            )
        tell("reading the release, file by file")
        ours = opened(self.place)
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
            self.place.resolve().name, tuple(findings), private, _claimed(ours.manifest), tuple(self.left_out)
        )

    def _manifest(self, ours: Ours, planned: Plan | None) -> Iterator[Finding]:
        """What the manifest says of privacy, and what the ledger says of the manifest."""
        readable = not any(f.check == "manifest" and ours.release is None for f in ours.findings)
        if readable:
            tell("adding up the manifest")
            release = ours.release
            yield from promises.attack(
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
            yield from book.attack(where, ours, asked=None if planned is None else _request(planned))

    def _release(self, ours: Ours) -> Iterator[Finding]:
        """What can be found in the published numbers alone."""
        release = ours.release
        if release is None:
            self.left_out.append("The files cannot be read together: their numbers were not attacked.")
            return
        yield from self._remade(release)
        if release.features.universe.size > LARGEST:
            self.left_out.append(
                f"The release has more than {LARGEST:,} trip types: its tables were not attacked cell by cell."
            )
            return
        published = from_release(release)
        self.left_out += _left_out(published)
        for found in _attacks(published):
            # the manifest states every threshold, and every element has a row: a least count of many is no hidden threshold
            if not (found.check == detection.CHECK and "at_threshold" in found.figures):
                yield found

    def _remade(self, release: Release) -> Iterator[Finding]:
        published = answers(release)
        if not published:
            return
        version = solved.of_another_estimator(release)
        if version is not None:
            self.left_out.append(
                f"cbdp {version} made the release, and its expected counts are not those of this version: whether they follow from the "
                f"noisy answers was not checked. The audit of cbdp {version} checks it."
            )
            yield from solved.rounded(release)
            return
        tell("making the release again")
        try:
            mechanism = remaker(release)
        except InputError as why:
            self.left_out.append(f"The release could not be made again from its noisy answers: {why}.")
            return
        yield from solved.attack(release, lambda: mechanism.finish(published))

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
        noise = residuals.attack(release, true)
        if not noise:
            self.left_out.append(
                "No answer has noise of a declared law and a known truth: the noise was not tested."
            )
        yield from noise
        tell("inferring membership")
        members = membership.attack(release, true)
        if not members:
            self.left_out.append(
                f"Fewer than {membership.LEAST} riders have a count to themselves: membership inference would prove nothing."
            )
        yield from members


def _claimed(manifest: Mapping[str, Any]) -> str:
    try:
        return f"{manifest['recipe']['mechanism']}, {claim_of(manifest['privacy'])}"
    except (CbdpError, KeyError, TypeError, ValueError, ArithmeticError):
        return "the manifest's claim cannot be understood"


def _planned(config: str | Path, place: Path) -> Plan:
    """What the configuration asks for, whatever state its ledger and its output are in: the audit looks at those itself."""
    import tempfile
    from dataclasses import replace

    from cbdp.app.config import read
    from cbdp.app.plan import plan

    given = read(config)
    slot = None if given.series is None else _slot(given, place)
    with tempfile.TemporaryDirectory() as folder:
        privacy = replace(given.privacy, ledger=f"{folder}/ledger", cap=None, cap_delta=None)
        output = replace(given.output, path=f"{folder}/output")
        if slot is not None:
            privacy = replace(privacy, cap=given.privacy.cap, cap_delta=given.privacy.cap_delta)
            output = replace(output, path=f"{folder}/{{period}}")
        return replace(plan(replace(given, privacy=privacy, output=output), slot), config=given)


def _slot(config: Config, place: Path) -> Slot | None:
    """Which release of the series is audited; the first, if its manifest does not say."""
    from cbdp.app.plan.periods import slot_of
    from cbdp.release.loading import read_manifest
    from cbdp.release.series import in_series

    try:
        said = in_series(read_manifest(place).get("series"))
    except CbdpError:  # a finding of its own
        return None
    return None if said is None else slot_of(config, said)


def _request(planned: Plan) -> book.LedgerRequest:
    privacy = planned.config.privacy
    return book.LedgerRequest(planned.asked, planned.account.owner, privacy.cap, privacy.cap_delta)


def _check_universe(planned: Plan, ours: Ours) -> None:
    from cbdp.release.universe_files import universe_hash

    if ours.release is None:
        return
    if universe_hash(planned.universe) != universe_hash(ours.release.features.universe):
        raise InputError(
            f"the configuration {str(planned.config.source.path)!r} describes another universe than the release "
            f"{str(ours.path)!r}: give the one that it was made from"
        )
