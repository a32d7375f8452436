"""The benchmark harness: data × mechanism × ε × seed → metrics, each run in a process with limits, kept and resumable.

A new mechanism is one small file, given to a command by `--with FILE`:

    from benchmarks.harness import mechanism

    @mechanism("Zeros", group="others", what="an answer of all zeros")
    def zeros(case, epsilon):
        return lambda seed: 0 * case.truth

What `zeros` returns makes one answer from a seed: a `cbdp.release.release.Release`, or an array with a number per trip type.
`@dataset` and `@metric` register data sets and metrics in the same way.
"""

from benchmarks.harness.registry import Answer, Case, Flows, dataset, mechanism, metric
from benchmarks.harness.specs import Experiment, Limits, Spec, experiment

__all__ = [
    "Answer",
    "Case",
    "Experiment",
    "Flows",
    "Limits",
    "Spec",
    "dataset",
    "experiment",
    "mechanism",
    "metric",
]
