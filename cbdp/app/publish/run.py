"""What the steps of a release share: the plan, whom to tell, and whether the run may still be stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cbdp.app.stopping import Interrupts

if TYPE_CHECKING:
    from cbdp.app.plan import Plan
    from cbdp.trips import Counts

Say = Callable[[str], None]
Judge = Callable[["Plan", "Counts"], None]  # refuses by an error


def silent(_: str) -> None:
    """For runs that nobody watches."""


def approve(plan: Plan, counts: Counts) -> None:
    """Refuse nothing."""


@dataclass(frozen=True)
class Run:
    """One attempt to publish a plan."""

    plan: Plan
    say: Say = silent
    interrupts: Interrupts = field(default_factory=Interrupts)
    judge: Judge = approve  # of the counts, before the charge
    rehearsed: bool = False

    @property
    def folder(self) -> Path:
        """Where the release and what belongs to it are written."""
        return self.plan.output.absolute().parent

    @contextmanager
    def stage(self, what: str) -> Iterator[None]:
        start = time.perf_counter()
        self.say(f"{what} …")
        yield
        self.interrupts.stage_done()
        self.say(f"{what}: {time.perf_counter() - start:.1f} s")
