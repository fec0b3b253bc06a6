"""How many parameter draws a fit keeps."""

from keyhole.errors import UnknownModel

DEFAULT_DRAWS = 1000


def checked_draws(draws: int) -> None:
    """Refuse a number of draws that no interval can be read from."""
    if isinstance(draws, bool) or not isinstance(draws, int) or not 20 <= draws <= 1_000_000:
        raise UnknownModel(f"The option draws must be a whole number from 20 to 1,000,000, found {draws!r}.")
