"""What a mechanism promises."""

from __future__ import annotations

from dataclasses import dataclass

from cbdp.privacy.composition import Cost
from cbdp.privacy.unit import Unit


@dataclass(frozen=True)
class Claim:
    """What a mechanism promises: ε and δ, or ρ, for a unit of privacy, with the argument; or that it promises nothing."""

    unit: Unit
    cost: Cost
    holds: bool = True
    caveat: str = ""

    def __str__(self) -> str:
        if not self.holds:
            return f"not differentially private for any ε: {self.caveat}"
        kind = "ε-DP" if self.cost.delta == 0 else "(ε, δ)-DP"
        kind = "ρ-zCDP" if self.cost.currency == "rho" else kind
        return f"{kind} for {self.unit}: {self.cost}"
