"""How many threads a process may run at once, and who may start them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def own_threads_only() -> Iterator[None]:
    """Linear algebra stays in the thread that asks for it.

    Chains and orders run side by side already; threads of the library beside them wait for each other by turning
    round and round, and on a busy machine they never meet. Sums then do not depend on the number of processors.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield
