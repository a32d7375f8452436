"""The data sets, mechanisms and metrics there are. Each registers itself where it is defined, in one small file."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cbdp
from cbdp.counting.counts import Counts
from cbdp.errors import InputError
from cbdp.features import SINGLETON, TOTAL, FeatureDag
from cbdp.release.release import Release

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ROOT = Path(__file__).parents[2]
LISTED = 2**24  # trip types up to which a case is compared type by type
SLOW = 2  # runs: a mechanism that gets no more is left out where time is short
GROUPS = ("paper", "trees", "ablation", "others", "peers", "simple", "ours")
BUILT_IN = ("data", "mechanisms", "rivals", "metrics")
# what decides a result: the page and its figures may change without running anything again
ASIDE = (
    "__main__",
    "app.audit",
    "app.choosing",
    "app.cli",
    "app.demo",
    "app.fleet",
    "app.init",
    "app.inspecting",
    "app.internal",
    "app.publish",
    "app.series",
    "audit",
    "commands",
    "transit",
)  # no run loads these
DECIDING = ("registry", "specs", "worker", *BUILT_IN)


class NotPossibleError(InputError):
    """A mechanism that makes no sense on a data set: no failure, but no result either."""


@dataclass(frozen=True, eq=False)
class Flows:
    """How flows between places are compared: what they are grouped by, and how far apart two of them are."""

    by: tuple[str, ...]
    distance: Floats = field(repr=False)  # a metric on the elements of that partition
    unit: str
    ground: str  # the ground distance in words


@dataclass(frozen=True, eq=False)
class Case:
    """A data set to be released: features, true counts, and how its flows are compared."""

    name: str
    features: FeatureDag
    truth: Ints = field(repr=False)  # every trip of every type
    flows: Flows | None = field(default=None, repr=False)
    bounded: Counts | None = field(default=None, repr=False)  # what mechanisms get, where not the truth

    def __post_init__(self) -> None:
        if self.features.universe.size > LISTED:
            raise InputError(
                f"{self.name} has {self.features.universe.size:,} trip types: the harness compares them one by one, "
                f"and takes at most {LISTED:,}"
            )

    @cached_property
    def counts(self) -> Counts:
        return cbdp.count(self.truth, self.features.universe) if self.bounded is None else self.bounded

    @property
    def unit(self) -> Any:
        return self.counts.unit

    @property
    def trips(self) -> int:
        return int(self.truth.sum())

    @cached_property
    def by_feature(self) -> dict[str, Ints]:
        """The true counts of every feature."""
        return {name: self.summed(name, self.truth) for name in self.features.features}

    def summed(self, name: str, leaves: NDArray[Any]) -> Ints:
        """The counts of a feature that counts of all trip types add up to."""
        if name == SINGLETON:
            return np.asarray(leaves, dtype=np.int64)
        dag = self.features
        cells = np.zeros(dag.cells.size, dtype=np.int64)
        here = np.flatnonzero(leaves)
        np.add.at(cells, dag.cell_of_leaf[here], np.asarray(leaves[here], dtype=np.int64))
        made = np.zeros(dag.size(name), dtype=np.int64)
        np.add.at(made, dag.cells.element_of_cell[name], cells)
        return made

    def added(self, name: str, leaves: NDArray[Any]) -> Floats:
        """The same for numbers that need not be whole."""
        if name == SINGLETON:
            return np.asarray(leaves, dtype=float)
        dag = self.features
        cells = np.bincount(dag.cell_of_leaf, weights=leaves, minlength=dag.cells.size)
        held = dag.cells.element_of_cell[name]
        return np.asarray(np.bincount(held, weights=cells, minlength=dag.size(name)), dtype=float)

    @cached_property
    def _flow(self) -> Any:
        assert self.flows is not None
        return self.features.universe.partition(self.flows.by)

    def flow(self, leaves: NDArray[Any]) -> Ints:
        """The trips between places that counts of all trip types add up to."""
        here = np.flatnonzero(leaves)
        made = np.zeros(self._flow.size, dtype=np.int64)
        element = self._flow.element_of(self.features.universe.unrank_codes(here))
        np.add.at(made, element, np.asarray(leaves[here], dtype=np.int64))
        return made

    def level(self, level: int) -> FeatureDag:
        """The first `level` features, `total` and `singleton` among them: those of O3, O4 and O5."""
        middle = [f for name, f in self.features.features.items() if name not in (TOTAL, SINGLETON)]
        if level - 2 > len(middle):
            raise NotPossibleError(f"{self.name} has {len(middle) + 2} features, not {level}")
        return FeatureDag(self.features.universe, middle[: level - 2])


@dataclass(frozen=True, eq=False)
class Answer:
    """What a mechanism published, as whole numbers, and what it had before clipping and rounding."""

    leaves: Ints
    raw: NDArray[Any]  # a number per trip type
    tables: Mapping[str, Ints] = field(default_factory=dict)  # published beside the trips
    release: Release | None = None


Run = Callable[[int], Any]  # a seed → a release, an answer, or a number per trip type


@dataclass(frozen=True)
class Data:
    """A data set: how it is loaded, and which files decide it. `absent` says why it cannot be, if it cannot."""

    name: str
    load: Callable[[], Case]
    what: str
    files: tuple[str, ...] = ()
    origin: str = ""
    private: bool = False

    @property
    def absent(self) -> str:
        lost = [f for f in self.files if not Path(f).exists()]
        return f"{Path(lost[0]).name} is not there" if lost else ""


@dataclass(frozen=True)
class Mechanism:
    """A mechanism: (case, ε) → what makes one answer from a seed."""

    name: str
    make: Callable[[Case, str], Run]
    group: str
    what: str
    needs: str = ""  # a package that may not be installed
    most_runs: int = 10**9  # of one group of runs: fewer for slow ones
    origin: str = ""
    lacks: str = ""  # why it cannot be, if it cannot

    @property
    def slow(self) -> bool:
        return self.most_runs <= SLOW

    @property
    def absent(self) -> str:
        lost = self.needs and importlib.util.find_spec(self.needs) is None
        return f"pip install {self.needs}" if lost else self.lacks


@dataclass(frozen=True)
class Metric:
    """A number of an answer, or several by name."""

    name: str
    unit: str
    what: str
    of: Callable[[Case, Answer], float | Mapping[str, float]]


DATA: dict[str, Data] = {}
MECHANISMS: dict[str, Mechanism] = {}
METRICS: dict[str, Metric] = {}
_loading: list[str] = []  # the plug-in that is being loaded, if any


def _add(table: dict[str, Any], made: Any) -> None:
    if made.name in table and not _loading:
        raise InputError(f"{made.name!r} is registered twice: give the second another name")
    table[made.name] = made


def _origin() -> str:
    return _loading[-1] if _loading else ""


def dataset(
    name: str, what: str, files: tuple[str, ...] = (), *, private: bool = False
) -> Callable[..., Any]:
    """Register a function that loads a case."""

    def register(load: Callable[[], Case]) -> Callable[[], Case]:
        _add(DATA, Data(name, load, what, files, _origin(), private))
        return load

    return register


def mechanism(
    name: str,
    *,
    group: str = "others",
    what: str = "",
    needs: str = "",
    most_runs: int = 10**9,
    lacks: str = "",
) -> Callable[..., Any]:
    """Register a function that makes a mechanism of a case and ε; its `group` decides which figure shows it."""
    if group not in GROUPS:
        raise InputError(f"unknown group {group!r} of {name!r}: use one of {', '.join(GROUPS)}")

    def register(make: Callable[[Case, str], Run]) -> Callable[[Case, str], Run]:
        _add(MECHANISMS, Mechanism(name, make, group, what, needs, most_runs, _origin(), lacks))
        return make

    return register


def metric(name: str, *, unit: str, what: str) -> Callable[..., Any]:
    """Register a function of a case and an answer."""

    def register(of: Callable[[Case, Answer], Any]) -> Callable[[Case, Answer], Any]:
        _add(METRICS, Metric(name, unit, what, of))
        return of

    return register


@dataclass(frozen=True)
class Setup:
    """What every process has to register beside what is built in."""

    folder: str = str(ROOT.parent / "shared" / "data")
    plugins: tuple[str, ...] = ()
    configs: tuple[str, ...] = ()
    tntp: tuple[str, ...] = ()
    days: tuple[str, ...] = ()  # single days of the bike trips, as 2014-05-06


_done: list[Setup] = []


def prepare(setup: Setup) -> None:
    """Register everything; once in a process, which works with one setup."""
    if _done and _done[-1] == setup:
        return
    for name in BUILT_IN:
        importlib.import_module(f"benchmarks.harness.{name}")
    from benchmarks.harness.data import register_files

    DATA.update({d.name: d for d in register_files(setup)})
    for path in setup.plugins:
        _load(path)
    _done.append(setup)


def _load(path: str) -> None:
    name = f"plugin_{hashlib.sha256(path.encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise InputError(f"{path!r} is no Python file: give one that registers a mechanism, data or a metric")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _loading.append(path)
    try:
        spec.loader.exec_module(module)
    finally:
        _loading.pop()


# Versions: a result is kept for the code and the files that made it


def _digest(paths: list[Path]) -> str:
    made = hashlib.sha256()
    for path in paths:
        made.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return made.hexdigest()[:16]


def aside(module: str) -> bool:
    """Whether a module of the package (without `cbdp.`) decides no result."""
    return any(module == name or module.startswith(f"{name}.") for name in ASIDE)


@lru_cache
def code_version() -> str:
    """The hash of the package's sources, less what no run loads, and of what decides a result here."""
    here, home = Path(__file__).parent, ROOT / "cbdp"
    deciding = {
        p for p in home.rglob("*.py") if not aside(".".join(p.relative_to(home).with_suffix("").parts))
    }
    for folder in ("features", "solvers"):
        deciding |= set((ROOT / folder).rglob("*.py"))
    own = [here / f"{name}.py" for name in DECIDING]
    return _digest([*sorted(deciding), *own, here / "measure.py", here.parent / "ablation" / "case.py"])


@lru_cache
def _files_version(files: tuple[str, ...]) -> str:
    return _digest([Path(f) for f in files])


def version(data_name: str, mechanism_name: str) -> str:
    """The code version, and the hash of the files that this data set and mechanism come from."""
    own, how = DATA[data_name], MECHANISMS[mechanism_name]
    files = (*own.files, *(o for o in (own.origin, how.origin) if o))
    return code_version() + (f"-{_files_version(files)}" if files else "")


def files_of(stated: str) -> str:
    """The part of a version that is of files, not of the code."""
    return stated.partition("-")[2]


# Answers


def answer(case: Case, result: Any) -> Answer:
    """What a run returned, in the form that metrics take."""
    if isinstance(result, Answer):
        return result
    if not isinstance(result, Release):
        values = np.asarray(result)
        if values.shape != case.truth.shape:
            raise InputError(
                f"a mechanism returned shape {values.shape}, not a number for each of {len(case.truth):,} trip types"
            )
        return Answer(np.maximum(np.rint(values), 0).astype(np.int64), values)
    from benchmarks.harness.mechanisms import before_rounding

    dense = np.zeros(len(case.truth), dtype=np.int64)
    dense[result.index] = result.value
    own = {n: t for n, t in result.tables.items() if n in case.features}
    return Answer(dense, before_rounding(result, dense), own, result)
