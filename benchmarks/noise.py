"""How many exact samples per CPU-second: ours at several scales, and OpenDP's in the same run.

Claim: exact noise is drawn at least 50 times as fast as by OpenDP (docs/explanation/noise.md).

python -m benchmarks noise [--samples 10000000] [--opendp-samples 200000]
"""

from __future__ import annotations

import argparse
import time
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Literal

from cbdp.measuring.answers import sample_opendp
from cbdp.measuring.samplers import sampler_of
from cbdp.privacy.noise import noise_distribution

LAWS = ("geometric", "gaussian")
SCALES = (1, 10, 1000, 10**6)
LEAST_RATIO = 50


def millions_per_second(law: str, scale: int, n: int, backend: Literal["cbdp", "opendp"]) -> float:
    noise = noise_distribution(law, Fraction(scale))
    draw = sampler_of(noise).sample if backend == "cbdp" else partial(sample_opendp, noise)
    draw(1000)  # compiles, and builds the tables
    start = time.process_time()
    draw(n)
    return n / (time.process_time() - start) / 1e6


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks noise", description=__doc__)
    parser.add_argument("--samples", type=int, default=10_000_000, help="draws of ours per scale")
    parser.add_argument("--opendp-samples", type=int, default=200_000, help="draws of OpenDP's per scale")
    options = parser.parse_args(argv)
    print("Noise from system entropy, million samples per CPU-second\n")
    print("| law | scale | cbdp | OpenDP | ratio |")
    print("|---|---:|---:|---:|---:|")
    enough = True
    for law, scale in product(LAWS, SCALES):
        ours = millions_per_second(law, scale, options.samples, "cbdp")
        theirs = millions_per_second(law, scale, options.opendp_samples, "opendp")
        enough &= ours >= LEAST_RATIO * theirs
        print(f"| {law} | {scale:,} | {ours:.1f} | {theirs:.3f} | {ours / theirs:.0f}× |", flush=True)
    print(f"\nEvery ratio is at least {LEAST_RATIO}: {'yes' if enough else 'NO'}")
    return 0 if enough else 1
