"""Every benchmark says which claim it measures, on a page that exists, and stands in the list of results."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from benchmarks.__main__ import available

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", available())
def test_a_benchmark_states_its_claim(name: str) -> None:
    """Its docstring has the claim, the page where the claim stands and the command."""
    file = ROOT / "benchmarks" / f"{name}.py"
    text = (file if file.exists() else file.with_suffix("") / "__init__.py").read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(text)) or ""
    [claim] = re.findall(r"^Claim: .+$", docstring, re.MULTILINE)
    assert f"python -m benchmarks {name}" in docstring
    for page in re.findall(r"docs/[\w/-]+\.md", claim):
        assert f"benchmarks {name}" in (ROOT / page).read_text(encoding="utf-8"), page
    assert re.search(r"\(docs/[\w/-]+\.md\)|page of", claim)


def test_the_list_of_results_has_every_benchmark() -> None:
    """And names no benchmark that is gone."""
    index = (ROOT / "docs/results/index.md").read_text(encoding="utf-8")
    assert set(re.findall(r"python -m benchmarks (\w+)", index)) == set(available())
