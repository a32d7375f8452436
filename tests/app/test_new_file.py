"""Files of commands: nothing is overwritten, and nothing internal lands in a release."""

from __future__ import annotations

from pathlib import Path

import pytest

from cbdp.app.new_file import check_new, write_new
from cbdp.errors import InputError


def test_a_file_is_written_once(tmp_path: Path) -> None:
    """A second time, and without a folder, it is refused, before the work and when writing; the first text stays."""
    path = tmp_path / "page.html"
    check_new(path, internal=True)
    write_new(path, "ε")
    for again in (lambda: check_new(path, internal=False), lambda: write_new(path, "x")):
        with pytest.raises(InputError, match=r"page\.html' exists already and is not overwritten"):
            again()
    assert path.read_text(encoding="utf-8") == "ε"
    nowhere = tmp_path / "none" / "page.html"
    with pytest.raises(InputError, match=r"there is no folder .*none': make it first"):
        check_new(nowhere, internal=False)
    with pytest.raises(InputError, match="cannot be written"):
        write_new(nowhere, "x")


def test_nothing_internal_goes_into_a_release(tmp_path: Path) -> None:
    """Neither beside the manifest nor in a folder below it; what is public may."""
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "features").mkdir()
    for path in (tmp_path / "page.html", tmp_path / "features" / "page.html"):
        check_new(path, internal=False)
        with pytest.raises(InputError, match="lies in a release"):
            check_new(path, internal=True)
