"""The runner of pages notices what is wrong on a page: a test of pages that passes whatever they say would be worth nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_running import Said, agrees, blocks, run_page


def _run(tmp_path: Path, text: str) -> list[Said]:
    page = tmp_path / "page.md"
    page.write_text(text, "utf-8")
    folder = tmp_path / "folder"
    folder.mkdir()
    return run_page(page, folder)


@pytest.mark.parametrize(
    ("shown", "said", "right"),
    [
        ("12 trips", "12 trips\n", True),
        ("12 trips", "13 trips\n", False),
        ("… trips", "13 trips\n", True),
        ("a\n…\nz", "a\nb\nc\nz\n", True),
        ("a\n…\nz", "a\nz\n", True),
        ("a\n…\nz", "a\nb\n", False),
        ("a", "a\nmore\n", False),
        ("zone   12  ±3", "zone 12 ±3", True),
        ("x (y) [z]", "x (y) [z]", True),
        ("", "something", False),
    ],
)
def test_what_is_shown_agrees_or_does_not(shown: str, said: str, right: bool) -> None:
    """Dots stand for anything, spaces for each other, and nothing else for anything else."""
    assert agrees(shown, said) is right


def test_commands_run_in_order_and_are_compared(tmp_path: Path) -> None:
    """One that says something else, and one that fails, are not right; one that is to fail is."""
    said = _run(
        tmp_path,
        "```console\n$ echo one > file\n$ cat file\none\n$ cat file\ntwo\n$ false\n```\n"
        '```console title="exit code 3"\n$ exit 3\n```\n',
    )
    assert [s.right for s in said] == [True, True, False, False, True]


def test_our_own_command_runs_with_its_exit_code(tmp_path: Path) -> None:
    """Both of its streams are compared."""
    (said,) = _run(tmp_path, "```console\n$ cbdp check nothing.toml\n```\n")
    assert said.code == 2
    assert said.said.startswith("cbdp: ")


def test_python_blocks_share_names_and_are_compared(tmp_path: Path) -> None:
    """A block of text behind one is what it prints."""
    said = _run(
        tmp_path,
        "```python\nx = 2\n```\n\n```python\nprint(x + 1)\n```\n\n```text\n3\n```\n\n```python\nprint(x)\n```\n```text\n3\n```\n",
    )
    assert [s.right for s in said] == [True, True, False]


def test_files_are_written_and_changed(tmp_path: Path) -> None:
    """A line that is not there cannot be changed."""
    text = '```toml title="a.toml"\n# old = 1\n# [about]\nkept = 2\n```\n```toml title="a.toml, changed lines"\nold = 3\n[about]\n```\n'
    _run(tmp_path, text)
    assert (tmp_path / "folder" / "a.toml").read_text("utf-8") == "old = 3\n[about]\nkept = 2\n"
    with pytest.raises(AssertionError, match="no line 'new'"):
        _run(tmp_path / "folder", text.replace("old = 3", "new = 3"))


def test_blocks_in_tabs_are_found_and_some_left_out() -> None:
    """Indented blocks lose their indent; comments say what is not run, or run and not shown."""
    text = '=== "A"\n\n    ```console\n    $ ls\n    ```\n<!-- not run: a server -->\n```console\n$ psql\n```\n<!-- run: true -->\n'
    found = list(blocks(text))
    assert [(b.kind, b.text, b.run) for b in found] == [
        ("console", "$ ls", True),
        ("console", "$ psql", False),
        ("run", "true", True),
    ]


def test_noisy_numbers_may_differ_and_words_may_not(tmp_path: Path) -> None:
    """Where a page says so, every number stands for any; elsewhere it is itself."""
    text = '```console title="your numbers will differ"\n$ echo "12,3 trips, -4 to +5.5"\n9 trips, 1 to 2\n$ echo 12 trips\n12 taps\n```\n'
    assert [s.right for s in _run(tmp_path, text)] == [True, False]
