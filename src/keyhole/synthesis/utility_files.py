"""Whether an original and its copies can be compared column by column."""

from collections.abc import Sequence

from keyhole.arrays import Codes
from keyhole.errors import InvalidKeys


def check_files(original: Codes, copies: Sequence[Codes], sizes: Sequence[int]) -> None:
    """Refuse no copies, files without records, other columns, and codes that are not levels.

    Parameters
    ----------
    original, copies
        Level codes, one row a record, one column a key.
    sizes
        Number of levels of each key.

    Raises
    ------
    InvalidKeys
        Files that cannot be compared.
    """
    if not len(copies):
        raise InvalidKeys("No synthetic file was given: at least one copy is needed.")
    if not len(sizes):
        raise InvalidKeys("The files have no columns to compare: give at least one key.")
    for place, codes in enumerate((original, *copies)):
        file = f"copy {place}" if place else "the original"
        if codes.ndim != 2 or codes.shape[1] != len(sizes):
            raise InvalidKeys(
                f"The codes of {file} have shape {codes.shape}; expected one row a record and one column for each "
                f"of {len(sizes)} keys."
            )
        if not len(codes):
            raise InvalidKeys(f"There are no records in {file}: nothing can be compared.")
        low, high = codes.min(axis=0), codes.max(axis=0)
        for column, size in enumerate(sizes):
            if low[column] < 0 or high[column] >= size:
                raise InvalidKeys(
                    f"Column {column} of {file} has codes outside its {size} levels: code all files alike, and "
                    "give the number of levels of that coding."
                )
