"""Mutants: a module with one text replaced, in a process of its own that runs one check, which must fail.

`python -m house.mutants` reads jobs as JSON and answers with what became of each. It loads the heavy libraries once and forks for every job, so
that a job costs the import of our own modules and the check. Nothing is written: the mutated source enters by an import hook. Kernels are not
compiled there (NUMBA_DISABLE_JIT), so no cache of compiled code can hold the sound version.
"""

from __future__ import annotations

import gc
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]
HEAVY = ("duckdb", "hypothesis", "networkx", "numba", "numpy", "pyarrow", "pytest", "scipy.stats", "z3")
KILLED, SURVIVED = "killed", "survived"

_replaced: dict[Path, str] = {}  # in a process that runs a mutant: its module, mutated


@dataclass(frozen=True)
class Mutant:
    """One text of one file replaced by another, and the check that must notice."""

    file: str
    old: str
    new: str
    check: str  # "tests/….py::test_…"

    def source(self) -> str:
        """The mutated source; the old text must be there exactly once, so that it is clear what is replaced."""
        text = (ROOT / self.file).read_text("utf-8")
        if text.count(self.old) != 1:
            raise LookupError(f"{self.file} holds {text.count(self.old)} times, not once: {self.old!r}")
        return text.replace(self.old, self.new)


def source_of(path: Path) -> str:
    """The source of a file as this process runs it: mutated, if a mutant is at work."""
    return _replaced.get(path.resolve()) or path.read_text("utf-8")


def fates(mutants: Sequence[Mutant]) -> list[str]:
    """What became of each mutant: "killed", "survived", or in full the error that kept the check from running."""
    paths = [str(ROOT), str(ROOT / "tests"), str(ROOT / "docs")]
    environment = os.environ | {
        "NUMBA_DISABLE_JIT": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(paths),
    }
    done = subprocess.run(
        [sys.executable, "-m", "house.mutants"],
        input=json.dumps([asdict(m) for m in mutants]),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    outcomes: list[str] = json.loads(done.stdout)
    return outcomes


class _Loader(importlib.machinery.SourceFileLoader):
    """Reads the mutated source, and no compiled copy of the sound one."""

    def get_code(self, fullname: str) -> Any:
        return compile(_replaced[Path(self.path).resolve()], self.path, "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> Any:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or Path(spec.origin).resolve() not in _replaced:
            return None
        folder = spec.submodule_search_locations
        return importlib.util.spec_from_file_location(
            fullname, spec.origin, loader=_Loader(fullname, spec.origin), submodule_search_locations=folder
        )


def _fate(mutant: Mutant) -> str:
    """In a process of its own: import the mutated module and run the check."""
    _replaced[(ROOT / mutant.file).resolve()] = mutant.source()
    sys.meta_path.insert(0, _Finder())
    name, _, test = mutant.check.partition("::")
    spec = importlib.util.spec_from_file_location("mutant_check", ROOT / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutant_check"] = module
    spec.loader.exec_module(module)
    from cbdp.errors import CbdpError

    try:
        getattr(module, test)()
    except (AssertionError, CbdpError):  # the check noticed, or the code itself refused to go on
        return KILLED
    return SURVIVED


def _forked(mutant: Mutant) -> str:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            answer = _fate(mutant)
        except BaseException:  # noqa: BLE001 - passed on to whoever waits
            answer = traceback.format_exc()
        with os.fdopen(writer, "w", encoding="utf-8") as out:
            out.write(answer)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


def main() -> None:
    """Jobs on the standard input, fates on the standard output."""
    gc.disable()  # processes that live briefly: collecting would go through all that is loaded, again and again
    for name in HEAVY:
        importlib.import_module(name)
    jobs = [Mutant(**job) for job in json.load(sys.stdin)]
    json.dump([_forked(job) for job in jobs], sys.stdout)


if __name__ == "__main__":
    from house import mutants  # the module that checks import, not this copy of it

    mutants.main()
