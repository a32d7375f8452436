"""The command behind `cbdp audit`: attacks a release and says what was found; exit code 1 if it contradicts its claims."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

from cbdp.app.audit.run import DESCRIPTION, audit_release
from cbdp.app.new_file import check_new, write_new
from cbdp.audit.finding import Verdict
from cbdp.audit.page import build
from cbdp.audit.result import Audit
from cbdp.errors import InputError
from cbdp.progress import in_quarters, watched
from cbdp.report.markup import INTERNAL

WORDS: dict[Verdict, str] = {"contradicts": "CONTRADICTS", "weakness": "weakness", "clear": "clear"}
SUMS: dict[Verdict, str] = {
    "contradicts": "the release is not what it claims",
    "weakness": "nothing contradicts the release; see its weaknesses",
    "clear": "nothing was found",
}
ORDER: tuple[Verdict, ...] = ("contradicts", "weakness", "clear")
WIDE = 108


def main(argv: Sequence[str]) -> int:
    """`cbdp audit` with these arguments."""
    options = _parser().parse_args(argv)
    outputs = [Path(p) for p in (options.out, options.json) if p is not None]
    for path in outputs:
        _check_place(path, Path(options.release), sensitive=options.trips is not None)
    if len({p.absolute() for p in outputs}) < len(outputs):
        raise InputError(f"--out and --json both name {str(outputs[0])!r}: choose two files")
    with watched(in_quarters(_say)) if sys.stderr.isatty() else nullcontext():
        done = audit_release(
            options.release, ledger=options.ledger, config=options.config, trips=options.trips
        )
    print("\n".join(lines(done)))
    if options.json is not None:
        write_new(Path(options.json), done.json(), internal=done.sensitive)
    if options.out is not None:
        write_new(Path(options.out), build(done), internal=done.sensitive)
        print(f"open {options.out}")
    return int(done.verdict == "contradicts")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cbdp audit",
        description="Attack a release before others do. Exit code 1: a finding contradicts what the release claims.",
    )
    parser.add_argument("release", help=f"folder of a release, or of tables that its {DESCRIPTION} describes")
    parser.add_argument("--ledger", metavar="FILE", help="also check that the release was charged")
    parser.add_argument(
        "--config", metavar="CONFIG", help="the configuration it was made from: checks its ledger and request"
    )
    parser.add_argument(
        "--trips",
        nargs="?",
        const=True,
        metavar="FILE",
        help="curator only: test the noise against the real trips: those of --config, or of a file or a configuration; "
        "never publish the result, and write 'internal' into the names of its files",
    )
    parser.add_argument("--out", metavar="HTML", help="also write the reviewer's page")
    parser.add_argument("--json", metavar="JSON", help="also write the findings as JSON")
    return parser


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def lines(done: Audit) -> Iterator[str]:
    """The findings as a short table: the gravest first, then what was not checked."""
    if done.sensitive:
        yield INTERNAL
    yield f"{done.subject}: {done.claim}"
    wide = max((len(f.check) for f in done.findings), default=0)
    for verdict in ORDER:
        for f in done.of(verdict):
            yield f"  {WORDS[verdict]:<11}  {f.check:<{wide}}  {f.title}"
            said = f.power if verdict == "clear" else f.evidence
            yield from textwrap.wrap(
                said, WIDE, initial_indent=" " * (17 + wide), subsequent_indent=" " * (17 + wide)
            )
    for words in done.left_out:
        yield f"  {'not checked':<11}  {words}"
    yield f"{SUMS[done.verdict]}: {_counted(done)}"


def _counted(done: Audit) -> str:
    bad, weak, clear = (len(done.of(v)) for v in ORDER)
    return f"contradictions: {bad}, weaknesses: {weak}, checks that found nothing: {clear}"


# What is written


def _check_place(path: Path, release: Path, *, sensitive: bool) -> None:
    """Before anything is read: a place that is free, in a folder that exists, and not where the public files lie."""
    folder = path.absolute().parent.resolve()  # `..` is a way out of the release, not a place in it
    if release.is_dir() and release.resolve() in [folder, *folder.parents]:
        raise InputError(
            f"{str(path)!r} lies in the release, which is complete as it is: choose another place"
        )
    check_new(path, internal=sensitive)
