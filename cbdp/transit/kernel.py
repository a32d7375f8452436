"""The compiled part of the simulator: inserting a leg into a plan, and the loop over events.

Insertion is exhaustive over the places of pick-up and drop-off, as in dial-a-ride heuristics (Jaw, Odoni, Psaraftis and Wilson, 1986);
bounds from the triangle inequality cut it short. The rules are in `cbdp.transit.simulator`. A task is 2 · leg for a pick-up and 2 · leg + 1 for a drop-off.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cbdp.compiling import kernel


@kernel
def union_lengths(shuttle: Any, begin: Any, end: Any, selected: Any) -> Any:
    """The length of the union of intervals of each shuttle, added up; intervals are sorted by shuttle and beginning."""
    total, current, until = 0, -1, 0
    for i in range(len(shuttle)):
        if not selected[shuttle[i]]:
            continue
        if shuttle[i] != current:
            current, until = shuttle[i], begin[i]
        if end[i] > until:
            total += end[i] - max(begin[i], until)
            until = end[i]
    return total


@kernel
def _heap_push(heap: Any, size: Any, key: Any) -> Any:
    i = size
    while i > 0:
        up = (i - 1) >> 1
        if heap[up] <= key:
            break
        heap[i] = heap[up]
        i = up
    heap[i] = key
    return size + 1


@kernel
def _heap_pop(heap: Any, size: Any) -> Any:
    top, size = heap[0], size - 1
    key, i = heap[size], 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= key:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = key
    return top, size


@kernel
def _bus_arrival(timetable: Any, path: Any, now: Any) -> Any:
    if path < 0:
        return now
    for k in range(timetable.shape[1]):
        if timetable[path, k, 1] > 0:
            now += (timetable[path, k, 0] - now) % timetable[path, k, 1] + timetable[path, k, 2]
    return now


@kernel
def cheapest_insertion(  # noqa: PLR0915 - split, its loops could not stop each other
    hop: Any,
    back: Any,
    task: Any,
    stop: Any,
    due: Any,
    v: Any,
    count: Any,
    place: Any,
    load: Any,
    now: Any,
    leg: Any,
    origin: Any,
    destination: Any,
    release: Any,
    pickup: Any,
    longest: Any,
    capacity: Any,
    patience: Any,
    max_tasks: Any,
    weight: Any,
    slot: Any,
    best: Any,
) -> Any:
    """The cheapest way to insert a leg into the plan of row `v` that costs less than `best`: cost, p, r (p = −1: none).

    `back` is `hop` transposed, so that all drives to one stop lie side by side in memory; `stop` is where the tasks are;
    `slot` is scratch space for every leg. Tasks from p on happen `shift` later and those from r on `late`, and by the
    triangle inequality 0 ≤ shift ≤ late. So how much longer the others wait and ride follows from counting their pick-ups
    and drop-offs, and only a way that would be cheaper is checked rider by rider.
    """
    s, d = origin[leg], destination[leg]
    best_p, best_r = -1, -1
    if count + 2 > max_tasks:
        return best, best_p, best_r
    ends = due[v, count - 1] if count else now
    drive, wait, ride, straight = weight[0], weight[1], weight[2], hop[s, d]
    picks_left, on_board = (count - load) // 2, load  # from p on; before p
    slotted = False
    for p in range(1 if count else 0, count + 1):
        if p == 0:
            picks = now + hop[place, s]
        else:
            picks = due[v, p - 1] + back[s, stop[v, p - 1]]
            drops_here = task[v, p - 1] & 1
            on_board += 1 - 2 * drops_here
            picks_left -= 1 - drops_here
        waits = picks - release[leg]
        if waits > patience or wait * waits + ride * straight >= best:
            break
        if on_board >= capacity:
            continue
        shift, least = np.int64(0), picks + straight - ends
        if p < count:
            shift = picks + hop[s, stop[v, p]] - due[v, p]
            least = shift
        if drive * least + wait * (waits + shift * picks_left) + ride * (straight + shift * on_board) >= best:
            continue
        riders, moved_picks, moved_drops, picks_after = on_board + 1, 0, 0, picks_left
        for r in range(p, count + 1):
            if r == p:
                drops = picks + straight
            else:
                if task[v, r - 1] & 1 == 0:
                    riders, moved_picks, picks_after = riders + 1, moved_picks + 1, picks_after - 1
                    if riders > capacity:
                        break
                else:
                    riders, moved_drops = riders - 1, moved_drops + 1
                drops = due[v, r - 1] + shift + back[d, stop[v, r - 1]]
            rides = drops - picks
            if rides > longest[leg]:
                break
            late, later = np.int64(0), drops - ends
            if r < count:
                late = drops + hop[d, stop[v, r]] - due[v, r]
                later = late
            drops_after = count - r - picks_after
            longer_wait = shift * moved_picks + late * picks_after
            longer_ride = shift * moved_drops + late * drops_after - longer_wait
            cost = drive * later + wait * (waits + longer_wait) + ride * (rides + longer_ride)
            if cost >= best:
                continue
            if not slotted:
                slotted = True
                for j in range(count):
                    if task[v, j] & 1 == 0:
                        slot[task[v, j] >> 1] = j
            fits = True
            for j in range(p, count):
                move = shift if j < r else late
                other = task[v, j] >> 1
                if task[v, j] & 1 == 0:
                    fits = due[v, j] + move - release[other] <= patience
                else:
                    began = pickup[other]
                    if began < 0:
                        k = slot[other]
                        began = due[v, k] + (0 if k < p else (shift if k < r else late))
                    fits = due[v, j] + move - began <= longest[other]
                if not fits:
                    break
            if fits:
                best, best_p, best_r = cost, p, r
    return best, best_p, best_r


@kernel
def _nearest_shuttle(
    back: Any,
    stop: Any,
    due: Any,
    count: Any,
    place: Any,
    begin: Any,
    end: Any,
    now: Any,
    to: Any,
    soon: Any,
) -> Any:
    """Set `soon` to when each shuttle could be at a stop; return the shuttle that is there first (−1: there is none)."""
    nearest, soonest = -1, np.int64(1) << 60
    for v in range(begin, end):
        soon[v] = due[v, 0] + back[to, stop[v, 0]] if count[v] else now + back[to, place[v]]
        if soon[v] < soonest:
            nearest, soonest = v, soon[v]
    return nearest


@kernel
def _insert_leg(
    hop: Any,
    task: Any,
    stop: Any,
    due: Any,
    v: Any,
    count: Any,
    place: Any,
    now: Any,
    leg: Any,
    p: Any,
    r: Any,
    origin: Any,
    destination: Any,
) -> Any:
    """Put a leg into the plan of row `v` and update its times; return the new number of tasks."""
    for j in range(count - 1, r - 1, -1):
        task[v, j + 2], stop[v, j + 2] = task[v, j], stop[v, j]
    task[v, r + 1], stop[v, r + 1] = 2 * leg + 1, destination[leg]
    for j in range(r - 1, p - 1, -1):
        task[v, j + 1], stop[v, j + 1] = task[v, j], stop[v, j]
    task[v, p], stop[v, p] = 2 * leg, origin[leg]
    count += 2
    for j in range(p, count):
        if j == 0:
            due[v, j] = now + hop[place, stop[v, j]]
        else:
            due[v, j] = due[v, j - 1] + hop[stop[v, j - 1], stop[v, j]]
    return count


@kernel
def _overlap(begin: Any, end: Any, hours: Any) -> Any:
    return max(0, min(end, hours[1]) - max(begin, hours[0]))


@kernel
def run_events(  # noqa: PLR0915 - one loop over events; its parts would share two dozen arrays
    hop: Any,
    metres: Any,
    starts: Any,
    first: Any,
    origin: Any,
    destination: Any,
    zone: Any,
    first_release: Any,
    follower: Any,
    path: Any,
    timetable: Any,
    longest: Any,
    capacity: Any,
    patience: Any,
    max_tasks: Any,
    weight: Any,
    hours: Any,
    budget: Any,
    strict: Any,
    logging: Any,
) -> Any:
    shuttles, legs = len(starts), len(origin)
    release, pickup = first_release.copy(), np.full(legs, -1, np.int64)
    drop, shuttle = np.full(legs, -1, np.int64), np.full(legs, -1, np.int64)
    way, carrying, working = (
        np.zeros(shuttles, np.int64),
        np.zeros(shuttles, np.int64),
        np.zeros(shuttles, np.int64),
    )
    place, load, count = starts.copy(), np.zeros(shuttles, np.int64), np.zeros(shuttles, np.int64)
    boarded, set_out = np.zeros(shuttles, np.int64), np.zeros(shuttles, np.int64)
    task, due = np.zeros((shuttles, max_tasks), np.int64), np.zeros((shuttles, max_tasks), np.int64)
    stop, back = np.zeros((shuttles, max_tasks), np.int64), hop.T.copy()
    slot, soon = np.zeros(legs, np.int64), np.zeros(shuttles, np.int64)
    waited = np.zeros(len(budget), np.int64)
    rows = np.zeros((8 * legs if logging else 1, 5), np.int64)
    n = 0
    heap, size = np.zeros(2 * legs + shuttles + 1, np.int64), 0
    for leg in range(legs):
        if first_release[leg] >= 0:
            size = _heap_push(heap, size, first_release[leg] << 32 | leg)
    stopped = False
    while size and not stopped:
        key, size = _heap_pop(heap, size)
        now, who = key >> 32, key & 0x7FFFFFFF
        if key & 0x80000000 == 0:  # a release
            leg = who
            release[leg] = now
            if logging:
                rows[n] = now, 0, -1, leg, origin[leg]
                n += 1
            best, chosen, p, r = np.int64(1) << 60, -1, -1, -1
            z = zone[leg]
            near = _nearest_shuttle(
                back, stop, due, count, place, first[z], first[z + 1], now, origin[leg], soon
            )
            # A good price early on saves most of the work for the other shuttles; 1 is added so that ties stay ties.
            if near >= 0:
                best = cheapest_insertion(hop, back, task, stop, due, near, count[near], place[near], load[near], now, leg, origin, destination, release, pickup, longest, capacity, patience, max_tasks, weight, slot, best)[0] + 1  # fmt: skip
            spent = weight[2] * hop[origin[leg], destination[leg]] - weight[1] * now
            for v in range(first[z], first[z + 1]):
                if weight[1] * soon[v] + spent >= best:
                    continue
                cost, vp, vr = cheapest_insertion(hop, back, task, stop, due, v, count[v], place[v], load[v], now, leg, origin, destination, release, pickup, longest, capacity, patience, max_tasks, weight, slot, best)  # fmt: skip
                if vp >= 0:
                    best, chosen, p, r = cost, v, vp, vr
            if logging:
                rows[n] = now, 2 if chosen < 0 else 1, chosen, leg, origin[leg]
                n += 1
            if chosen < 0:
                stopped = strict
                continue
            v = chosen
            shuttle[leg] = v
            fresh = count[v] == 0
            count[v] = _insert_leg(
                hop, task, stop, due, v, count[v], place[v], now, leg, p, r, origin, destination
            )
            waited[z] += due[v, p] - now  # at least: later insertions never make a task earlier
            stopped = stopped or waited[z] > budget[z]
            if fresh:
                set_out[v] = now
                to = origin[leg]
                if to != place[v]:
                    way[v] += metres[place[v], to]
                    if logging:
                        rows[n] = now, 3, v, -1, to
                        n += 1
                size = _heap_push(heap, size, due[v, 0] << 32 | 0x80000000 | v)
            continue
        v = who
        here = stop[v, 0]
        if logging and here != place[v]:
            rows[n] = now, 4, v, -1, here
            n += 1
        place[v] = here
        done = 0
        while done < count[v]:
            if stop[v, done] != here:
                break
            i = task[v, done]
            leg = i // 2
            done += 1
            if logging:
                rows[n] = now, 5 if i % 2 == 0 else 6, v, leg, here
                n += 1
            if i % 2 == 0:
                pickup[leg] = now
                if load[v] == 0:
                    boarded[v] = now
                load[v] += 1
            else:
                drop[leg] = now
                load[v] -= 1
                if load[v] == 0:
                    carrying[v] += _overlap(boarded[v], now, hours)
                later = follower[leg]
                if later >= 0:
                    size = _heap_push(heap, size, _bus_arrival(timetable, path[later], now) << 32 | later)
        count[v] -= done
        for j in range(count[v]):
            task[v, j], stop[v, j], due[v, j] = task[v, j + done], stop[v, j + done], due[v, j + done]
        if count[v] == 0:
            working[v] += _overlap(set_out[v], now, hours)
            continue
        to = stop[v, 0]
        way[v] += metres[here, to]
        if logging:
            rows[n] = now, 3, v, -1, to
            n += 1
        size = _heap_push(heap, size, due[v, 0] << 32 | 0x80000000 | v)
    span = hours[1] - hours[0]
    return release, pickup, drop, shuttle, way, span - carrying, span - working, rows[:n], stopped
