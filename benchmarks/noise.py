"""How many exact samples per CPU-second: ours at several scales, and OpenDP's in the same run.

python -m benchmarks noise [--samples 10000000] [--opendp-samples 200000]
"""

from __future__ import annotations

import argparse
import time
from fractions import Fraction
from functools import partial
from typing import Literal

from cbdp.measuring import opendp
from cbdp.measuring.samplers.geometric import GeometricSampler

SCALES = (1, 10, 1000, 10**6)
LEAST_RATIO = 50


def millions_per_second(scale: int, n: int, backend: Literal["cbdp", "opendp"]) -> float:
    ours = GeometricSampler(Fraction(scale)).sample
    draw = ours if backend == "cbdp" else partial(opendp.sample, Fraction(scale))
    draw(1000)  # compiles, and builds the tables
    start = time.process_time()
    draw(n)
    return n / (time.process_time() - start) / 1e6


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks noise", description=__doc__)
    parser.add_argument("--samples", type=int, default=10_000_000, help="draws of ours per scale")
    parser.add_argument("--opendp-samples", type=int, default=200_000, help="draws of OpenDP's per scale")
    options = parser.parse_args(argv)
    print("Discrete Laplace noise from system entropy, million samples per CPU-second\n")
    print("| scale | cbdp | OpenDP | ratio |")
    print("|---:|---:|---:|---:|")
    enough = True
    for scale in SCALES:
        ours = millions_per_second(scale, options.samples, "cbdp")
        theirs = millions_per_second(scale, options.opendp_samples, "opendp")
        enough &= ours >= LEAST_RATIO * theirs
        print(f"| {scale:,} | {ours:.1f} | {theirs:.3f} | {ours / theirs:.0f}× |")
    print(f"\nEvery ratio is at least {LEAST_RATIO}: {'yes' if enough else 'NO'}")
    return 0 if enough else 1
