"""Failures told in our own words: what a library says may quote a record or a password, so it is not kept."""

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def in_own_words(work: Callable[[], Result], tell: Callable[[Exception], BaseException | None]) -> Result:
    """The result of ``work``, or the error that ``tell`` makes of its failure; None lets the failure through.

    ``raise ... from None`` only hides the first error: loggers and debuggers still find it as ``__context__``.
    Here the new error is raised after the first is forgotten.

    Examples
    --------
    >>> try:
    ...     in_own_words(lambda: int("Ermintrude"), lambda error: TypeError("a number was expected"))
    ... except TypeError as error:
    ...     print(error, error.__context__)
    a number was expected None
    """
    try:
        return work()
    except Exception as error:
        told = tell(error)
        if told is None:
            raise
    raise told
