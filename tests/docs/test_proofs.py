"""Proofs beside the code: pages have what a reviewer looks for, pointers lead both ways, and every listed mutant dies of the check that is named."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest
from house.mutants import KILLED, SURVIVED, Mutant, fates

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "proofs"
SECTIONS = ("Statement", "Assumptions", "Proof", "Code", "Check", "Mutants")
POINTER = re.compile(r"docs/proofs/([\w-]+)\.md")
NAME = re.compile(r"`(cbdp(?:_features|_solvers)?(?:\.\w+)+)`")
CHECK = re.compile(r"`(tests/[\w/]+\.py::test_\w+)`")
MUTANT = re.compile(
    r"^Killed by `([^`]+)`: [^\n]+\n\n```diff\n--- (\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
LONGEST_PROOF = 700  # words: a page or less

# What a guarantee rests on: every module here names a proof, or stands below with the reason why it needs none.
RESTS_ON = (
    "cbdp/measuring",
    "cbdp/privacy/noise.py",
    "cbdp/ledger",
    "cbdp/privacy/unit.py",
    "cbdp/privacy/accounting.py",
    "cbdp/privacy/continual.py",
    "cbdp/mechanisms/threshold.py",
    "cbdp/counting/counts.py",
    "cbdp/counting/linking.py",
    "cbdp/counting/bounding.py",
    "cbdp/counting/engines/sql.py",
    "features/cbdp_features/contribution.py",
)
WITHOUT_PROOF = {
    "__init__.py": "names of a folder",
    "cbdp/privacy/convolution.py": "convolutions for estimates, right of the wall",
    "cbdp/ledger/charges.py": "names whose ledger it is",
}


@dataclass(frozen=True)
class Page:
    """A proof as its page has it."""

    path: Path

    @cached_property
    def sections(self) -> dict[str, str]:
        parts = re.split(r"^## (.+)$", self.path.read_text("utf-8"), flags=re.MULTILINE)
        return {head.strip(): text for head, text in zip(parts[1::2], parts[2::2], strict=True)}

    @property
    def names(self) -> list[str]:
        """The code that rests on it."""
        return NAME.findall(self.sections["Code"])

    @property
    def checks(self) -> list[str]:
        return CHECK.findall(self.sections["Check"])

    @property
    def mutants(self) -> list[Mutant]:
        result = []
        for check, file, block in MUTANT.findall(self.sections["Mutants"]):
            sides = {
                sign: "\n".join(line[1:] for line in block.splitlines() if line.startswith(sign))
                for sign in "-+"
            }
            result.append(Mutant(file, sides["-"], sides["+"], check))
        return result


PAGES = [Page(path) for path in sorted(FOLDER.glob("*.md")) if path.stem != "index"]
EACH = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path.stem)


def documented(file: Path) -> dict[str, str]:
    """Every module, class and function of a file by its dotted name, with its docstring."""
    tree = ast.parse(file.read_text("utf-8"))
    module = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    module = re.sub(r"^(features|solvers)\.", "", module)
    result = {module: ast.get_docstring(tree) or ""}

    def visit(node: ast.AST, name: str) -> None:
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.ClassDef | ast.FunctionDef):
                result[f"{name}.{inner.name}"] = ast.get_docstring(inner) or ""
                visit(inner, f"{name}.{inner.name}")

    visit(tree, module)
    return result


@pytest.fixture(scope="module")
def docstrings() -> dict[str, str]:
    """Of all our code."""
    files = {p.resolve() for folder in ("cbdp", "features", "solvers") for p in (ROOT / folder).rglob("*.py")}
    return {name: text for file in sorted(files) for name, text in documented(file).items()}


@EACH
def test_a_page_has_what_a_reviewer_looks_for(page: Page) -> None:
    """Six sections in one order, a proof of a page or less that ends, checks that are there, mutants of each kind of mistake."""
    assert tuple(page.sections) == SECTIONS
    assert page.sections["Proof"].count("∎") == 1
    assert len(page.sections["Proof"].split()) <= LONGEST_PROOF
    assert page.names
    assert page.mutants
    assert page.sections["Mutants"].count("```diff") == len(page.mutants), "a mutant that cannot be read"
    for check in {*page.checks, *(m.check for m in page.mutants)}:
        file, _, test = check.partition("::")
        assert f"\ndef {test}(" in (ROOT / file).read_text("utf-8"), f"{check} is not there"
    assert {m.check for m in page.mutants} <= {*page.checks}, (
        "a mutant dies of a check that the page does not name"
    )


@EACH
def test_the_code_names_the_page_that_proves_it(page: Page, docstrings: dict[str, str]) -> None:
    """From the page to the code: what it lists is there, and its docstring points back."""
    pointer = f"docs/proofs/{page.path.name}"
    lost = [name for name in page.names if name not in docstrings]
    assert not lost, f"{pointer} names code that is gone: {lost}"
    silent = [name for name in page.names if pointer not in docstrings[name]]
    assert not silent, f"docstrings that should say 'Proof: {pointer}': {silent}"


def test_pointers_of_the_code_lead_to_pages_that_name_it(docstrings: dict[str, str]) -> None:
    """From the code to the page: it is there, and lists the function."""
    pages = {page.path.stem: page.names for page in PAGES} | {"index": []}
    wrong = [
        f"{name} points to docs/proofs/{stem}.md, which does not list it"
        for name, text in docstrings.items()
        for stem in POINTER.findall(text)
        if stem != "index" and name not in pages.get(stem, [])
    ]
    assert not wrong, "\n".join(wrong)


def test_all_that_a_guarantee_rests_on_names_a_proof() -> None:
    """Every module that draws, bounds, prices or charges has a pointer, or a reason to have none."""
    files = [
        path
        for place in RESTS_ON
        for path in ([ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("*.py")))
    ]
    assert len(files) > 20
    bare = [
        str(path.relative_to(ROOT))
        for path in files
        if path.name not in WITHOUT_PROOF
        and str(path.relative_to(ROOT)) not in WITHOUT_PROOF
        and not any(POINTER.search(text) for text in documented(path).values())
    ]
    assert not bare, f"name the proof in a docstring, or the reason in WITHOUT_PROOF: {bare}"


def test_the_reviewers_page_lists_every_proof() -> None:
    """Each page once in its table, with its first check and the code that it starts from."""
    text = (FOLDER / "index.md").read_text("utf-8")
    rows = {
        match[1]: line
        for line in text.splitlines()
        if (match := re.match(r"\|[^|]*\]\(([\w-]+)\.md\)", line))
    }
    assert [*rows] == list(dict.fromkeys(rows))
    assert {*rows} == {page.path.stem for page in PAGES}
    for page in PAGES:
        line = rows[page.path.stem]
        assert any(check.partition("::")[0] in line for check in page.checks), page.path.stem
        assert any(f"`{name}`" in line for name in page.names), page.path.stem


def test_mutants_still_fit_the_code() -> None:
    """The text that each of them replaces is in its file, once; else the page says what is no longer so."""
    wrong = []
    for page in PAGES:
        for mutant in page.mutants:
            text = (ROOT / mutant.file).read_text("utf-8")
            if text.count(mutant.old) != 1:
                wrong.append(
                    f"docs/proofs/{page.path.name}: {mutant.file} holds {text.count(mutant.old)} times, not once: {mutant.old!r}"
                )
    assert not wrong, "write these mutants again for the code as it is now:\n" + "\n".join(wrong)


PROBED = "cbdp/privacy/accounting.py"
PROBE = "tests/privacy/test_proof_accounting.py::test_pure_epsilon_in_rho"
PROBES = [  # of the runner itself: a change without effect, one with effect, and one after which the check cannot run
    Mutant(PROBED, "STATED_DIGITS = 9  # significant", "STATED_DIGITS = 9  #", PROBE),
    Mutant(PROBED, "return positive(epsilon) ** 2 / 2", "return positive(epsilon) ** 2 / 3", PROBE),
    Mutant(PROBED, "STATED_DIGITS = 9  # significant", "STATED_DIGITS = nonsense  #", PROBE),
]


@pytest.mark.slow
def test_every_mutant_dies() -> None:
    """Each in a process of its own, of the check that its page names; and the runner tells what survives from what dies and what cannot run."""
    mutants = [mutant for page in PAGES for mutant in page.mutants]
    assert len(mutants) >= 2 * len(PAGES)
    lived, killed, stopped, *outcomes = fates([*PROBES, *mutants])
    assert (lived, killed) == (SURVIVED, KILLED)
    assert "NameError" in stopped
    survivors = [
        f"{mutant.file}\n- {mutant.old}\n+ {mutant.new}\n{mutant.check}: {fate}"
        for mutant, fate in zip(mutants, outcomes, strict=True)
        if fate != KILLED
    ]
    assert not survivors, "\n\n".join(survivors)
