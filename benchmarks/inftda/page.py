"""The page: a figure and three sentences, then the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.beside import tables_beside
from benchmarks.harness.figures import DPI, HEIGHT, WIDTH, plotting, style
from benchmarks.harness.page import Block, Heading, Picture, Text, as_markdown, machine, versions
from benchmarks.harness.tables import Table
from benchmarks.inftda.demand import Demand, Level
from benchmarks.inftda.expected import ratios as ratios_expected
from benchmarks.inftda.tables import (
    METRICS,
    Comparison,
    Found,
    by_level,
    called,
    compared,
    pairs,
    ratios,
    times,
)
from benchmarks.inftda.trials import RIVAL, ours_named

MAIN = ours_named("levels")
NAME = "inftda"
UNDER: Any = {"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 0.5}
Expected = Mapping[tuple[str, str], Mapping[Level, float]]  # by hierarchy and ε

ABOUT = """InfTDA ([Boninsegna and Silvestri, PoPETs 2025](../explanation/bibliography.md#boninsegna-2025), arXiv 2412.09256) publishes origin–destination counts from the top down: at each \
level of a hierarchy of areas counts get discrete Gaussian noise and are fitted, family by family, to the level above."""

HOW = """- **Data.** The six synthetic sets of its paper: a binary hierarchy 8 deep (256 places) and a random one 4 deep (435 places); on each all pairs \
are filled, or a half, or a hundredth; flows are Pareto of shape 3, the largest 1,000. Laws, seeds (42) and sizes are those of the published generator \
(github.com/aidaLabDEI/TDA_hierarchical), and the same random streams are asked in the same order, by code of our own. The country is generated: it \
has the sizes of the Italian census of 2011 as the paper used it (20 regions, 110 provinces, 8,092 municipalities, 65.5 million pairs, 556,120 filled). \
Assumed: 28.9 million trips, log-normal sizes, gravity with distance, half of the trips inside one municipality.
- **Levels.** a–b tells origins apart a deep and destinations b deep: destinations first, then origins, as InfTDA goes. At level 0–0, all \
trips, both are exact. Every pair of areas counts in a mean, empty ones too.
- **Privacy.** Both protect one trip that may be replaced by another, so the number of trips is public. InfTDA is (ε, δ)-private \
with δ = 10⁻⁸, as published: zero-concentrated privacy, shared evenly among the levels. Ours is ε-private with δ = 0: \
two-sided geometric noise, `public={"total": n}`.
- **The rival was run here.** The paper shows its results as plots, and the files behind them are binary: we had no published number of errors to \
put beside ours. InfTDA was built again from its description (`benchmarks/inftda/rival.py`), compiled, and run on the same data. In one thing this is \
kinder to it: the published experiments divide ρ by twice the number of levels and so leave half of it unused; here all of it is used.
- **Ours.** `ConstraintBased` with a feature for each level. *levels*: shares of ε that make the worst ratio to the rival's error least, by least \
squares and public sizes alone, with double weight on single pairs; the same at every ε. The double weight was settled after a look at two of these sets: with equal weights single pairs \
of random sparse at ε = 1 came out at 1.04 times the rival's. *leaves*: `budget="leaves"`, for single pairs; coarse levels are then \
sums of pairs, and worse. Features are made once and not timed: they are public."""

NOT_LISTED = """The country was run twice at each ε. Where ε is small, InfTDA empties many pairs of regions that had few trips (false negatives below), \
and an empty pair is near enough to those."""

WITHOUT_CHANCE = """At coarse levels a release has two or three errors, and a few runs leave much to chance. What is to be expected can be worked out from sizes \
and noise (least squares, no count cut off at zero): standard errors, ours over the rival's."""

FALSE_PAIRS = """InfTDA empties pairs rather than keep a doubtful one: it publishes fewer pairs, fewer of them false, and misses more of those that \
had trips. Ours keeps what is to be expected of each pair: fewer are missed, and more of the small ones are false where ε is small."""

THEIR_TIMES = """InfTDA's authors state about two hours for one round of all their mechanisms at three ε on Italy, and ten minutes for the synthetic sets \
(8 cores of 3.9 GHz, Python). The rival here is compiled, and does little: it draws noise only below areas that are not empty. The machine did other work at the same time."""


def write(found: Found, trees: Mapping[str, Demand], command: str, out: Path) -> Path:
    """The page and its figure, in a folder; `trees` are the hierarchies that the sets lie in."""
    out = out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    drawn = draw(found, out / "figures" / f"{NAME}.png")
    page = out / f"{NAME}.md"
    text = as_markdown(blocks(found, trees, command, drawn), out)
    page.write_text(tables_beside(text, page), encoding="utf-8")
    return page


def blocks(found: Found, trees: Mapping[str, Demand], command: str, drawn: Path) -> list[Block]:
    expected = {
        (name, e): by
        for name, tree in trees.items()
        for e, by in ratios_expected(tree, found.epsilons).items()
    }
    made: list[Block] = [
        Heading("On the rival's own ground: InfTDA", 1),
        Picture(
            drawn, "Mean absolute error per pair of areas at each level: InfTDA (δ = 10⁻⁸) and ours (δ = 0)."
        ),
        Text(" ".join([ABOUT, *sentences(found, expected)])),
        Text(
            f"Written by `{command}`. Means over {found.runs(RIVAL)} runs of {RIVAL} and {found.runs(MAIN)} of ours. "
            f"Machine: {machine()}. Packages: {versions()}."
        ),
        Heading("At every level"),
        *(ratios(found, m) for m in found.mechanisms if m != RIVAL),
        Text(worse(compared(found, MAIN))),
        *lacking(found),
        Text(WITHOUT_CHANCE),
        expectations(expected),
        Heading("Single pairs"),
        Text(single(found)),
        pairs(found),
        Heading("Time"),
        Text(THEIR_TIMES),
        times(found),
        Heading("How it was done"),
        Text(HOW),
        Heading("Every level"),
    ]
    for data in found.data:
        made.append(Heading(data.capitalize(), 3))
        made += [by_level(found, data, metric) for metric in METRICS]
    return made


def expectations(expected: Expected) -> Table:
    """The least and the largest expected ratio of a hierarchy's levels."""
    rows = []
    for (name, epsilon), found in expected.items():
        least, most = sorted(found, key=found.__getitem__)[:: len(found) - 1]
        ends = (f"{found[at]:.2f} ({called(at)})" for at in (least, most))
        rows.append([f"{name}, ε = {epsilon}", *ends])
    return Table(["expected: cbdp, levels / InfTDA", "least", "largest"], rows)


def sentences(found: Found, expected: Expected) -> list[str]:
    """What the figures say: ours against the rival, as it came out and as it was to be expected."""
    made = compared(found, MAIN)
    if not made:
        return []
    below, numbers = sum(c.ratio < 1 for c in made), [r for by in expected.values() for r in by.values()]
    return [
        (
            f"At the same ε and without its δ, our mean error per pair of areas is lower in {below} of {len(made)} comparisons "
            f"(data set × ε × level), {_range([c.ratio for c in made])} times the rival's."
        ),
        f"By least squares, without chance, our standard error is expected to be {_range(numbers)} times the rival's at every level and ε.",
    ]


def lacking(found: Found) -> list[Block]:
    """Which releases of ours are not among the numbers."""
    there = {(r.data, r.epsilon) for r in found.rows if r.mechanism == MAIN}
    names = [f"{d}, ε = {e}" for d in found.data for e in found.epsilons if (d, e) not in there]
    return [Text(f"Not run, or stopped after four minutes: {'; '.join(names)}.")] if names else []


def single(found: Found) -> str:
    """How single pairs do when ε goes to them."""
    made = [c.ratio for c in compared(found, ours_named("leaves")) if c.level == found.levels(c.data)[-1]]
    if not made:
        return FALSE_PAIRS
    return f"{FALSE_PAIRS} Where single pairs matter most (budget `leaves`) their error is {_range(made)} times the rival's."


def _range(numbers: Sequence[float]) -> str:
    return f"{min(numbers):.2f} to {max(numbers):.2f}"


def worse(made: Sequence[Comparison]) -> str:
    """Where ours is not below the rival's."""
    over = [c for c in made if c.ratio >= 1]
    if not over:
        return "There is no data set, ε and level at which the rival's mean error is lower."
    listed = "\n".join(f"- {c}" for c in over)
    told = f"Not below the rival's (ratio ± standard error over runs):\n\n{listed}"
    return f"{told}\n\n{NOT_LISTED}" if any(c.data == "country" for c in over) else told


def draw(found: Found, path: Path) -> Path:
    """A panel for each data set: error by level, a line for each ε and mechanism."""
    plt = plotting()
    across = 3
    down = -(-len(found.data) // across)
    figure, axes = plt.subplots(
        down, across, figsize=(WIDTH, HEIGHT * 0.85 * down), squeeze=False, layout="constrained"
    )
    shown, means, handles = [RIVAL, MAIN], found.means("mean"), {}
    spare = list(axes.flat)[len(found.data) :]
    for axis in spare:
        axis.axis("off")
    for axis, data in zip(axes.flat, found.data, strict=False):
        levels = found.levels(data)
        for e, m in ((e, m) for e in found.epsilons for m in shown):
            if (data, e, m, levels[0]) in means:
                line: dict[str, Any] = style(m, shown)
                line["alpha"] = 0.4 + 0.6 * (found.epsilons.index(e) + 1) / len(found.epsilons)
                drawn = axis.plot(range(len(levels)), [means[data, e, m, at] for at in levels], **line)[0]
                handles[m] = drawn
                if m == MAIN:
                    axis.annotate(
                        f"ε = {e}",
                        (0, means[data, e, m, levels[0]]),
                        (2, 4),
                        textcoords="offset points",
                        fontsize=7,
                        bbox=UNDER,
                    )
        axis.set_yscale("log")
        axis.set_title(data, fontsize=10, loc="left")
        every = max(1, len(levels) // 6)
        axis.set_xticks(range(len(levels))[::every], [called(at) for at in levels[::every]], fontsize=8)
        axis.grid(visible=True, color="#dddddd", linewidth=0.7)
    figure.supylabel("mean absolute error per pair", fontsize=10)
    place: dict[str, Any] = {"loc": "center"} if spare else {"loc": "outside upper right", "ncols": 2}
    legend = spare[0].legend if spare else figure.legend
    legend(list(handles.values()), list(handles), frameon=False, fontsize=9, **place)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI, metadata={"Software": None})
    plt.close(figure)
    return path
