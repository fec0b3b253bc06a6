"""What it means, in words, that a likelihood has no inner maximum."""

from keyhole.inference.fit import Diagnostic
from keyhole.table.size_index import SizeIndex


def untrusted(index: SizeIndex, what: str) -> Diagnostic:
    """The sample cannot tell how the law behaves; the estimate is whatever the prior says."""
    if index.occupied == 1:
        reason = "All records share one combination, so nothing tells how combinations differ"
    else:
        reason = "The likelihood has no inner maximum"
    return Diagnostic("boundary", what, "untrusted", f"{reason}: {what}. Do not rely on this estimate.")


def caution(what: str) -> Diagnostic:
    """A limit of the family that is a law in its own right."""
    return Diagnostic("boundary", what, "caution", f"The best fit is at a limit of the model: {what}.")
