"""Compiled splits and merges of classes: arrays in, arrays out."""

import math

import numpy as np
from numba import njit

from keyhole.models.latent_class._kernels import log_prior_of_sizes


@njit(nogil=True, cache=True, error_model="numpy")
def split_or_merge(rows, cell_of, prior, mass, concentration, rng, member, sizes, level_counts):
    """Propose to split the class of a random record, or to merge it with another.

    A second record is drawn, for a split from the same class and for a merge from the others. A split deals the
    records of the class to the two seeds' sides one after the other, in random order, with the chances that the
    records dealt so far give (Dahl 2005). Sticks and level probabilities are integrated out. Gives whether the
    proposal was accepted.
    """
    records, keys = len(member), rows.shape[1]
    classes = len(sizes)
    i = rng.integers(0, records)
    home = member[i]
    splits = rng.random() < 0.5
    choices = sizes[home] - 1 if splits else records - sizes[home]
    if choices == 0:
        return False
    j = _second(i, splits, rng.integers(0, choices), member)
    guest = member[j]
    empty = 0
    for k in range(classes):
        empty += sizes[k] == 0
    if splits:
        if empty == 0:
            return False
        which = rng.integers(0, empty)
        for k in range(classes):
            if sizes[k] == 0:
                if which == 0:
                    guest = k
                    break
                which -= 1
    crowd = np.empty(sizes[home] + (0 if splits else sizes[guest]), dtype=np.int64)
    found = 0
    for r in range(records):
        if (member[r] == home or member[r] == guest) and r != i and r != j:
            crowd[found] = r
            found += 1
    for turn in range(found - 1, 0, -1):
        other = rng.integers(0, turn + 1)
        crowd[turn], crowd[other] = crowd[other], crowd[turn]
    tally = np.zeros((2, level_counts.shape[0]))
    people = np.ones(2)
    for t in range(keys):
        tally[0, rows[cell_of[i], t]] += 1.0
        tally[1, rows[cell_of[j], t]] += 1.0
    guests = np.zeros(found, dtype=np.bool_)
    log_dealt = 0.0
    for position in range(found):
        own = rows[cell_of[crowd[position]]]
        log_odds = math.log(people[1] / people[0])
        for t in range(keys):
            row = own[t]
            odds = (tally[1, row] + prior[row]) / (tally[0, row] + prior[row])
            log_odds += math.log(odds * ((people[0] + mass[t]) / (people[1] + mass[t])))
        u = 1.0 - rng.random()
        moves = math.log(u) - math.log1p(-u) < log_odds if splits else member[crowd[position]] == guest
        guests[position] = moves
        # log of the logistic function of plus or minus the log odds
        against = -log_odds if moves else log_odds
        log_dealt -= against + math.log1p(math.exp(-against)) if against > 0.0 else math.log1p(math.exp(against))
        side = 1 if moves else 0
        people[side] += 1.0
        for t in range(keys):
            tally[side, own[t]] += 1.0
    apart = sizes.copy()
    apart[home], apart[guest] = int(people[0]), int(people[1])
    together = sizes.copy()
    together[home], together[guest] = int(people[0] + people[1]), 0
    gain = log_prior_of_sizes(apart, concentration) - log_prior_of_sizes(together, concentration)
    # Marginal likelihoods of the two sides against that of the whole.
    for row in range(level_counts.shape[0]):
        whole = tally[0, row] + tally[1, row]
        if whole > 0.0:
            gain += math.lgamma(prior[row] + tally[0, row]) + math.lgamma(prior[row] + tally[1, row])
            gain -= math.lgamma(prior[row] + whole) + math.lgamma(prior[row])
    for t in range(keys):
        gain += math.lgamma(mass[t] + people[0] + people[1]) + math.lgamma(mass[t])
        gain -= math.lgamma(mass[t] + people[0]) + math.lgamma(mass[t] + people[1])
    # A split chose one of the empty labels; a merge leaves one more of them to choose from.
    gain += math.log(empty if splits else empty + 1.0) - log_dealt
    # The second record was one of the same class, or one of any other.
    gain += math.log((people[0] + people[1] - 1.0) / (records - people[0]))
    if not splits:
        gain = -gain
    if not math.log1p(-rng.random()) < gain:
        return False
    if splits:
        member[j] = guest
        for position in range(found):
            if guests[position]:
                member[crowd[position]] = guest
        sizes[home], sizes[guest] = int(people[0]), int(people[1])
        for row in range(level_counts.shape[0]):
            level_counts[row, guest] = int(tally[1, row])
            level_counts[row, home] -= int(tally[1, row])
    else:
        for r in range(records):
            if member[r] == guest:
                member[r] = home
        sizes[home] += sizes[guest]
        sizes[guest] = 0
        for row in range(level_counts.shape[0]):
            level_counts[row, home] += level_counts[row, guest]
            level_counts[row, guest] = 0
    return True


@njit(nogil=True, cache=True, error_model="numpy")
def _second(i, same, which, member):
    """The which-th record, other than i, of the same class or of any other."""
    for r in range(len(member)):
        if (member[r] == member[i]) == same and r != i:
            if which == 0:
                return r
            which -= 1
    return i
