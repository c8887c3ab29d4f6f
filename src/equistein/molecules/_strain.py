"""How strained molecules are: what a force field takes out of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from equistein._gate import gate
from equistein.molecules._relaxation import relax

_MAX_RELAXED = 200


class Strain(NamedTuple):
    """What relaxation changed, of each molecule that relaxed.

    Attributes:
        energies: The energy lost, in kcal/mol.
        displacements: The root mean square distance that the atoms moved, in Angstrom.
    """

    energies: np.ndarray
    displacements: np.ndarray


@gate
def strain(mols: Sequence[Any], max_num: int = _MAX_RELAXED) -> Strain:
    r"""Return what the force field MMFF94 takes out of molecules.

    $$\Delta E = E(x) - E(x^*), \qquad
      d = \min_g \Bigl(\frac1n \sum_i |x_i - g x^*_i|^2\Bigr)^{1/2}$$

    With $x^*$ the minimum that is downhill of x, and g rigid motions. Of molecules in
    the minimum of another energy, such as B3LYP's, it is some kcal/mol; so look at the
    data's beside it. Molecules that the force field does not know are left out.

    Args:
        mols: RDKit molecules, as `perceive` gives.
        max_num: The number of them that are relaxed, the first ones.

    Raises:
        MissingRDKit: If RDKit is not installed.
    """
    relaxed = [relax(mol) for mol in mols[:max_num]]
    kept = [one for one in relaxed if np.isfinite(one.energy)]
    return Strain(
        np.array([one.energy for one in kept]), np.array([one.moved for one in kept])
    )
