"""The assessment's Theorem 5: how often its interval for a suppressed count holds, beside the exact law of the noises.

Claim: the assessment's Theorem 5 is wrong, and the exact distribution of the sum is right (docs/explanation/audit.md).

python -m benchmarks theorem5 [--draws 1000000] [--scale 1.4] [--seed 0]
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from benchmarks.harness.markdown import markdown
from cbdp.audit.scale_recovery import sum_distribution
from cbdp.privacy.noise import noise_distribution

LEVELS = (0.5, 0.1, 0.05, 0.01)
PUBLISHED = (91, 41, 150)  # X, Y and S of the assessment's Table 2: the hidden count is about S − X − Y


def half_width(scale: float, alpha: float) -> float:
    """Theorem 5's: p ln(1/(4α)), which is below 0 for α above a quarter.

    >>> round(half_width(1.4, 0.05), 2)
    2.25
    """
    return scale * math.log(1 / (4 * alpha))


def printed(scale: float, alpha: float) -> float:
    """The half width of the intervals that the assessment prints: the same formula with a decimal logarithm.

    >>> round(18 - printed(1.4, 0.05), 2), round(18 + printed(1.4, 0.01), 2)
    (17.02, 19.96)
    """
    return scale * math.log10(1 / (4 * alpha))


def exact(scale: float, alpha: float) -> float:
    """The half width by the exact law of the sum of three noises."""
    return sum_distribution([(noise_distribution("laplace", scale), 1.0, 3)]).half_width(alpha)


def coverage(scale: float, width: float) -> float:
    """The probability that an interval of this half width around S − X − Y holds the true count."""
    if width <= 0:
        return 0.0
    u = width / scale  # the sum of three Laplace noises of scale 1 has the density (u² + 3u + 3) exp(−u)/16
    return 1 - math.exp(-u) * (u * u + 5 * u + 8) / 8


def simulated(scale: float, width: float, draws: int, seed: int) -> float:
    """The same by simulation: how often |L₁ + L₂ + L₃| ≤ width."""
    noise = np.random.default_rng(seed).laplace(0, scale, (draws, 3)).sum(axis=1)
    return float((np.abs(noise) <= width).mean())


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks theorem5", description=__doc__)
    parser.add_argument("--draws", type=int, default=1_000_000)
    parser.add_argument("--scale", type=float, default=1.4, help="p, the scale of the noise")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    p = options.scale
    x, y, s = PUBLISHED
    print(f"# Theorem 5 of the assessment at p = {p:g}, {options.draws:,} draws\n")
    print(f"S − X − Y = {s} − {x} − {y} = {s - x - y}; standard deviation √6 p = {math.sqrt(6) * p:.2f}\n")
    rows = []
    for alpha in LEVELS:
        bound, shown, honest = half_width(p, alpha), printed(p, alpha), exact(p, alpha)
        rows.append(
            [
                f"{100 * (1 - alpha):g} %",
                f"± {bound:.2f}" if bound > 0 else "empty",
                f"{100 * simulated(p, bound, options.draws, options.seed):.1f} % ({100 * coverage(p, bound):.1f} %)",
                f"± {shown:.2f}" if shown > 0 else "empty",
                f"{100 * simulated(p, shown, options.draws, options.seed):.1f} % ({100 * coverage(p, shown):.1f} %)",
                f"± {honest:.2f}",
                f"{100 * simulated(p, honest, options.draws, options.seed):.1f} %",
            ]
        )
    head = ["confidence", "Theorem 5", "holds", "as printed (log₁₀)", "holds", "exact law", "holds"]
    print(markdown(head, rows))
    print("\nIn brackets: the probability by the density of the sum, without simulation.")
    wrong = [
        a for a in LEVELS if abs(simulated(p, exact(p, a), options.draws, options.seed) - (1 - a)) > 0.01
    ]
    return 1 if wrong else 0
