"""Mechanisms whose noise may have either law: geometric, paid for in pure ε, or discrete Gaussian, paid for in ρ and stated as (ε, δ)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from cbdp.errors import InputError
from cbdp.measuring.samplers import sampler_of
from cbdp.mechanisms.base import Mechanism
from cbdp.privacy.accounting import epsilon_of, rho_for
from cbdp.privacy.composition import Cost, Part, RhoSpend, Spend, Stated
from cbdp.privacy.laws import LAWS, Law
from cbdp.privacy.laws.base import Currency
from cbdp.privacy.laws.gaussian import Gaussian
from cbdp.privacy.laws.geometric import Geometric
from cbdp.privacy.numbers import positive, probability
from cbdp.release.recipe import Recipe

DELTA = Fraction(1, 10**6)  # at which ρ is stated unless told otherwise


@dataclass(frozen=True)
class EitherLaw(Mechanism):
    """With `law="gaussian"` give `rho`, or `epsilon` and `delta`: then the largest ρ is spent that is known to give them.

    Once it is built, `rho` and `delta` are fractions where the noise is paid for in ρ, and `epsilon` is what ρ gives at that δ.
    """

    law: str = field(default="geometric", kw_only=True)
    rho: Any = field(default=None, kw_only=True)
    delta: Any = field(default=None, kw_only=True)

    @property
    def law_kind(self) -> type[Law]:
        return LAWS.get(self.law)

    @property
    def currency(self) -> Currency:
        return self.law_kind.currency

    @property
    def amount(self) -> Fraction:
        made: Fraction = self.rho if self.currency == "rho" else self.epsilon
        return made

    @property
    def recipe(self) -> Recipe:
        made = super().recipe
        if self.currency == "rho":
            return made
        return replace(made, settings={n: v for n, v in made.settings.items() if n not in ("rho", "delta")})

    def settle(self) -> None:
        sampler_of(self.law_kind(1))  # refuses a law that is never drawn
        if self.currency == "epsilon":
            if self.rho is not None or self.delta is not None:
                name = "rho" if self.rho is not None else "delta"
                raise InputError(
                    f"{name} is given with law {self.law!r}, which spends pure ε: leave it out, or use law 'gaussian'"
                )
            super().settle()
            return
        rho, delta = self._priced()
        object.__setattr__(self, "rho", rho)
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "epsilon", epsilon_of(rho, delta))

    def _priced(self) -> tuple[Fraction, Fraction]:
        """ρ and δ, whichever way they are given."""
        if self.rho is None:
            if self.epsilon is None or self.delta is None:
                raise InputError(
                    f"law {self.law!r} is paid for in ρ: give rho, or epsilon and delta, like 1e-6 (well below one over the number of riders)"
                )
            return rho_for(self.epsilon, self.delta), probability(self.delta)
        rho, delta = positive(self.rho, "rho"), DELTA if self.delta is None else probability(self.delta)
        # a mechanism that is made again from its own fields has both
        if self.epsilon is not None and positive(self.epsilon) != epsilon_of(rho, delta):
            raise InputError(
                f"rho {self.rho} and epsilon {self.epsilon} are both given: leave one of them out"
            )
        return rho, delta

    def with_other_law(self) -> EitherLaw:
        """The same mechanism with the other law, for the same ε and δ; pure ε needs no δ."""
        cost = self.claim().cost
        if self.currency == "rho":
            given: dict[str, Any] = {
                "law": Geometric.name,
                "epsilon": cost.epsilon,
                "rho": None,
                "delta": None,
            }
        else:
            given = {"law": Gaussian.name, "epsilon": cost.epsilon, "rho": None, "delta": cost.delta or DELTA}
        budget = getattr(self, "budget", None)
        if isinstance(budget, Mapping):
            plain = replace(self, budget="uniform", **given)  # type: ignore[call-arg]
            parts = {name: Fraction(share) / self.amount * plain.amount for name, share in budget.items()}
            given["budget"] = parts
        return replace(self, **given)

    def paid(self) -> dict[str, Any]:
        """What is spent, under the name of its currency."""
        return {self.currency: self.amount}

    def spend(self, what: str, share: Fraction) -> Spend | RhoSpend:
        """What an answer costs."""
        return RhoSpend(what, share) if self.currency == "rho" else Spend(what, share)

    def stated(self, cost: Part) -> Cost:
        """What is promised for all answers together."""
        return Stated(cost, self.delta) if self.currency == "rho" else cost

    def noise_for(self, feature: str, share: Fraction) -> Law:
        """The noise that a share buys for a measured feature."""
        return self.law_kind.costing(share, self.change(feature))
