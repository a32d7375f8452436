"""Whose privacy a ledger accounts for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Owner:
    """The riders of one data set, or riders whose trips several data sets hold: those share one cap.

    >>> print(Owner("may"), Owner.of("may", "oyster cards"), sep="; ")
    data set 'may'; the riders 'oyster cards'
    """

    name: str
    riders: bool = False  # False: the name is that of a data set

    @classmethod
    def of(cls, dataset: str, riders: str | None = None) -> Owner:
        return cls(dataset) if riders is None else cls(riders, riders=True)

    @property
    def kind(self) -> str:
        """The field that names it, in an entry and in a manifest."""
        return "riders" if self.riders else "dataset"

    def json(self) -> dict[str, str]:
        return {self.kind: self.name}

    def __str__(self) -> str:
        return f"{'the riders' if self.riders else 'data set'} {self.name!r}"

    def refusal_of(self, asked: Owner) -> str:
        """Why a ledger of this owner cannot be charged for another, and what to do."""
        if self.riders:
            cure = f'if these trips are theirs, write riders = "{self.name}"; if not, name another ledger'
        elif asked.riders:
            cure = "name another ledger: one for riders holds all their data sets from its first charge on"
        else:
            cure = "name another ledger, or, where the same people ride in both, create one for their riders"
        return f"belongs to {self}, not to {asked}: {cure}"
