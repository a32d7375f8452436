"""The numbers of the posterior that were chosen, and are no necessity: one frozen value, so that they can be read at a glance.

None of them affects privacy, and none is set by users. Numbers that only keep floating-point arithmetic alive (`TINY`) are
where they are used. What the estimator does with them is told in docs/explanation/accuracy.md and docs/explanation/universes.md.
"""

from __future__ import annotations

from dataclasses import dataclass

_TENTHS = (1.0, 0.7, 0.4, 0.2, 0.1, 0.05, 0.02, 0.01, 5e-3, 2e-3, 1e-3, 3e-4)


@dataclass(frozen=True)
class Tuning:
    """Every chosen number, in the order in which the estimator meets them."""

    # The lattice of counts (lattice.py)
    fine: int = 32  # steps in the noise's scale: the law on steps is off by about a ten-thousandth
    most_steps: int = (
        2**13
    )  # counts beyond are not told apart: noise of a few steps has nothing left to decide
    deep: int = 32  # scales below 0 from which noisy counts share a column: all say the same about trips
    least_mean: float = 0.02  # means below are mixed from this one and 0: a Poisson count is then 0 or 1
    mean_ratio: float = 0.25  # by which a mean is larger than the one before, at most
    empty: tuple[float, ...] = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999)
    spread: tuple[float, ...] = (0.0, 0.3, 0.6, 0.9, 1.3, 1.8, 2.4, 3.0)  # of the logarithms of means

    # Shapes of counts: which share is empty, how the others spread (shapes.py)
    shape_strata: int = 20  # groups of leaves by expected count, for judging shapes
    empty_cost: float = 2.0  # nats that a shape costs for empty types at all
    spread_cost: float = 2.0  # and for each unit of spread

    # Margins that leaves are predicted from (margins.py)
    fewest_types: int = 3  # to an element: with fewer, a leaf's neighbours say next to nothing about it
    most_margins: int = 40  # that get factors, of those by the same unused attributes or fewer: each costs passes over all leaves
    most_held: int = 96  # whose sums are held to what was measured (benchmarking.py)

    # Expected counts: factors of margins (rates.py; all but `folds` and `least_factor` serve sparse.py too)
    folds: int = 4
    none: float = (
        0.5  # belief, before evidence, that a margin has no factors; the rest is spread over `spreads`
    )
    spreads: tuple[float, ...] = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.4, 2.0, 2.8)  # of logarithms of factors
    gain: float = (
        4.0  # nats that factors of a margin that was not asked for must gain: chance, once in some hundreds
    )
    dropped: float = 0.99  # belief from which a margin is dropped
    least_factor: float = 1e-3
    often: int = 5  # margins after which the shape is judged anew
    judged: int = 1000  # elements above which each fold's model judges its share of them
    weighed_least: int = 2**16  # elements that may be weighed at a time, whatever the number of leaves
    weighed_leaves: int = 16  # or one for so many leaves: all folds then hold 32 bytes for each of these
    orders: int = 2000  # numbers of trips that are weighed, spread over all orders of magnitude

    # The same by likelihoods, between knots (rates.py)
    knot_step: float = 0.5  # between logarithms of factors at which likelihoods are added up
    lowest_log: float = -5.0
    highest_log: float = 8.0
    rough: int = 8  # parts of a unit of the logarithm, for what was not measured
    sharp: int = 32  # and for what was: its factors may be known to a few per cent
    depth: float = (
        60.0  # nats below the best at which a factor is out of the question: deeper, splines would ring
    )
    explained: float = 4.0  # nats up to which a noisy count may well be one of next to no trips
    cell: float = 0.25  # between logarithms of expected counts in the table of likelihoods
    first_log: float = -18.0  # the first of these
    columns: int = 160  # and how many there are

    # The same by sums (corrections.py)
    signal: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # variances of factors that are tried
    bunched: tuple[float, ...] = (1.0, 8.0, 64.0)  # how much more than Poisson counts vary about their rate
    least_corrected: float = 0.02  # of a rate is left by a correction
    correction_sure: float = 2.0  # standard errors by which it must predict left-out leaves better
    bunched_sure: float = 3.0  # and by which counts must vary more than noise, to be called bunched

    # Each leaf's own answer (leaves.py; the first four serve sparse.py too)
    pooled: float = 0.2  # of the other strata's evidence on the shape counts for a stratum
    near: float = 3.0  # nats within which shapes are averaged over
    drift: float = 0.3  # relative error of expected counts at which strata are weighed as informative
    certain: float = 1e-6  # variance of a leaf that is all but certain
    leaf_strata: int = 40
    fewest_leaves: int = (
        4  # to a stratum that moves its mean: of fewer, a leaf's noise would be what is expected of it
    )
    stratum_sure: float = (
        2.0  # standard errors from which the strata's means are believed to differ from the expected
    )

    # Errors that leaves share (shared.py)
    moved: float = 0.5  # deviations of its noise by which a table is moved to see what follows it
    most_followed: float = 0.95  # of a table's noise that sums of leaves are taken to have followed
    usually_followed: float = 0.6  # what is taken where it cannot be seen
    shared_range: tuple[float, float] = (-1.0, 4.0)  # decimal logarithms of excess variances that are weighed
    shared_steps: int = (
        41  # so many of them; no excess at all has half of the belief, smaller ones more than large ones
    )
    most_spread: float = (
        1.0  # variance of an effect: rates are known better than to a factor of three, or not at all
    )
    shared_proven: float = 1e-6  # or what it must exceed, given by how much sums miss, but for this chance
    most_off: float = 100.0  # the most that an effect moves rates, in their multiples
    shared_group: int = 40  # elements of a feature that are judged together
    shared_groups: int = 8  # groups at most
    groups_apart: float = (
        3.0  # deviations of what their sums follow of their own noise, or groups are judged as one
    )
    shared_few: int = 3  # elements up to which a group is judged by a normal law
    shared_looked: int = 2**13  # elements of a group that are looked at
    shared_turns: int = 6  # times that effects are predicted, the later ones at half a step
    shared_near: float = 1e-3  # change of an effect at which that ends
    shared_exact: float = 1e-4  # residual of the linear system
    shared_steps_most: int = 100  # steps that it may take

    # Weights of the program (anchored.py)
    anchored: float = 20.0  # elements up to which a feature weighs at least twice what its noise says

    # Universes too large to list: what is revealed of them (revealing.py)
    revealed: int = (
        2**24
    )  # types up to which all are revealed: as many as are listed (cbdp.measuring.MAX_DENSE_TRIP_TYPES)
    revealed_part: float = (
        0.5  # of types have noise above floors, at most: types with few trips are told no better by more
    )
    revealed_each: float = (
        32.0  # types revealed for each trip, at most: memory follows trips where these are few
    )
    revealed_worth: float = (
        1e-8  # of a nat about its rate that a revealed type must tell, or floors are as for projection
    )

    # What is expected of their types (sparse.py)
    active: tuple[float, ...] = (
        *_TENTHS,
        *(10.0**-p for p in range(4, 11)),
    )  # parts of a cell's types that may have trips
    lowest_factor: float = -7.0  # logarithms of factors that are weighed: all between these
    highest_factor: float = 10.0
    every_factor: int = 69  # so many of them
    close: float = 6.0  # and closely those within so many deviations of what was measured
    every_close: int = 49
    at_once: int = 2**14  # elements whose factors are weighed at a time
    lowest_mean: float = 1e-8  # the least mean of a type that is told from 0
    giant: float = 4.0  # scales of noise beyond the highest that is to be expected: noise gets there once in a hundred releases
    stratum: float = 0.25  # of the logarithm of a type's expected count
    most_strata: int = 60
    least_rest: float = (
        0.1  # of what types below floors should have is left, if those above have more than all trips
    )
    kept: float = 0.9  # of its mean that a shape must keep within the tables to be tried
    listed: int = 2**17  # types to which trips may be dealt, however few trips there are
    named: int = 2**22  # types above floors that are told apart whatever is to be expected of them
    faint: float = (
        0.05  # trips below which, beyond that, a type need not be told apart from its cell's others
    )

    # Stops that no table tells apart, in such universes (apart.py)
    apart_turns: int = 2  # times that the factors of every dimension's values are judged
    apart_listed: int = 2**23  # combinations of a cell and a value that may be listed
    apart_width: float = 0.1  # of a class of values, in the logarithm of their factors
    apart_groups: int = 2**19  # groups at most, or as many as cells

    # Pairs of stops, likewise (pairs.py)
    pairs_listed: int = 2**23  # pairs that may be listed
    pairs_classes: int = (
        2**16
    )  # classes of pairs whose types lie in the same cells: each has a row of likelihoods
    pairs_at_once: int = 2**17  # pairs that are judged at a time

    # Dealing what is left to types drawn at random (dealing.py)
    crowded: int = 16  # a cell is, where one of so many types is taken
    spare: int = 20  # further types drawn where it is not: one of them will not be taken
    choice: int = 4  # types drawn for each that is dealt to, where types of a group are not equally busy
    dealt: int = 2**24  # types to which trips are dealt in parts
    dealt_parts: float = 16.0  # so many of a trip: the error of single types is then that of expected counts, but for a thirtieth
    dealt_rate: float = (
        1 / 256
    )  # trips to a type from which that is done: where types are far more than trips, nobody can list them
    jitter: float = (
        1e-2  # by which equal parts of a cell's mass differ: rounding shall not go by the types' order
    )


TUNING = Tuning()
