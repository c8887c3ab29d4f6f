"""RDKit, where it is installed."""

import importlib.util
import types

from equistein._gate import gate


class MissingRDKit(ImportError):
    """RDKit is not installed."""


@gate
def has_rdkit() -> bool:
    """Whether RDKit is installed."""
    return importlib.util.find_spec("rdkit") is not None


def rdkit() -> types.ModuleType:
    """Return `rdkit.Chem`, with its log silenced.

    Raises:
        MissingRDKit: If it is not installed.
    """
    try:
        from rdkit import Chem, rdBase
        from rdkit.Chem import Draw, rdDetermineBonds  # noqa: F401
    except ImportError:
        raise MissingRDKit(
            "This needs RDKit, which judges and draws molecules: "
            "pip install 'equistein[molecules]'."
        ) from None
    rdBase.DisableLog("rdApp.*")
    return Chem
