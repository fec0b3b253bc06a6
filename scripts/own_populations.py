"""Populations of the models with chains, drawn with NumPy alone: nothing of the package is used that is tested."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

PEOPLE = 712_174
LAWS = ("prior", "fixed")

CLASSES, PROFILES, SPREAD = 20, 6, 0.5
"""Of fixed laws: the number of classes, of profiles, and the Dirichlet parameter of their levels."""

STICKS = 30
"""Of a process without end, times one plus its concentration: what they leave is below e^-30."""


@dataclass(frozen=True, eq=False)
class Law:
    """How people come about.

    Attributes
    ----------
    weights
        Of the classes or profiles.
    profiles
        By key: the probability of each level in each of them.
    alpha
        The concentration of everybody's shares: a number, 0 for one class per person, None for one of Gamma(2, 1)
        for each person.
    """

    weights: NDArray[np.float64]
    profiles: list[NDArray[np.float64]]
    alpha: float | None


def prior_law(model: str, levels: tuple[int, ...], rng: Generator) -> Law:
    """A law from the model's prior with default settings; grade of membership has six profiles."""
    if model == "latent-class":
        weights, alpha = _sticks(rng.gamma(0.25, 4.0), rng), 0.0
    elif model == "hdp":
        weights, alpha = _sticks(rng.gamma(2.0, 1.0), rng), None
    else:
        weights, alpha = rng.dirichlet(np.ones(PROFILES)), rng.gamma(2.0, 1.0)
    shapes = [rng.standard_exponential() * rng.dirichlet(np.ones(size)) for size in levels]
    return Law(weights, [_dirichlet(shape, len(weights), rng) for shape in shapes], alpha)


def fixed_law(model: str, levels: tuple[int, ...], rng: Generator) -> Law:
    """A law with a fixed number of classes or profiles, more alike in size than a prior has them."""
    number = CLASSES if model == "latent-class" else PROFILES
    alpha = {"latent-class": 0.0, "gom": 1.0, "hdp": None}[model]
    profiles = [rng.dirichlet(np.full(size, SPREAD), number) for size in levels]
    return Law(rng.dirichlet(np.full(number, 2.0)), profiles, alpha)


def people_of(law: Law, number: int, rng: Generator) -> NDArray[np.int32]:
    """So many records: the keys of each sit in a Chinese restaurant whose tables serve profiles."""
    alpha = rng.gamma(2.0, 1.0, number) if law.alpha is None else np.full(number, law.alpha)
    everybody = np.arange(number)
    chosen = np.empty((number, len(law.profiles)), dtype=np.int64)
    codes = np.empty(chosen.shape, dtype=np.int32)
    for j, profile in enumerate(law.profiles):
        chosen[:, j] = _classes(law.weights, number, rng)
        if j:
            follows = rng.random(number) * (alpha + j) >= alpha
            leader = chosen[everybody, rng.integers(0, j, number)]
            chosen[:, j] = np.where(follows, leader, chosen[:, j])
        codes[:, j] = _levels(profile, chosen[:, j], rng)
    return codes


def _levels(profile: NDArray[np.float64], chosen: NDArray[np.int64], rng: Generator) -> NDArray[np.int64]:
    """A level for each person, from the profile that was chosen: profiles lie one after the other on a line."""
    number, levels = profile.shape
    edges = np.cumsum(profile, axis=1)
    line = (edges / edges[:, -1:] + np.arange(number)[:, None]).ravel()
    found = np.searchsorted(line, chosen + rng.random(len(chosen)), side="right") - chosen * levels
    return np.asarray(found.clip(0, levels - 1))


def _classes(weights: NDArray[np.float64], number: int, rng: Generator) -> NDArray[np.int64]:
    edges = np.cumsum(weights)
    return np.searchsorted(edges, rng.random(number) * edges[-1], side="right").clip(max=len(weights) - 1)


def _sticks(concentration: float, rng: Generator) -> NDArray[np.float64]:
    """Weights Beta(1, a) by stick-breaking, the last one what is left."""
    number = int(STICKS * (1.0 + concentration))
    left = np.cumsum(np.log1p(-rng.random(number - 1)) / max(concentration, 1e-300))
    left = np.exp(np.concatenate([[0.0], left, [-np.inf]]))
    return np.asarray(left[:-1] - left[1:])


def _dirichlet(shape: NDArray[np.float64], number: int, rng: Generator) -> NDArray[np.float64]:
    """Dirichlet draws in rows, in logarithms since shapes may be tiny."""
    size = (number, len(shape))
    logs = np.log(rng.standard_gamma(shape + 1.0, size)) + np.log1p(-rng.random(size)) / shape
    draws = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(draws / draws.sum(axis=1, keepdims=True))
