"""What an estimator is: a way from measurements to an estimate. Pure post-processing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.estimate.compiler import Weights
from cbdp.estimate.estimate import Estimate
from cbdp.features import FeatureDag
from cbdp.privacy.measurement import Measurement, Revealing
from cbdp.solvers import Solver


@dataclass(frozen=True, eq=False)
class Program:
    """How the quadratic program is set up and solved.

    >>> from cbdp.solvers import SOLVERS
    >>> Program("size", SOLVERS.get("newton"), 1e-6).tolerance
    1e-06
    """

    weights: Weights
    solver: Solver
    tolerance: float
    warm_start: Estimate | None = None
    prior: Floats | None = None  # public weights, one for each trip type


@dataclass(frozen=True)
class Estimator(ABC):
    """A way to estimate. Subclass it, set the class data, implement `estimate`.

    >>> from cbdp.estimate import ESTIMATORS
    >>> [ESTIMATORS.get(name).expects for name in ("posterior", "projection")]
    [True, False]
    """

    name: ClassVar[str]
    about: ClassVar[str] = ""
    weights: ClassVar[str] = "size"  # the rule by which measurements weigh unless told otherwise
    takes_weights: ClassVar[bool] = True  # other rules may be given
    takes_prior: ClassVar[bool] = False
    # counts are expected values: they tell how likely a trip type is used, and their own spread says little about their errors
    expects: ClassVar[bool] = False

    @abstractmethod
    def estimate(
        self, features: FeatureDag, measurements: Sequence[Measurement], program: Program
    ) -> Estimate:
        """The estimate, where every trip type that matters has a noisy count."""

    def estimate_above(
        self,
        features: FeatureDag,
        tables: Sequence[Measurement],  # noqa: ARG002
        leaves: Revealing,  # noqa: ARG002
        program: Program,  # noqa: ARG002
    ) -> Estimate:
        """The estimate in a universe too large to list, where noisy counts of trip types are known above floors."""
        raise InputError(
            f"estimator {self.name!r} cannot handle {features.universe.size:,} trip types, which are not listed: "
            "use 'posterior' or 'projection'"
        )

    def drawn(
        self,
        features: FeatureDag,  # noqa: ARG002
        measurements: Sequence[Measurement],  # noqa: ARG002
        prior: Floats | None,  # noqa: ARG002
        seed: int,  # noqa: ARG002
    ) -> Ints:
        """The count of every trip type as it may be, given all noisy answers (`expects`)."""
        raise InputError(f"estimator {self.name!r} has no law of what the true counts may be")

    def check_weights(self, weights: Any) -> Weights:
        """The weights to use: those given, if this estimator takes them, or its own."""
        if weights is None or (isinstance(weights, str) and weights == self.weights):
            return self.weights
        if not self.takes_weights:
            raise InputError(
                f"weights {weights!r} with estimator {self.name!r}, which weighs by {self.weights.replace('-', ' ')}: "
                "leave weights out, or use estimator 'projection'"
            )
        given: Weights = weights
        return given
