"""How much a mechanism leaks at least, in ρ: a lower bound for claims of zero-concentrated privacy, from runs on two neighbouring data sets.

ρ-zCDP bounds the Rényi divergence of what is published by αρ, for every order α ≥ 1, and whoever looks only at whether an event happened sees no more
than that. An event of probability p under one data set and q < p under the other therefore proves ρ ≥ D_α(p, q)/α. With a lower
Clopper-Pearson limit of p and an upper one of q the divergence is smaller, so that the bound holds but for the chance of a false alarm. One
event of Gaussian noise shows about 2/π of ρ at best: a claim that is too small by a factor of two is refuted, one by a tenth is not.

Trials must be independent: no answer may mix parts. For the (ε, δ) that is stated of a ρ use `epsilon_lower_bound`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import special

from cbdp.app.audit.epsilon import Events, ThroughFiles, TrialParts, View, best_proof, check_asked, run_trials
from cbdp.app.audit.proven import as_finding, in_a_line
from cbdp.arrays import Floats
from cbdp.audit.finding import Finding

ORDERS = np.concatenate([[1.0], 1 + np.geomspace(0.01, 30, 40)])  # α that are tried


@dataclass(frozen=True)
class RhoBound:
    """What was proven: ρ is at least this, but for a chance of `alpha`; and by which event."""

    rho: float
    event: str
    counts: tuple[int, int]  # how often it happened in trials of the two data sets
    trials: tuple[int, int]  # on which it was tested
    alpha: float = 1e-6
    claim: float | None = field(default=None)

    @property
    def exceeds(self) -> bool:
        """Whether the claim is refuted."""
        return self.claim is not None and self.rho > self.claim

    def __str__(self) -> str:
        return in_a_line(self, "ρ", self.rho)

    def finding(self) -> Finding:
        """The same for a reviewer."""
        return as_finding(self, "ρ", self.rho, {"rho": self.rho})


def rho_lower_bound(
    mechanism: Any,
    d1: Any,
    d2: Any,
    *,
    trials: int = 200_000,
    parts: TrialParts | None = None,
    claim: float | None = None,
    alpha: float = 1e-6,
    seed: int = 0,
    events: Events | None = None,
    view: View | None = None,
) -> RhoBound:
    """The largest ρ that runs of a mechanism on two neighbouring data sets prove; arguments as of `epsilon_lower_bound`.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> bound = rho_lower_bound(lambda count: [count + rng.normal(0, 1)], 1, 0, trials=4000, claim=0.5)
    >>> bound.exceeds, bool(0.1 < bound.rho < 0.5)
    (False, True)
    """
    check_asked(trials, alpha, None)
    inner = mechanism.mechanism if isinstance(mechanism, ThroughFiles) else mechanism
    if claim is None and hasattr(inner, "claim"):
        claim = float(inner.claim().cost.rho)
    made = run_trials(mechanism, d1, d2, trials, parts, seed, view)
    proven, best = best_proof(*made, events, rho_bound, alpha)
    return RhoBound(proven, *best, alpha, claim)


def rho_bound(a: Any, b: Any, n: Any, m: Any, *, level: float) -> Floats:
    """The ρ that an event proves which happened a times in n trials of one data set and b times in m of the other.

    >>> round(float(rho_bound(691_000, 309_000, 10**6, 10**6, level=1e-6)), 2)  # half a deviation to either side: ρ = 1/2
    0.3
    """
    a, b, n, m = (np.asarray(v, dtype=float) for v in (a, b, n, m))
    low = np.where(a > 0, special.betaincinv(np.maximum(a, 1e-300), np.maximum(n - a, 0) + 1, level / 2), 0.0)
    high = np.where(b < m, special.betainccinv(b + 1, np.maximum(m - b, 1e-300), level / 2), 1.0)
    return np.asarray(np.where(low > high, _divergence(low, np.minimum(high, 1 - 1e-16)), 0.0))


def _divergence(p: Floats, q: Floats) -> Floats:
    """The largest D_α/α of an event with these probabilities over all orders that are tried; α = 1 is Kullback and Leibler's."""
    with np.errstate(divide="ignore", invalid="ignore"):
        yes, no = np.log(p / q)[..., None], np.log((1 - p) / (1 - q))[..., None]
        plain = special.xlogy(p, p / q) + special.xlogy(1 - p, (1 - p) / (1 - q))
        order = ORDERS[1:] - 1
        log_p, log_no = np.log(p)[..., None], np.log1p(-p)[..., None]
        raised = np.logaddexp(log_p + order * yes, np.where(p[..., None] < 1, log_no + order * no, -np.inf))
        renyi = (raised / order / (order + 1)).max(axis=-1)
    return np.asarray(np.maximum(plain, renyi))
