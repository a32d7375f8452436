"""Who holds which card: the taps of a trip stay together, and people repeat themselves."""

from __future__ import annotations

import collections
import functools

import numpy as np

from benchmarks.harness.opal_taps import card_of_trips, opal_taps, tap_rows

TAPS = functools.cache(opal_taps)


def test_rows_are_the_taps_and_people_have_habits() -> None:
    """Two rows a trip with one card, as many as there are taps; most trips are those that their card makes on other days too."""
    taps = TAPS()
    rows = tap_rows(taps)
    assert rows.num_rows == 2 * len(taps)
    trip, card = (rows[name].to_numpy() for name in ("trip", "card"))
    order = np.argsort(trip, kind="stable")
    pairs = np.stack([trip[order], card[order]], axis=1).reshape(-1, 4)
    assert np.array_equal(pairs[:, :2], pairs[:, 2:])
    held = card_of_trips(taps)
    habits: collections.Counter[tuple[int, int, int]] = collections.Counter()
    for (_, mode), part in taps.parts.items():
        if mode == "train":
            ends = np.sort(np.stack([part["on_location"], part["off_location"]]), axis=0)
            habits.update(set(zip(held[_, mode].tolist(), *ends.tolist(), strict=True)))
    repeated = sum(n for n in habits.values() if n >= 4)
    assert repeated > 0.7 * habits.total()
    day = held["20160725", "train"]
    assert np.bincount(day).max() <= 4, "no more than two habits a card"


def test_cards_depend_on_the_seed_alone() -> None:
    """The same seed, the same cards; another, others, but the same trips."""
    taps = TAPS()
    one, again, other = (card_of_trips(taps, seed)["20160726", "ferry"] for seed in (0, 0, 1))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
