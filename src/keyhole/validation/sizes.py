"""Sample sizes as people write them: numbers, or percentages of the population."""

from collections.abc import Iterable

from keyhole.errors import InputError


def sample_size(text: str, people: int) -> int:
    """The number of records that a text stands for.

    Examples
    --------
    >>> sample_size("5,000", 20_000), sample_size("5%", 20_000)
    (5000, 1000)
    """
    plain = text.strip().replace(",", "").replace("_", "")
    try:
        size = round(float(plain[:-1]) / 100 * people) if plain.endswith("%") else int(plain)
    except (ValueError, OverflowError):
        raise InputError(f"A sample size is a number like 5000 or a percentage like 5%; found {text!r}.") from None
    check_size(size, people)
    return size


def check_size(size: int, people: int) -> None:
    """Refuse a sample that cannot be drawn.

    Raises
    ------
    InputError
        It has no record, or more than there are people.
    """
    if not 0 < size <= people:
        raise InputError(f"A sample of {size:,} records cannot be drawn from a population of {people:,}.")


def sample_sizes(texts: Iterable[str], people: int) -> tuple[int, ...]:
    """The sizes that texts stand for, each once, smallest first."""
    return tuple(sorted({sample_size(text, people) for text in texts}))
