"""What shall be run: frozen values, one per run, and experiments that are the product of lists."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple

from cbdp.errors import InputError

ERRORS, TIMES = "errors", "times"


class Spec(NamedTuple):
    """One run. The task is to measure the errors of an answer, or the time to make and write a release."""

    task: str
    data: str
    mechanism: str
    epsilon: str
    seed: int

    @property
    def group(self) -> tuple[str, str, str, str]:
        """The runs that differ by their seed only."""
        return self[:4]

    def __str__(self) -> str:
        return f"{self.data} · {self.mechanism} · ε = {self.epsilon} · seed {self.seed}"


@dataclass(frozen=True)
class Limits:
    """What one run may take."""

    seconds: float = 120.0
    bytes: int = 4 * 2**30  # beyond what was there before the run

    def __post_init__(self) -> None:
        if self.seconds <= 0 or self.bytes <= 0:
            raise InputError(f"limits of {self.seconds} s and {self.bytes} bytes: both must be above 0")

    def covers(self, other: Limits) -> bool:
        return self.seconds >= other.seconds and self.bytes >= other.bytes


@dataclass(frozen=True)
class Experiment:
    """Data × mechanisms × ε × seeds. Slow mechanisms state in the registry how many runs they get at most."""

    name: str
    data: tuple[str, ...]
    mechanisms: tuple[str, ...]
    epsilons: tuple[str, ...]
    runs: int
    task: str = ERRORS

    def specs(self, most: dict[str, int] | None = None) -> list[Spec]:
        made = itertools.product((self.task,), self.data, self.mechanisms, self.epsilons, range(self.runs))
        return [s for s in map(Spec._make, made) if s.seed < (most or {}).get(s.mechanism, self.runs)]


EXPERIMENTS: dict[str, Experiment] = {}


def experiment(
    name: str,
    data: tuple[str, ...],
    mechanisms: tuple[str, ...],
    epsilons: tuple[str, ...],
    runs: int,
    task: str = ERRORS,
) -> Experiment:
    """An experiment, registered under its name; one of the same name is replaced."""
    EXPERIMENTS[name] = Experiment(name, data, mechanisms, epsilons, runs, task)
    return EXPERIMENTS[name]
