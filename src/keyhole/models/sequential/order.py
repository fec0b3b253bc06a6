"""The orders in which the keys are taken: a small set, fixed by the data."""

from keyhole.models.sequential.observed import Observed

Order = tuple[int, ...]


def key_orders(observed: Observed, number: int) -> tuple[Order, ...]:
    """The first ``number`` of a fixed list of orders of the keys that take at least two levels.

    The first order takes keys by decreasing number of levels: the key with most levels is then a plain margin
    and later conditionals, which see many contexts, have few levels. Others interleave or turn that order, so
    that most pairs of keys meet in both directions. Ties are broken by entropy, so labels and the order of the
    columns do not matter.
    """
    varied = [key for key, size in enumerate(observed.sizes) if size > 1]
    down = sorted(varied, key=lambda key: (-observed.sizes[key], -observed.entropy(key), key))
    half = len(down) // 2
    candidates = (down, down[0::2] + down[1::2], down[1::2] + down[0::2], down[half:] + down[:half], down[::-1])
    distinct = list(dict.fromkeys(tuple(order) for order in candidates))
    return tuple(distinct[:number])
