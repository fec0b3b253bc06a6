"""Walker's alias tables: a draw from many weights at a cost that does not depend on their number."""

from numba import njit


@njit(nogil=True, cache=True, error_model="numpy")
def make_alias(keep, other, small, large):
    """Turns weights ``keep`` with mean 1 into a table: k is kept below keep[k], and is else other[k].

    ``small`` and ``large`` are room to work in, as long as the weights.
    """
    s = b = 0
    for k in range(small.size):
        other[k] = k
        if keep[k] < 1.0:
            small[s] = k
            s += 1
        else:
            large[b] = k
            b += 1
    while s > 0 and b > 0:
        s -= 1
        k, m = small[s], large[b - 1]
        other[k] = m
        keep[m] -= 1.0 - keep[k]
        if keep[m] < 1.0:
            b -= 1
            small[s] = m
            s += 1
    # What is left over is 1 but for rounding.
    for i in range(s):
        keep[small[i]] = 1.0
    for i in range(b):
        keep[large[i]] = 1.0
