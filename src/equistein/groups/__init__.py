"""Groups and how they act on points."""

from equistein.groups._base import (
    AbstractFiniteGroup as AbstractFiniteGroup,
    AbstractGroup as AbstractGroup,
    AbstractMatrixGroup as AbstractMatrixGroup,
    Trivial as Trivial,
)
from equistein.groups._invariance import (
    check_invariance as check_invariance,
    InvarianceError as InvarianceError,
    invariant_polynomials as invariant_polynomials,
    is_custom as is_custom,
    monomials as monomials,
)
from equistein.groups._molecule import Molecule as Molecule
from equistein.groups._parse import parse_group as parse_group
from equistein.groups._periodic import (
    as_cell as as_cell,
    PeriodicCloud as PeriodicCloud,
    PeriodicMotion as PeriodicMotion,
    TorusTranslations as TorusTranslations,
)
from equistein.groups._permutations import (
    Permutations as Permutations,
    SignedPermutation as SignedPermutation,
    SignedPermutations as SignedPermutations,
    Signs as Signs,
)
from equistein.groups._point_cloud import (
    AbstractCloud as AbstractCloud,
    encode_species as encode_species,
    PointCloud as PointCloud,
    RigidPermutation as RigidPermutation,
)
from equistein.groups._product import Direct as Direct, Product as Product
from equistein.groups._rotations import (
    Cyclic as Cyclic,
    Dihedral as Dihedral,
    ImageRotations as ImageRotations,
    Orthogonal as Orthogonal,
    SpecialOrthogonal as SpecialOrthogonal,
)
