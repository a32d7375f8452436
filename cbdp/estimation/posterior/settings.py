"""The numbers of the posterior that were chosen: one frozen value, so that they can be read at a glance.

None of them affects privacy, and none is set by users. What only keeps floating-point arithmetic alive (`MIN_PROBABILITY`), lays out memory or
threads, or perturbs for a numerical derivative is where it is used. What the estimator does with them: docs/explanation/estimator.md, accuracy.md and universes.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_TENTHS = (1.0, 0.7, 0.4, 0.2, 0.1, 0.05, 0.02, 0.01, 5e-3, 2e-3, 1e-3, 3e-4)


@dataclass(frozen=True)
class Tuning:
    """Every chosen number, in the order in which the estimator meets them."""

    # Likelihood of a noisy count: steps and quadrature points (likelihood.py)
    steps_per_scale: int = 32  # steps in the noise's scale: the law on steps is off by about a ten-thousandth
    # counts beyond are not told apart: noise of a few steps has nothing left to decide
    max_steps: int = 2**13
    # scales below 0 from which noisy counts share a column: all say the same about trips
    max_negative_scales: int = 32
    min_mean: float = 0.02  # means below are mixed from this one and 0: a Poisson count is then 0 or 1
    max_mean_gap: float = 0.25  # by which a mean is larger than the one before, at most
    zero_shares: tuple[float, ...] = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999)
    # standard deviations of the logarithms of means, of types that are not empty
    log_mean_spreads: tuple[float, ...] = (0.0, 0.3, 0.6, 0.9, 1.3, 1.8, 2.4, 3.0)

    # Shapes of counts: zero inflation and spread (likelihood.py)
    shape_strata: int = 20  # groups of leaves by expected count, for judging shapes
    zero_inflation_penalty: float = 2.0  # nats that a shape costs for empty types at all
    spread_penalty: float = 2.0  # and for each unit of spread

    # Margins that leaves are predicted from (margins.py)
    fewest_types: int = 3  # to an element: with fewer, a leaf's neighbours say next to nothing about it
    most_margins: int = 40  # that get factors: each costs passes over all leaves
    # share of the noise, judged by kurtosis, that must be a single measurement's, or a margin counts as one without a table
    min_single_noise_share: float = 0.5
    most_held: int = 96  # whose sums are held to what was measured (benchmarking.py)

    # Expected counts: factors of margins (rate_model.py; all but `folds` and `min_factor` serve sparse.py too)
    folds: int = 4
    # belief, before evidence, that a margin has no factors; the rest is spread over `factor_spreads`
    no_effect_prior: float = 0.5
    # standard deviations of logarithms of factors
    factor_spreads: tuple[float, ...] = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.4, 2.0, 2.8)
    # nats that factors of a margin that was not measured must gain: chance, once in some hundreds
    min_log_bayes_factor: float = 4.0
    max_no_effect_posterior: float = 0.99  # belief from which a margin is dropped
    min_factor: float = 1e-3
    margins_per_shape_fit: int = 5  # margins after which the shape is judged anew
    max_shared_elements: int = 1000  # elements above which each fold's model judges its share of them
    min_elements_at_once: int = 2**16  # elements that may be weighed at a time, whatever the number of leaves
    # or one for so many leaves: all folds then hold 32 bytes for each of these
    leaves_per_element_at_once: int = 16
    # deviations above 0 from which the total's prior says nothing, and the deviation (trips) below which it does not
    sharp_total_z: float = 30.0
    sharp_total_deviation: float = 0.5
    total_grid_deviations: float = 12.0  # to which the grid of totals reaches
    total_grid_size: int = 2000  # numbers of trips that are weighed, spread over all orders of magnitude

    # Factors by likelihood: knots and grids (rate_model.py)
    knot_step: float = 0.5  # between logarithms of factors at which likelihoods are added up
    min_log_factor: float = -5.0
    max_log_factor: float = 8.0
    rough_grid_density: int = 8  # parts of a unit of the logarithm, for what was not measured
    sharp_grid_density: int = 32  # and for what was: its factors may be known to a few per cent
    # nats below the best at which a factor is out of the question: deeper, splines would ring
    max_log_likelihood_drop: float = 60.0
    max_explained_log_ratio: float = 4.0  # nats up to which a noisy count may well be one of next to no trips
    log_rate_step: float = 0.25  # between logarithms of expected counts in the table of likelihoods
    min_log_rate: float = -18.0  # the first of these
    log_rate_cells: int = 160  # and how many there are

    # Ratio adjustment (rate_model.py)
    # variances of factors that are tried
    trial_signal_variances: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    # how much more than Poisson counts vary about their rate
    trial_overdispersions: tuple[float, ...] = (1.0, 8.0, 64.0)
    min_ratio: float = 0.02  # of a rate is left by a correction
    min_adjustment_z: float = 2.0  # standard errors by which it must predict left-out leaves better
    # and by which counts must vary more than noise, to be called overdispersed
    min_overdispersion_z: float = 3.0

    # Posterior of each leaf (likelihood.py; the first four serve sparse.py too)
    pooled_evidence_share: float = 0.2  # of the other strata's evidence on the shape counts for a stratum
    shape_window: float = 3.0  # nats within which shapes are averaged over
    # relative error of expected counts at which strata are weighed as informative
    rate_relative_error: float = 0.3
    min_variance: float = 1e-6  # of a leaf that is all but certain, in trips²
    leaf_strata: int = 40
    # to a stratum that moves its mean: of fewer, a leaf's noise would be what is expected of it
    min_stratum_leaves: int = 4
    min_calibration: float = 1e-3  # of a stratum's mean rate is left by its noisy counts
    # standard errors from which the strata's means are believed to differ from the expected
    min_stratum_z: float = 2.0

    # Margins without a table: random effects (benchmarking.py)
    # shares of a sum's miss that are an effect, τ²L²/(R − V + τ²L²), in the middle element of a group: the grid on which the posterior of
    # τ² is worked out. Close together near 0, where groups of many elements tell shares apart.
    effect_shares: tuple[float, ...] = (
        0.0,
        *np.geomspace(1e-4, 0.02, 24).tolist(),
        *np.linspace(0.03, 0.99, 65).tolist(),
    )
    # elements at which "no effect at all" and "an effect of any share" are equally likely beforehand. A margin of one or two elements (the
    # total) tells nothing of a variance, and what was measured of it is precise, so it is drawn there; with many elements, effects that
    # exist show themselves, and those that do not are better taken for none. In between, of four zones say, chance hides a bias as large as the noise.
    even_odds_elements: float = 5.0
    # elements up to which a margin is held to its direct estimate, as far as effects of the largest size explain a miss: of one or two
    # means no estimator has a smaller risk everywhere than the unbiased one (Stein 1956)
    unbiased_elements: int = 2
    min_judged_elements: int = 40  # elements that are judged together: fewer tell a variance too badly
    max_benchmark_groups: int = 16
    newton_steps: int = 4  # until the sum of leaves that cannot fall below 0 has moved as far as predicted
    newton_tolerance: float = 1e-3  # of the largest shift, at which that ends
    min_residual_share: float = (
        0.05  # of R that is left of R − V: posterior variances are estimates themselves
    )

    # Shared errors: variance components and BLUP (shared_errors.py)
    perturbation_deviations: float = (
        0.5  # deviations of its noise by which a table is perturbed to see how far means respond
    )
    max_followed_share: float = 0.95  # of a table's noise that sums of leaves are taken to have followed
    default_followed_share: float = 0.6  # what is taken where it cannot be seen
    log10_excess_range: tuple[float, float] = (
        -1.0,
        4.0,
    )  # decimal logarithms of excess variances that are weighed
    # so many of them; no excess at all has half of the belief, smaller ones more than large ones
    excess_grid_size: int = 41
    # variance of an effect: rates are known better than to a factor of three, or not at all
    max_effect_variance: float = 1.0
    # or what it must exceed, given by how much sums miss, but for this chance
    excess_tail_probability: float = 1e-6
    max_offset: float = 100.0  # the most that an effect moves rates, in their multiples
    effect_group_size: int = 40  # elements of a feature that are judged together
    max_effect_groups: int = 8  # groups at most
    # deviations of what their sums follow of their own noise, or groups are judged as one
    min_group_z: float = 3.0
    max_normal_group_size: int = 3  # elements up to which a group is judged by a normal law
    max_judged_elements: int = (
        2**13
    )  # elements of a group that are judged one by one; of more, as many means of neighbours
    max_total_deviations: float = (
        1.0  # of the measured total, beyond which effects may not move the sum of all leaves
    )
    max_total_share: float = 0.05  # and share of it, where its noise is less
    total_bisections: int = (
        12  # halvings after which the fraction of the effects that holds it is told well enough
    )
    blup_iterations: int = 6  # times that effects are predicted, the later ones at half a step
    blup_tolerance: float = 1e-3  # change of an effect at which that ends
    cg_tolerance: float = 1e-4  # residual of the linear system
    cg_iterations: int = 100  # steps that it may take

    # Weights of the program (benchmarking.py)
    benchmarked_elements: float = (
        20.0  # elements up to which a feature weighs at least twice what its noise says
    )
    # weight from which it grows with its square: that of four elements, so that three, two or one are held the more. Of one or two sums no
    # estimate is better everywhere than the unbiased one (Stein 1956); of three or four little can be gained
    benchmarked_few: float = 5.0

    # Universes too large to list: what is revealed of them (sparse.py)
    # types up to which all are revealed: as many as are listed (cbdp.measuring.MAX_DENSE_TRIP_TYPES)
    revealed: int = 2**24
    # of types have noise above floors, at most: types with few trips are told no better by more
    max_revealed_share: float = 0.5
    # types revealed for each trip, at most: memory follows trips where these are few
    max_revealed_per_trip: float = 32.0
    # of a nat about its rate that a revealed type must tell, or floors are as for projection
    min_revealed_information: float = 1e-8

    # What is expected of their types (sparse.py)
    # parts of a cell's types that may have trips
    active_shares: tuple[float, ...] = (*_TENTHS, *(10.0**-p for p in range(4, 11)))
    min_log_cell_factor: float = -7.0  # logarithms of factors that are weighed: all between these
    max_log_cell_factor: float = 10.0
    factor_grid_size: int = 69  # so many of them
    close_deviations: float = 6.0  # and closely those within so many deviations of what was measured
    close_grid_size: int = 49
    elements_at_once: int = 2**14  # elements whose factors are weighed at a time
    min_censored_mean: float = 1e-8  # the least mean of a type that is told from 0
    outlier_scales: float = 4.0  # scales of noise beyond the highest that is to be expected: noise gets there once in a hundred releases
    stratum_log_width: float = 0.25  # of the logarithm of a type's expected count
    max_strata: int = 60
    # of what types below floors should have is left, if those above have more than all trips
    min_rest_ratio: float = 0.1
    min_mean_kept: float = 0.9  # of its mean that a shape must keep within the tables to be tried
    min_allocated_types: int = 2**17  # types to which trips may be dealt, however few trips there are
    max_named_types: int = 2**22  # types above floors that are told apart whatever is to be expected of them
    # trips below which, beyond that, a type need not be told apart from its cell's others
    faint_mean: float = 0.05

    # Stops that no table tells apart, in such universes (effects.py)
    stop_effect_iterations: int = 2  # times that the factors of every dimension's values are judged
    max_stop_combinations: int = 2**23  # combinations of a cell and a value that may be listed
    effect_class_width: float = 0.1  # of a class of values, in the logarithm of their factors
    max_effect_groups_of_types: int = 2**19  # groups at most, or as many as cells

    # Pairs of stops, likewise (effects.py)
    max_pairs: int = 2**23  # pairs that may be listed
    # classes of pairs whose types lie in the same cells: each has a row of likelihoods
    max_pair_classes: int = 2**16
    pairs_at_once: int = 2**17  # pairs that are judged at a time

    # Allocation of what is left to types drawn at random (sparse.py)
    crowded_ratio: int = 16  # a cell is, where one of so many types is taken
    spare_draws: int = 20  # further types drawn where it is not: one of them will not be taken
    # types drawn for each that is dealt to, where types of a group are not equally busy
    draws_per_type: int = 4
    max_allocated_types: int = 2**24  # types to which trips are dealt in parts
    max_parts_per_trip: float = 16.0  # so many of a trip: the error of single types is then that of expected counts, but for a thirtieth
    # trips to a type from which that is done: where types are far more than trips, nobody can list them
    min_rate_for_parts: float = 1 / 256
    # by which equal parts of a cell's mass differ: rounding shall not go by the types' order
    jitter: float = 1e-2


TUNING = Tuning()
