"""One concept per module, and functions that fit on a screen."""

from __future__ import annotations

from pathlib import Path

import pytest
from house.graph import MAY_IMPORT, ROOT
from house.measure import FUNCTION_LIMIT, LONGER, MODULE_LIMIT, TEST_MODULE_LIMIT, House, report


def test_modules_are_short_or_say_why_not(house: House) -> None:
    """A module above the limit explains itself in its docstring, after the words 'Longer than most:'."""
    found = [f"\n  {m.lines} lines: {m.name}" for m in house.unexcused()]
    assert not found, f"split it, or write '{LONGER} …' in its docstring:{''.join(found)}"


def test_functions_are_short(house: House) -> None:
    """Compiled kernels aside, where a call may cost more than a long body."""
    found = [f"\n  {f.lines} lines: {f.name}" for f in house.functions() if f.lines > FUNCTION_LIMIT]
    assert not found, f"no function may have more than {FUNCTION_LIMIT} lines:{''.join(found)}"


def test_test_modules_are_split_by_what_they_test() -> None:
    """No test module above the limit."""
    lengths = {p: len(p.read_text("utf-8").splitlines()) for p in (ROOT / "tests").rglob("*.py")}
    found = [f"\n  {n} lines: {p.relative_to(ROOT)}" for p, n in lengths.items() if n > TEST_MODULE_LIMIT]
    assert not found, f"no test module may have more than {TEST_MODULE_LIMIT} lines:{''.join(sorted(found))}"


def test_tests_mirror_the_tree() -> None:
    """A folder of tests is named as the folder that it tests."""
    folders = {p.name for p in (ROOT / "tests").iterdir() if any(p.glob("test_*.py"))}
    assert folders - {"benchmarks", "docs", "house"} <= set(MAY_IMPORT)


def _house(tmp_path: Path, text: str) -> House:
    (tmp_path / "cbdp").mkdir()
    (tmp_path / "cbdp" / "__init__.py").write_text(text)
    return House.at(tmp_path)


def test_kernels_are_left_out_and_methods_counted(tmp_path: Path) -> None:
    """Decorated by njit in whatever form, a function is compiled; all others count, nested ones too."""
    body = "    x = 1\n" * 50
    text = (
        f"@njit(cache=True)\ndef kernel():\n{body}"
        f"class A:\n    def method(self):\n{body.replace('    ', '        ')}"
        f"def outer():\n    def inner():\n{body.replace('    ', '        ')}    return inner\n"
    )
    lengths = {f.name.split()[1]: f.lines for f in _house(tmp_path, text).functions()}
    assert lengths == {"method": 51, "inner": 51, "outer": 53}


@pytest.mark.parametrize(
    ("head", "excused"), [('"""A module."""', False), (f'"""A solver.\n\n{LONGER} one proof."""', True)]
)
def test_a_long_module_needs_its_reason(head: str, excused: bool, tmp_path: Path) -> None:
    """In the docstring: a comment is not enough."""
    house = _house(tmp_path, f"{head}\n# {LONGER}\n" + "x = 1\n" * MODULE_LIMIT)
    assert [m.name for m in house.unexcused()] == ([] if excused else ["cbdp"])


def test_the_report_names_every_folder(house: House) -> None:
    """What `make house` prints counts each module once."""
    lines = report(house).splitlines()
    assert {f"cbdp/{folder}/" for folder in MAY_IMPORT} <= {line.split()[0] for line in lines if line.strip()}
    (everything,) = [line.split() for line in lines if line.startswith("  all ")]
    assert int(everything[1]) == len(house.files)
