"""Tests mirror the tree, and `make house` counts each module once."""

from __future__ import annotations

from pathlib import Path

from house.graph import MAY_IMPORT, ROOT
from house.measure import House, report


def test_tests_mirror_the_tree() -> None:
    """A folder of tests is named as the folder that it tests."""
    folders = {p.name for p in (ROOT / "tests").iterdir() if any(p.glob("test_*.py"))}
    assert folders - {"benchmarks", "docs", "golden", "house"} <= set(MAY_IMPORT)


def _house(tmp_path: Path, text: str) -> House:
    (tmp_path / "cbdp").mkdir()
    (tmp_path / "cbdp" / "__init__.py").write_text(text)
    return House.at(tmp_path)


def test_kernels_are_left_out_and_methods_counted(tmp_path: Path) -> None:
    """Decorated by njit or kernel in whatever form, a function is compiled; all others count, nested ones too."""
    body = "    x = 1\n" * 50
    text = (
        f"@njit(cache=True)\ndef loop():\n{body}"
        f"@fast_kernel\ndef faster():\n{body}"
        f"class A:\n    def method(self):\n{body.replace('    ', '        ')}"
        f"def outer():\n    def inner():\n{body.replace('    ', '        ')}    return inner\n"
    )
    lengths = {f.name.split()[1]: f.lines for f in _house(tmp_path, text).functions()}
    assert lengths == {"method": 51, "inner": 51, "outer": 53}


def test_the_report_names_every_folder(house: House) -> None:
    """What `make house` prints counts each module once."""
    lines = report(house).splitlines()
    assert {f"cbdp/{folder}/" for folder in MAY_IMPORT} <= {line.split()[0] for line in lines if line.strip()}
    (everything,) = [line.split() for line in lines if line.startswith("  all ")]
    assert int(everything[1]) == len(house.files)


def test_names_say_what_a_thing_is(house: House) -> None:
    """Less than one function in fifty binds a name that only says that something was made, found or told; no way back to one file a function."""
    vague, functions = house.vague_functions
    assert vague < 0.02 * functions
    assert len(house.files) <= 250
    assert len(house.single_importers) <= 70
