"""What is fitted to what, from a file of the user's."""

import dataclasses
from typing import Literal

from equistein.models._settings import check_fields


@dataclasses.dataclass(frozen=True, kw_only=True)
class Problem:
    """What is fitted to what.

    Attributes:
        group: The symmetry: trivial, cyclic:4, dihedral:5, so:3, o:3, permutations:3,
            signs:2, signed-permutations:3, torus:6.2832,inf with periods,
            image-rotations, image-reflections, point-cloud,
            product:permutations:3*cyclic:4 of groups on the same points, or
            direct:permutations:3@3x2+trivial@4 of groups on parts of a flat point.
        dim: For a point cloud, the dimension of space.
        species: For a point cloud, one label a particle, as in "C C O"; by default the
            elements of an .xyz file, or all particles alike.
        network: What the energy is made of: `graph`, for a point cloud, a graph network
            of all particles with an energy for each level of noise; `unet`, for images,
            a U-shaped network with one energy for all levels; or `features`, a
            perceptron of invariant features, or convolutions. None is `graph` for
            clouds without classes, `unet` for images, else `features`.
        labels: Whether classes in the file, the array `y`, are learned too; or, at a
            temperature, its energies.
        columns: Of a table those to read, by name, such as "x [nm],y [nm]"; by default
            all but that of the classes.
        label: The column of a table that holds the classes, numbers or words.
        held_out: The fraction of the data that is kept from training, to judge by.
        seed: The source of all randomness.
        num_samples: Samples drawn after the fit, for the report.
        ais_steps: The temperatures of the annealed importance sampling of log Z.
        kelvin: The temperature in K of molecules whose energies in eV and forces in
            eV / Angstrom the file has: both are learned as those of the density
            exp(-E / kT), forces alone by a graph network. Without it they are not used.
        stream: Whether the points of an .npy or .npz file stay on disk, of which each
            epoch reads its own, and the last ones of the file are held out. Those of
            files of more than 512 MiB always do.
    """

    group: str
    dim: int | None = None
    species: str | None = None
    network: Literal["graph", "features", "unet"] | None = None
    labels: bool = True
    columns: str | None = None
    label: str | None = None
    held_out: float = 0.1
    seed: int = 0
    num_samples: int = 512
    ais_steps: int = 1_000
    stream: bool = False
    kelvin: float | None = None

    def __post_init__(self):
        check_fields(self, or_zero=("held_out", "seed"), below_one=("held_out",))
        if self.seed >= 2**63:
            raise ValueError(f"`seed` must be below 2^63, but got {self.seed}.")
