"""Files in, coded columns out."""

from keyhole.io.microdata import Column, Microdata, RawLevel, Selection
from keyhole.io.reading import read

__all__ = ["Column", "Microdata", "RawLevel", "Selection", "read"]
