"""A public `max_trips`: what is drawn how often follows from persons' trips by an exact rule, and one person changes it by ε at most."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbdp.errors import InputError
from cbdp.privacy.unit import MAX_TRIPS_CANDIDATES, PrivateQuantile, rank_errors, selection_exponents

SHARES = st.sampled_from([Fraction(1, 2), Fraction(9, 10), Fraction(19, 20), Fraction(1, 3)])


def _loads(trips: tuple[int, ...]) -> tuple[list[int], list[int]]:
    kinds = sorted(set(trips))
    return kinds, [trips.count(k) for k in kinds]


def _log_chances(bought: PrivateQuantile, trips: tuple[int, ...]) -> list[float]:
    weights = [-float(x) for x in selection_exponents(bought, *_loads(trips))]
    total = math.log(math.fsum(math.exp(w) for w in weights))
    return [w - total for w in weights]


def test_the_quantile_itself_is_likeliest() -> None:
    """Of 20 persons 19 have at most 4 trips: 4 is not off at all, 3 by the persons who have exactly 4, 5 by none but the rest."""
    trips = (1,) * 10 + (2,) * 5 + (4,) * 4 + (60,)
    found = rank_errors(PrivateQuantile("0.95", 1), *_loads(trips))
    assert found[3] == 0
    assert found[2] == 4, "19 wanted, 15 have at most 3"
    assert found[4] == 0, "19 have fewer than 5: it is as good a quantile"
    assert found[MAX_TRIPS_CANDIDATES.index(61)] == 1
    assert rank_errors(PrivateQuantile("0.5", 1), *_loads(trips))[0] == 0


@given(share=SHARES, many=st.integers(0, 4), extra=st.integers(1, 130))
def test_one_person_more_changes_no_candidate_by_more_than_stated(
    share: Fraction, many: int, extra: int
) -> None:
    """For every candidate, exactly: of all populations of up to four persons, and any person added."""
    bought = PrivateQuantile(share, 1)
    for trips in itertools.combinations_with_replacement((1, 2, 5, 101), many):
        before, after = (rank_errors(bought, *_loads(t)) for t in (trips, (*trips, extra)))
        assert max(abs(a - b) for a, b in zip(before, after, strict=True)) <= bought.sensitivity <= 1


@pytest.mark.parametrize("epsilon", ["0.05", "1", "3"])
@pytest.mark.parametrize("share", ["0.5", "0.95"])
def test_the_chances_of_neighbours_differ_by_epsilon_at_most(share: str, epsilon: str) -> None:
    """By brute force over populations of up to four persons: the log of the ratio of any outcome's chances, both ways."""
    bought = PrivateQuantile(share, epsilon)
    worst = 0.0
    for many in range(5):
        for trips in itertools.combinations_with_replacement((1, 2, 3, 50, 200), many):
            for extra in (1, 2, 3, 4, 100, 200):
                before, after = _log_chances(bought, trips), _log_chances(bought, (*trips, extra))
                worst = max(worst, *(abs(a - b) for a, b in zip(before, after, strict=True)))
    assert worst <= float(bought.epsilon) + 1e-12
    assert worst > 0.3 * float(bought.epsilon), "and not by far less"


def test_nobody_at_all_makes_every_candidate_as_likely() -> None:
    """Without persons nothing is off."""
    assert set(selection_exponents(PrivateQuantile("0.95", 1), [], [])) == {Fraction(0)}


@pytest.mark.parametrize(
    ("quantile", "epsilon"), [("0", "1"), ("1", "1"), ("1.2", "1"), ("0.5", "0"), ("0.5", "-1")]
)
def test_what_cannot_be_bought_is_refused(quantile: str, epsilon: str) -> None:
    """A quantile outside (0, 1), or an ε that is not positive."""
    with pytest.raises(InputError):
        PrivateQuantile(quantile, epsilon)
