"""What the verdicts of several models have in common, to be said once."""

from collections.abc import Sequence

from keyhole.report.words import listed

LEAVES_OUT = "The interval leaves out "
NO_CONCERN = "No check raised a concern."


def said_once(verdicts: Sequence[tuple[str, str]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the intervals of two or more models leave out, and the verdict of each model without it.

    Examples
    --------
    >>> said_once([("a", "The interval leaves out X."), ("b", "Slow. The interval leaves out X."), ("c", "Fine.")])
    (('The intervals of a and b leave out X.',), ('No check raised a concern.', 'Slow.', 'Fine.'))
    """
    models: dict[str, list[str]] = {}
    for model, words in verdicts:
        _, found, what = words.rpartition(LEAVES_OUT)
        if found:
            models.setdefault(what, []).append(model)
    shared = {what: names for what, names in models.items() if len(names) > 1}
    own = []
    for _, words in verdicts:
        before, found, what = words.rpartition(LEAVES_OUT)
        own.append((before.strip() or NO_CONCERN) if found and what in shared else words)
    sentences = tuple(f"The intervals of {listed(names)} leave out {what}" for what, names in shared.items())
    return sentences, tuple(own)
