"""How fast are mixed membership models, and how well do their chains mix?

Prints the cost of a sweep by sample size, as a multiple of filling n x J uniform numbers with NumPy, for both
models and priors. Then, at 10,000 records, effective draws of tau1 per second of processor time beside the
published sampler, each given so many seconds (60); 0 leaves this out. Chains alone are compared first, then with
what tau1 costs: ours every 20 sweeps, theirs after every sweep as in the paper, by either of its two ways.

    python benchmarks/membership.py [SECONDS]
"""

import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from peers.hierarchical_membership import PublishedSampler, Uncollapsed

from keyhole.arrays import Codes, Vector
from keyhole.inference.chain import Watched
from keyhole.inference.convergence import Convergence
from keyhole.keys.variable import KeyVariable
from keyhole.models.membership.fitting import EVERY
from keyhole.models.membership.sampler import MembershipSampler
from keyhole.models.membership.state import Memberships
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable

LEVELS = (5, 2, 6, 5, 11, 3, 2, 2)
PROFILES, PEOPLE = 15, 712_174
SIZES = (1_000, 10_000, 100_000, 1_000_000)
SHORT = 10_000
"""Records up to which a sweep is over in milliseconds."""


def people(size: int, rng: Generator) -> Codes:
    """Records of the hierarchical model with fifteen profiles."""
    weights = rng.dirichlet(np.full(PROFILES, 2.0))
    own = rng.standard_gamma(np.maximum(rng.gamma(2.0, 1.0, (size, 1)) * weights, 1e-3))
    edges = np.cumsum(own / own.sum(axis=1, keepdims=True), axis=1)
    columns = []
    for levels in LEVELS:
        z = (edges < rng.random((size, 1))).sum(axis=1).clip(max=PROFILES - 1)
        theta = np.cumsum(rng.dirichlet(np.full(levels, 0.3), PROFILES), axis=1)
        columns.append((theta[z] < rng.random((size, 1))).sum(axis=1).clip(max=levels - 1))
    return np.stack(columns, axis=1).astype(np.int32)


def seconds_of(task: Callable[[], object], times: int = 1) -> float:
    """Median processor time of this thread, for the machine may be busy."""
    found = []
    for _ in range(times):
        begun = time.thread_time()
        task()
        found.append(time.thread_time() - begun)
    return float(np.median(found))


def about_fifteen(sampler: MembershipSampler, records: Codes, rng: Generator) -> Memberships:
    """A state after sweeps with fifteen profiles, and a few of the sampler's own."""
    fixed = MembershipSampler(sampler.levels, PROFILES, sampler.prior)
    state = fixed.start(records, rng, crowded=True)
    for _ in range(100 if len(records) <= SHORT else 20):
        state = fixed.sweep(state, records, rng)
    if sampler.unbounded:
        state.alpha = np.full(len(records), state.alpha[0])
        state.g0, state.left, state.alpha0 = 0.99 * state.g0, 0.01, 1.0
    for _ in range(5):
        state = sampler.sweep(state, records, rng)
    return state


def cost(size: int, components: int, prior: str, rng: Generator) -> None:
    """Print one line: milliseconds of a sweep and of a look at all cells, the ratio to uniforms, and memory."""
    records = people(size, rng)
    sampler = MembershipSampler(LEVELS, components, prior)  # type: ignore[arg-type]
    state = about_fifteen(sampler, records, rng)
    numbers = np.empty(records.size)
    cells = np.unique(records, axis=0)
    times = 50 if size <= SHORT else 5

    def step() -> None:
        nonlocal state  # a sweep uses up the state it is given
        state = sampler.sweep(state, records, rng)

    # Each kind of sweep is timed between fills, since the machine's pace changes from one second to the next.
    fills, sweeps, moves = [], [], sampler.moves
    for move in dict.fromkeys(moves):
        vars(sampler)["moves"] = (move,)
        pairs = [(seconds_of(lambda: rng.random(out=numbers)), seconds_of(step)) for _ in range(times)]
        fills.append(np.median([fill for fill, _ in pairs]))
        sweeps.append(np.median([sweep for _, sweep in pairs]))
    weights = [moves.count(move) / len(moves) for move in dict.fromkeys(moves)]
    fill, sweep = float(np.dot(weights, fills)), float(np.dot(weights, sweeps))
    vars(sampler)["moves"] = moves
    look = seconds_of(lambda: sampler.probabilities(state, cells, rng), 5)
    tracemalloc.start()
    step()
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(
        f"{'gom' if components else 'hdp'} {prior:9} {size:9,} {state.profiles:8} {1e3 * fill:8.2f} "
        f"{1e3 * sweep:9.2f} {sweep / fill:6.1f} {1 / sweep:9.0f} {len(cells):8,} {1e3 * look:8.1f} "
        f"{memory / 2**20:7.1f}",
        flush=True,
    )


def costs() -> None:
    rng = np.random.default_rng(1)
    print("model prior       records profiles  fill/ms  sweep/ms  ratio  sweeps/s    cells  look/ms     MiB")
    for size in SIZES:
        for components in (0, PROFILES):
            for prior in ("uniform", "marginal"):
                cost(size, components, prior, rng)


def mixing(seconds: float, size: int = 10_000) -> None:
    """Print effective draws of tau1 per second, from a run of equal processor time each."""
    if not seconds:
        return
    rng = np.random.default_rng(1)
    records = people(size, rng)
    keys = [KeyVariable(f"K{j}", tuple(map(str, range(levels)))) for j, levels in enumerate(LEVELS)]
    sample = Sample(ContingencyTable.from_codes(keys, records), PEOPLE)
    sampler = MembershipSampler(LEVELS, 0, "uniform")
    unique = sample.table.cells[sample.table.uniques]
    all_cells = np.zeros(sample.table.occupied)

    def tau1(state: Memberships) -> float:
        all_cells[sample.table.uniques] = sampler.probabilities(state, unique, rng)
        return Watched(sample).taus(all_cells)[0]

    published = PublishedSampler(LEVELS, records)
    ours = sampler.start(records, rng, crowded=True)
    theirs = published.start(PROFILES, rng)
    mass, base = sampler.level_prior.flat()

    def step() -> Memberships:
        nonlocal ours
        ours = sampler.sweep(ours, records, rng)
        return ours

    def published_step() -> Memberships:
        published.sweep(theirs, rng)
        return _state_of(theirs, mass, base)

    unsampled = PEOPLE - size
    look = seconds_of(lambda: tau1(ours), 5)
    ways = {
        "chain alone": 0.0,
        "Monte Carlo": seconds_of(lambda: published.monte_carlo(theirs, unique, unsampled, rng), 5),
        "population": seconds_of(lambda: published.population(theirs, unique, unsampled, rng)),
    }
    own = watch("integrated out", step, EVERY, tau1, seconds)
    their = watch("published", published_step, 1, tau1, seconds)
    for way, cost_of_tau1 in ways.items():
        rate = own.ess / (own.spent + (own.looks * look if cost_of_tau1 else 0.0))
        reference = their.ess / (their.spent + their.looks * cost_of_tau1)
        print(
            f"{way:12} {1e3 * cost_of_tau1:8.1f} ms for tau1  ESS/s {rate:7.2f} and {reference:8.4f} published: "
            f"{rate / reference:7.0f} times",
            flush=True,
        )


@dataclass(frozen=True)
class Worth:
    """Effective draws of tau1 in so many looks at a chain, and the seconds of its sweeps."""

    ess: float
    looks: int
    spent: float


def watch(
    name: str, task: Callable[[], Memberships], every: int, tau1: Callable[[Memberships], float], seconds: float
) -> Worth:
    """Sweeps for so many seconds, tau1 of every so many; the first quarter is not used."""
    task()
    spent, values = 0.0, []
    while spent < seconds:
        begun = time.thread_time()
        for _ in range(every):
            state = task()
        spent += time.thread_time() - begun
        values.append(tau1(state))
    used: Vector = np.array(values[len(values) // 4 :])
    half = len(used) // 2
    found = Convergence.of(np.stack([used[:half], used[half : 2 * half]]))
    print(
        f"{name:15} {every * len(values) / spent:8.0f} sweeps/s  tau1 {used.mean():7.1f} sd {used.std():5.1f}"
        f"  R-hat of halves {found.rhat:.2f}  ESS {found.ess:6.1f}",
        flush=True,
    )
    return Worth(found.ess, len(used), spent * len(used) / len(values))


def _state_of(state: Uncollapsed, mass: Vector, base: Vector) -> Memberships:
    theta = np.concatenate([profiles.T for profiles in state.theta])
    z = state.z.astype(np.int16)
    return Memberships(z, theta, state.g0[:-1], float(state.g0[-1]), state.alpha, state.alpha0, mass, base)


if __name__ == "__main__":
    costs()
    mixing(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
