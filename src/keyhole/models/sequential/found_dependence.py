"""Read off the fitted conditionals which keys go together."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from keyhole.arrays import Vector
from keyhole.inference.dependence import Dependence, PairDependence, TripleDependence
from keyhole.models.sequential.fitting import FittedConditional
from keyhole.models.sequential.joint import JointLaw


def found_dependence(laws: Sequence[JointLaw], names: Sequence[str]) -> Dependence:
    """Strengths averaged over the orders; of three keys the term with the best score in any order."""
    strength: dict[frozenset[int], list[float]] = defaultdict(list)
    score: dict[frozenset[int], tuple[float, tuple[int, int, int]]] = {}
    for law in laws:
        for fit, pairs in zip(law.factors, law.pairs, strict=True):
            for other, value in zip(fit.data.earlier, _block_strengths(fit), strict=False):
                strength[frozenset((fit.data.key, other))].append(float(value))
            for (a, b), z in pairs.items():
                three = frozenset((a, b, fit.data.key))
                score[three] = max((z, (min(a, b), max(a, b), fit.data.key)), score.get(three, (0.0, (0, 0, 0))))
    two_way = [
        PairDependence(names[min(pair)], names[max(pair)], float(np.mean(values)))
        for pair, values in strength.items()
    ]
    triples = [TripleDependence(names[a], names[b], names[c], z) for z, (a, b, c) in score.values()]
    return Dependence(
        tuple(names[key] for key in sorted(laws[0].order)) if laws else (),
        tuple(sorted(two_way, key=lambda pair: (-pair.strength, pair.first, pair.second))),
        tuple(sorted(triples, key=lambda one: (-one.score, one.first, one.second, one.on))),
    )


def _block_strengths(fit: FittedConditional) -> Vector:
    """For each two-way block the root mean square of its coefficients over records and levels."""
    data = fit.data
    squares = (fit.coefficients**2).mean(axis=1)
    two_way = data.feature[:, 1 : 1 + len(data.earlier)]
    return np.asarray(np.sqrt(data.records @ squares[two_way] / data.records.sum()))
