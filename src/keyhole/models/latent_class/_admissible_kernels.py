"""Compiled walks over the diagram of admissible cells, class by class, in logarithms."""

import math

import numpy as np
from numba import njit

from keyhole.models.latent_class._kernels import log_gamma_draw


@njit(nogil=True, cache=True, error_model="numpy")
def _log_group_weights(log_theta, k, first, last, group_of, found):
    """Log probabilities of a key's levels, added up by group."""
    found[:] = -np.inf
    for row in range(first, last):
        found[group_of[row]] = max(found[group_of[row]], log_theta[row, k])
    sums = np.zeros(len(found))
    for row in range(first, last):
        largest = found[group_of[row]]
        if largest > -np.inf:
            sums[group_of[row]] += math.exp(log_theta[row, k] - largest)
    for g in range(len(found)):
        if found[g] > -np.inf:
            found[g] += math.log(sums[g])


@njit(nogil=True, cache=True, error_model="numpy")
def _log_below(log_theta, k, begins, keys, nodes, groups, edges, child, group_of, weights, below):
    """The log admissible mass below every node of the diagram, for one class."""
    layers = len(keys)
    below[nodes[layers]], below[nodes[layers] + 1] = -np.inf, 0.0
    for d in range(layers - 1, -1, -1):
        _log_group_weights(log_theta, k, begins[keys[d]], begins[keys[d] + 1], group_of, weights[: groups[d]])
        for v in range(nodes[d + 1] - nodes[d]):
            largest = -np.inf
            for g in range(groups[d]):
                largest = max(largest, weights[g] + below[nodes[d + 1] + child[edges[d] + v * groups[d] + g]])
            total = 0.0
            if largest > -np.inf:
                for g in range(groups[d]):
                    ahead = below[nodes[d + 1] + child[edges[d] + v * groups[d] + g]]
                    total += math.exp(weights[g] + ahead - largest)
                largest += math.log(total)
            below[nodes[d] + v] = largest


@njit(nogil=True, cache=True, error_model="numpy")
def log_admissible_mass(log_theta, begins, keys, nodes, groups, edges, child, group_of, root, log_mass):
    """The log chance of each class that independent levels make an admissible cell."""
    below = np.empty(nodes[len(keys)] + 2)
    weights = np.empty(groups.max())
    for k in range(len(log_mass)):
        _log_below(log_theta, k, begins, keys, nodes, groups, edges, child, group_of, weights, below)
        log_mass[k] = below[root]


@njit(nogil=True, cache=True, error_model="numpy")
def draw_admissible_cells(
    member, log_theta, begins, keys, nodes, groups, edges, child, group_of, root, rng, codes
):
    """Cells of people of given classes, sorted by class; no draw is ever rejected."""
    below = np.empty(nodes[len(keys)] + 2)
    weights = np.empty(groups.max())
    now = -1
    for i in range(len(member)):
        k = member[i]
        if k != now:
            _log_below(log_theta, k, begins, keys, nodes, groups, edges, child, group_of, weights, below)
            now = k
        node = root
        for d in range(len(keys)):
            first, last = begins[keys[d]], begins[keys[d] + 1]
            reach = rng.random()
            chosen = -1
            for row in range(first, last):
                ahead = child[edges[d] + node * groups[d] + group_of[row]]
                share = math.exp(log_theta[row, k] + below[nodes[d + 1] + ahead] - below[nodes[d] + node])
                if share > 0.0:
                    chosen = row
                    reach -= share
                    if reach < 0.0:
                        break
            codes[i, keys[d]] = chosen - first
            node = child[edges[d] + node * groups[d] + group_of[chosen]]


@njit(nogil=True, cache=True, error_model="numpy")
def draw_admissible_levels(
    prior, level_counts, sizes, begins, keys, nodes, groups, edges, child, group_of, root, rng, log_theta, log_mass
):
    """Each class's level probabilities where some cells are impossible, and its log admissible mass.

    The conditional of one key's probabilities is a Dirichlet law over A^N, with A linear in them. Scaled by a
    gamma variate they are independent gamma variates G; and A^-N is an integral over u of u^(N-1) exp(-u A).
    Given u the G are gamma variates again, of the rates 1 + u h. One pass up the diagram gives the mass below
    every node; on the way down each key is drawn anew and its derivatives h follow from what is above, new, and
    below, old. All in logarithms: the mass of an empty class may be far below the smallest number.
    """
    layers = len(keys)
    below = np.empty(nodes[layers] + 2)
    reach = np.empty(nodes[layers] + 2)
    weights, slope = np.empty(groups.max()), np.empty(groups.max())
    for k in range(len(sizes)):
        _log_below(log_theta, k, begins, keys, nodes, groups, edges, child, group_of, weights, below)
        reach[:] = -np.inf
        reach[root] = 0.0
        mass = below[root]
        for d in range(layers):
            first, last = begins[keys[d]], begins[keys[d] + 1]
            here, ahead, start = nodes[d], nodes[d + 1], edges[d]
            _log_slopes(reach, below, here, ahead, child, start, groups[d], slope)
            log_u = -np.inf
            if sizes[k] > 0:
                whole = 0.0
                for row in range(first, last):
                    whole += prior[row]
                log_u = math.log(rng.standard_gamma(float(sizes[k]))) - log_gamma_draw(whole, rng) - mass
            largest = -np.inf
            for row in range(first, last):
                drawn = log_gamma_draw(prior[row] + level_counts[row, k], rng)
                rate = log_u + slope[group_of[row]]
                if rate > -np.inf:
                    drawn -= rate + math.log1p(math.exp(-rate)) if rate > 0.0 else math.log1p(math.exp(rate))
                log_theta[row, k] = drawn
                largest = max(largest, drawn)
            total = 0.0
            for row in range(first, last):
                total += math.exp(log_theta[row, k] - largest)
            norm = largest + math.log(total)
            for row in range(first, last):
                log_theta[row, k] -= norm
            _log_group_weights(log_theta, k, first, last, group_of, weights[: groups[d]])
            mass = -np.inf
            for g in range(groups[d]):
                mass = _log_add(mass, weights[g] + slope[g])
            for v in range(ahead - here):
                if reach[here + v] > -np.inf:
                    for g in range(groups[d]):
                        node = ahead + child[start + v * groups[d] + g]
                        reach[node] = _log_add(reach[node], reach[here + v] + weights[g])
        log_mass[k] = mass


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _log_add(a, b):
    """log(e^a + e^b)."""
    if a < b:
        a, b = b, a
    return a + math.log1p(math.exp(b - a)) if b > -np.inf else a


@njit(nogil=True, cache=True, error_model="numpy")
def _log_slopes(reach, below, here, ahead, child, start, groups, slope):
    """Log derivatives of the admissible mass by the probability of each group of a layer's levels."""
    for g in range(groups):
        slope[g] = -np.inf
        for v in range(ahead - here):
            if reach[here + v] > -np.inf:
                slope[g] = _log_add(slope[g], reach[here + v] + below[ahead + child[start + v * groups + g]])
