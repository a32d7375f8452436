"""Files that are there when they are finished, and libraries that are asked for when they are needed."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from cbdp.errors import InputError
from cbdp.scratch import locked_folder, partial_name, sweep


@contextmanager
def fresh(target: Path) -> Iterator[Path]:
    """A path near the target to write a file or folder to; renamed when all went well, and removed otherwise."""
    if os.path.lexists(target):
        raise InputError(f"{str(target)!r} exists already: choose another path")
    if not target.absolute().parent.is_dir():
        raise InputError(f"there is no folder {str(target.absolute().parent)!r} to write to: create it")
    sweep(target.absolute().parent)
    with locked_folder(target.absolute().with_name(partial_name(target.name))) as folder:
        work = folder / target.name
        yield work
        if os.path.lexists(target):
            raise InputError(f"{str(target)!r} exists already: choose another path")
        work.rename(target)


def final_path(work: Path) -> Path:
    """Where what is written at a path of `fresh` stands in the end: files that name others by relative paths need to know."""
    return work.absolute().parent.parent / work.name


@contextmanager
def text(path: Path) -> Iterator[TextIO]:
    """A text file to write to, compressed if its name ends in .gz; the same text gives the same bytes."""
    with path.open("xb") as out:
        raw = gzip.GzipFile("", "wb", fileobj=out, mtime=0) if path.suffix == ".gz" else out
        with io.TextIOWrapper(raw, encoding="utf-8", newline="\n") as written:
            yield written


def needs(module: str, extra: str) -> Any:
    """An optional library."""
    try:
        return import_module(module)
    except ImportError:
        raise InputError(f"this format needs {module}: pip install 'cbdp[{extra}]'") from None
