"""Where ε is spent: exact counts in, noisy answers out. The last step left of the wall."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.features import SINGLETON, FeatureDag
from cbdp.measuring.samplers import sampler_of
from cbdp.measuring.sparse import SparseAnswer
from cbdp.privacy.budget import BudgetLike, shares
from cbdp.privacy.changes import change_in
from cbdp.privacy.entropy import Entropy, SystemEntropy
from cbdp.privacy.laws import LAWS, Law
from cbdp.privacy.measurement import Measurement, NoisyAnswer
from cbdp.privacy.numbers import Number
from cbdp.trips import Counts, check_universe

Backend = Literal["cbdp", "opendp"]

DENSE = (
    2**24
)  # trip types up to which all are noised at once; the posterior reveals all of as many (`Tuning.revealed`)


def measure(
    counts: Counts,
    features: FeatureDag,
    epsilon: Number | None = None,
    budget: BudgetLike = "balanced",
    *,
    only: Sequence[str] | None = None,
    entropy: Entropy | None = None,
    backend: Backend = "cbdp",
    law: str = "geometric",
    sparse: bool | None = None,
    rho: Number | None = None,
) -> list[Any]:
    """Noisy answers to every feature (or `only` some): what `cbdp.post_process` takes. They cost `epsilon`, or `rho` with law "gaussian".

    What one unit can change of a feature's counts follows from the unit and from what the feature tells apart. Noise that costs ε_i (or
    ρ_i) for such a change makes them ε_i-differentially private (ρ_i-zCDP), and answers about the same trips compose.

    In a universe of more than `DENSE` trip types (or with `sparse=True`) the answer to `singleton` is revealed on demand, from
    the top down, at the cost of the trips and not of the universe: its `measurement()` is what may be published.

    Proof: docs/proofs/composition.md.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"]}
    >>> counts = cbdp.count(trips, features.universe)
    >>> answers = cbdp.measure(counts, features, epsilon=1, budget="uniform")
    >>> [(m.feature, str(m.epsilon)) for m in answers]
    [('total', '1/3'), ('time', '1/3'), ('singleton', '1/3')]
    """
    check_universe(counts, features.universe)
    source = entropy or SystemEntropy()
    kind = LAWS.get(law)
    given = shares(features, _amount(kind, epsilon, rho), budget, only)
    large = features.universe.size > DENSE if sparse is None else sparse
    laws = {name: kind.costing(e, change_in(features, name, counts.unit)) for name, e in given.items()}
    if backend != "cbdp":
        _check_backend(backend, law, entropy, large and SINGLETON in given)
    if large and SINGLETON in given:
        return _above(counts, features, given, laws, source)
    return [
        noisy(name, counts.of(features, name), laws[name], e, source, backend) for name, e in given.items()
    ]


def _amount(kind: type[Law], epsilon: Number | None, rho: Number | None) -> Number:
    """What is spent, in the currency of the law."""
    given, other = (epsilon, rho) if kind.currency == "epsilon" else (rho, epsilon)
    if given is None or other is not None:
        raise InputError(
            f"noise of law {kind.name!r} is paid for in {kind.currency}: give {kind.currency} and nothing else"
        )
    return given


def paid(law: Law, share: Fraction | None) -> dict[str, Any]:
    """What a measurement cost, under the name of its currency.

    >>> from cbdp.privacy.laws import law_of
    >>> paid(law_of("geometric", 2), Fraction(1, 2)), paid(law_of("gaussian", 2), Fraction(1, 8))
    ({'epsilon': Fraction(1, 2)}, {'rho': Fraction(1, 8)})
    """
    return {law.currency: share}


def _check_backend(backend: str, law: str, entropy: Entropy | None, large: bool) -> None:
    """Refuse what another source of noise cannot do, rather than do something else."""
    if backend != "opendp":
        raise InputError(f"unknown noise backend {backend!r}: choose 'cbdp' or 'opendp'")
    if law not in ("geometric", "gaussian"):
        raise InputError(
            f"backend 'opendp' draws geometric or gaussian noise, not {law!r}: name one of these"
        )
    if entropy is not None:
        raise InputError("OpenDP draws from its own entropy: leave `entropy` out with backend='opendp'")
    if large:
        raise InputError(
            "OpenDP draws noise for every trip type: say sparse=False if all of them fit in memory, or leave `backend` out"
        )


def noisy(
    name: str, truth: Ints, law: Law, share: Fraction, entropy: Entropy, backend: Backend = "cbdp"
) -> Measurement:
    """One feature's counts with noise.

    >>> import cbdp
    >>> from cbdp.privacy.laws import law_of
    >>> answer = cbdp.measuring.noisy("time", np.array([3, 3]), law_of("geometric", 2), Fraction(1, 2), cbdp.measuring.SystemEntropy())
    >>> answer.feature, answer.values.shape, answer.scale
    ('time', (2,), 2)
    """
    if backend == "opendp":
        from cbdp.measuring import opendp

        noise = opendp.sample(law, len(truth))
    else:
        noise = sampler_of(law).sample(len(truth), entropy)
    return Measurement(name, truth + noise, scale=law.scale, law=law.name, **paid(law, share))


def _above(
    counts: Counts,
    features: FeatureDag,
    given: dict[str, Fraction],
    laws: dict[str, Law],
    source: Entropy,
) -> list[NoisyAnswer]:
    cell = features.cells.partition.element_of(counts.universe.unrank_codes(counts.index))
    held = np.zeros(features.cells.size, dtype=np.int64)
    np.add.at(held, cell, counts.value)
    answers: list[NoisyAnswer] = []
    for name, share in given.items():
        if name != SINGLETON:
            truth = np.zeros(features.size(name), dtype=np.int64)
            np.add.at(truth, features.cells.element_of_cell[name], held)
            answers.append(noisy(name, truth, laws[name], share, source))
    answers.append(SparseAnswer(counts, cell, features, laws[SINGLETON], source, given[SINGLETON]))
    return answers
