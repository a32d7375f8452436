"""How a QP is solved: the program as arrays, its certificate, and one ordered table of solvers, one file each.

A solver is a frozen value whose fields are its settings.
"""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cbdp.arrays import Floats
from cbdp.errors import InputError, SolverError
from cbdp.parts import Parts, instance_of
from cbdp_solvers.problem import LiftedQP, Problem
from cbdp_solvers.solution import Solution, certify


@dataclass(frozen=True)
class Answer:
    """A solver's primal and dual variables: leaves and prices. It does not certify them: `Solution` does.

    >>> Answer(np.array([2.0, 0.0]), {"total": np.array([0.5])}, iterations=3).iterations
    3
    """

    leaves: Floats
    prices: Mapping[str, Floats]
    iterations: int
    shift: Floats | None = None  # by cell, where it is more precise than a sum of prices


@dataclass(frozen=True)
class Solver(ABC):
    """A way to solve a `Problem`. Subclass it, set the class data, implement `answer`; fields are settings.

    >>> from cbdp_solvers import SOLVERS
    >>> newton = SOLVERS.get("newton")
    >>> newton.name, isinstance(newton, Solver)
    ('newton', True)
    """

    name: ClassVar[str]
    about: ClassVar[str] = ""
    package: ClassVar[str | None] = None  # the module that it needs, probed without importing
    install: ClassVar[str] = ""  # the command that installs it
    exact_values: ClassVar[bool] = True  # can hold exact public counts (infinite weights)
    warm: ClassVar[bool] = False  # makes use of an earlier solution
    largest: ClassVar[int | None] = None  # trip types it can handle; None: any number
    compiled: ClassVar[tuple[str, ...]] = ()  # modules with loops that it runs (`cbdp.compiling.prepare`)

    @classmethod
    def installed(cls) -> bool:
        """Whether the packages that it needs are there."""
        return cls.package is None or importlib.util.find_spec(cls.package) is not None

    @abstractmethod
    def answer(self, problem: Problem, warm_start: Solution | None) -> Answer:
        """Leaves and prices for this problem."""

    def solve(self, problem: Problem, warm_start: Solution | None = None) -> Solution:
        """The certified solution."""
        self._check(problem)
        answer = self.answer(problem, warm_start)
        certificate, objective = certify(problem, answer.leaves, answer.prices, answer.shift)
        return Solution(
            answer.leaves, answer.prices, certificate, objective, self.name, answer.iterations, answer.shift
        )

    def _check(self, problem: Problem) -> None:
        if not self.installed():
            raise SolverError(
                f"solver {self.name!r} needs {self.package}, which is not installed: {self.install}"
            )
        if not self.exact_values and any(np.isinf(term.weight).any() for term in problem.terms):
            raise SolverError(
                f"solver {self.name!r} cannot hold exact counts (infinite weights): use 'newton'"
            )
        n = len(problem.target)
        if self.largest is not None and n > self.largest:
            raise SolverError(
                f"solver {self.name!r} handles at most {self.largest:,} trip types; this problem has {n:,}: use 'newton'"
            )


@dataclass(frozen=True)
class LiftedSolver(Solver):
    """A generic quadratic-programming backend: it sees only the lifted program.

    >>> from cbdp_solvers import SOLVERS
    >>> isinstance(SOLVERS.get("osqp"), LiftedSolver), isinstance(SOLVERS.get("newton"), LiftedSolver)
    (True, False)
    """

    @abstractmethod
    def solve_lifted(self, qp: LiftedQP) -> tuple[Floats, Floats, int]:
        """x, the multipliers y of `qp.ties`, and the number of iterations."""

    def answer(self, problem: Problem, warm_start: Solution | None) -> Answer:  # noqa: ARG002
        qp = problem.lifted()
        try:
            x, y, iterations = self.solve_lifted(qp)
        except SolverError:
            raise
        except Exception as failure:
            raise SolverError(f"solver {self.name!r} failed: {failure}. Try 'newton'.") from failure
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            raise SolverError(f"solver {self.name!r} returned values that are not numbers. Try 'newton'.")
        leaves, prices = qp.restore(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
        return Answer(leaves, prices, iterations)


def check_positive(solver: str, **settings: float) -> None:
    """Refuse settings that must be above zero and are not."""
    for name, value in settings.items():
        if not value > 0:
            raise InputError(f"{solver}: {name} is {value}, it must be above 0")


SOLVERS: Parts[Solver] = Parts(
    "solver",
    "cbdp.solvers",
    {
        "newton": "cbdp_solvers.newton:Newton",
        "piqp": "cbdp_solvers.piqp:Piqp",
        "osqp": "cbdp_solvers.osqp:Osqp",
        "cvxpy": "cbdp_solvers.cvxpy:Cvxpy",
        "highs": "cbdp_solvers.highs:Highs",
        "scipy": "cbdp_solvers.scipy:Scipy",
    },
    instance_of(Solver),
    SolverError,
    "cbdp.solvers.Solver or LiftedSolver",
)
get = SOLVERS.get
known = SOLVERS.known


__all__ = ["SOLVERS", "Answer", "LiftedSolver", "Solver", "get", "known"]
