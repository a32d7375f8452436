"""The files of a release, written all or nothing.

The same release gives the same bytes with the same version of pyarrow (Parquet files name the version that wrote them; the
manifest states it).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from cbdp.errors import InputError
from cbdp.release.documents import NAMES, documents
from cbdp.release.layout import Layout, check
from cbdp.release.layout import layout as laid_out
from cbdp.release.manifest import describe
from cbdp.release.release import Release
from cbdp.release.schema import dumps
from cbdp.release.universe_files import ROWS
from cbdp.scratch import abandoned, locked_folder, partial_name, sweep

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Saved:
    """Where a release was written, and the SHA-256 of its manifest, which holds those of all other files."""

    path: Path
    sha256: str
    manifest: Mapping[str, Any] = field(repr=False)


def save(
    release: Release,
    folder: str | Path,
    *,
    ledger: Mapping[str, Any] | None,
    extra: Mapping[str, str | bytes],
    simulation: bool,
) -> Saved:
    """Write a release to a new folder: into a temporary one beside it, made durable, then renamed."""
    if not release.secure and not simulation:
        raise InputError(
            "its noise came from a seeded source, so this is a simulation, not a release: pass simulation=True to save it as one"
        )
    target = Path(folder).absolute()
    _check_new(target)
    check(release.features)
    layout = laid_out(release)
    _check_extra(extra, layout)
    sweep(target.parent)
    with locked_folder(target.with_name(partial_name(target.name))) as work:
        written = _write_all(release, layout, extra, work)
        manifest = {**describe(release), **layout.sections, "files": written}
        if ledger is not None:
            manifest["ledger"] = dict(ledger)
        text = dumps(manifest)
        _write(work / MANIFEST, text)
        for place, _, _ in os.walk(work, topdown=False):
            _sync(Path(place))
        _rename(work, target)
    _sync(target.parent)
    return Saved(target, hashlib.sha256(text).hexdigest(), manifest)


def leftovers(folder: str | Path) -> list[Path]:
    """Temporary folders of saves to this folder that were killed. Nobody reads them; the next save beside them removes them."""
    target = Path(folder).absolute()
    return abandoned(target.parent, re.escape(f".{target.name}."))


def _check_new(target: Path) -> None:
    if os.path.lexists(target):
        raise InputError(f"{str(target)!r} exists already: choose another folder for the release")
    if not target.parent.is_dir():
        raise InputError(f"there is no folder {str(target.parent)!r} to put the release in: create it")


def _check_extra(extra: Mapping[str, str | bytes], layout: Layout) -> None:
    own = {sheet.path.partition("/")[0] for sheet in layout.sheets} | {MANIFEST, *NAMES}
    taken = {name.lower() for name in own}  # some file systems do not tell letters apart
    for name in extra:
        if (
            not name
            or name.lower() in taken
            or name != Path(name).name
            or name.startswith(".")
            or "\\" in name
        ):
            raise InputError(
                f"{name!r} cannot be the name of a further file: choose a plain name that is not taken"
            )


def _write_all(
    release: Release, layout: Layout, extra: Mapping[str, str | bytes], work: Path
) -> dict[str, Any]:
    """The data first, then what describes them."""
    written = {}
    for sheet in layout.sheets:
        path = work / sheet.path
        path.parent.mkdir(exist_ok=True)
        with path.open("xb") as out:
            write_parquet(out, iter(sheet.tables()))
            out.flush()
            os.fsync(out.fileno())
        written[sheet.path] = fingerprint(path)
    spoken = documents(release, layout.sections, work, list(extra))
    for name, content in (*spoken.items(), *extra.items()):
        _write(work / name, content.encode() if isinstance(content, str) else content)
        written[name] = fingerprint(work / name)
    return written


def write_parquet(out: BinaryIO, pieces: Iterator[pa.Table]) -> None:
    """Tables of one schema, one after the other, in plain types: every reader sees text as text, whatever held it here."""
    first = next(pieces)
    with pq.ParquetWriter(out, first.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(first, row_group_size=ROWS)
        for piece in pieces:
            writer.write_table(piece, row_group_size=ROWS)


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())


def fingerprint(path: Path) -> dict[str, Any]:
    """The hash and the size of a file."""
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return {"sha256": digest, "bytes": path.stat().st_size}


def _sync(folder: Path) -> None:
    if os.name != "posix":  # elsewhere folders cannot be synchronised
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _rename(work: Path, target: Path) -> None:
    _check_new(target)
    try:
        work.rename(target)
    except OSError:
        raise InputError(f"{str(target)!r} exists already: choose another folder for the release") from None
