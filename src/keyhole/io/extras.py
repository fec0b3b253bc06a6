"""Optional packages: imported when a file needs them, asked for by name when they are missing."""

from importlib import import_module
from types import ModuleType

from keyhole.errors import MissingExtra


def need(module: str, extra: str) -> ModuleType:
    """Import an optional package, or say how to install it."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(
            f"Reading this needs the package {module.split('.')[0]!r}, which is not installed: "
            f'pip install "keyhole[{extra}]"'
        ) from None
