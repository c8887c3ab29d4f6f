"""Packages that an extra installs."""

import importlib
from typing import Any


def require(name: str, label: str, extra: str, error: Any = ImportError) -> Any:
    """Import a package, or raise an error that names the extra it comes with."""
    try:
        return importlib.import_module(name)
    except ImportError as missing:
        text = f"This needs {label}: pip install 'equistein[{extra}]'."
        raise error(text) from missing
