"""The learning problem, and the settings of the models that the library makes."""

import dataclasses
import math
from typing import Literal

from equistein._check_arguments import check_arguments
from equistein._numbers import is_number
from equistein.training import Precision

Network = Literal["graph", "features", "unet", "linear", "linear+graph", "auto"]

_FRACTIONS = ("reset_probability", "reset_to_data", "cooling_fraction")
_OR_ZERO = (
    *_FRACTIONS, "warm_up", "ema", "stein_step_size", "langevin_step_size",
    "regularization", "label_weight", "data_noise", "held_out", "seed",
    "moment_samples",
)  # fmt: skip
_BELOW = {"ema": 1, "held_out": 1, "seed": 2**63}


class _Checked:
    """A dataclass whose numbers must be finite, positive and within their limits."""

    def __post_init__(self):
        for name, value in vars(self).items():  # types were checked before
            limit, zero = _BELOW.get(name, math.inf), name in _OR_ZERO
            wanted = f"a finite number {'from 0 on' if zero else 'above 0'}"
            if name in _FRACTIONS:
                wanted, limit = f"{wanted}, at most 1", math.nextafter(1, 2)
            elif name in _BELOW:
                wanted = f"{wanted}, below {limit}"
            numbers = value if isinstance(value, tuple | list) else (value,)
            good = [0 < n < limit or (n == 0 and zero) for n in numbers if is_number(n)]
            if name != "charge" and not (numbers and all(good)):
                raise ValueError(f"`{name}` must be {wanted}, but got {value!r}.")


@check_arguments
@dataclasses.dataclass(frozen=True, kw_only=True)
class Problem(_Checked):
    """What is learned, whatever the network: data, symmetry, seed, and report.

    Attributes:
        group: The symmetry: trivial, cyclic:4, dihedral:5, so:3, o:3, permutations:3,
            signs:2, signed-permutations:3, torus:6.2832,inf (periods), image-rotations,
            image-reflections, point-cloud, product:permutations:3*cyclic:4 on the same
            points, or direct:permutations:3@3x2+trivial@4 on parts of a flat point.
        dim: For a point cloud, the dimension of space.
        species: For a point cloud from a table or arrays, one name a particle, as in
            "A A B": those of one name may be swapped. By default all are alike. Of
            molecules, the elements of numbered types, or of all atoms.
        network: `graph`, a graph network with an energy for each noise level, for point
            clouds; `unet`, a U-shaped network likewise, for images; `features`, a
            perceptron of invariant features; `linear`, an energy of distances and
            angles that one solve fits, or of waves, with groups of at most 120
            elements; `linear+graph`, for point clouds, the latter corrected by a graph
            network; or `auto`, what of the three denoises held-out points best. By
            default `graph` for clouds without classes (`linear` for the purpose
            `density`), `unet` for images, `linear` for up to ten columns without
            classes, else `features`.
        purpose: `density`, samples with the energies of the data; or `generation`, new
            molecules that are valid. By default `density` with `kelvin`.
        labels: Whether classes in the file, or its energies at a temperature, are
            learned too.
        columns: Of a table those to read, such as "x [nm],y [nm]"; by default all but
            that of the classes.
        class_column: The column of a table that holds the classes, numbers or words.
        sep: What separates the columns of a table, if that is not recognized.
        decimal: The decimal point of a table, "." or ",", if that is not recognized.
        energy_key: What a file of molecules calls the energies, if that is ambiguous.
        forces_key: What it calls the forces.
        energy_unit: Their unit, such as eV (by default), Hartree or kcal/mol.
        force_unit: The unit of the forces; by default it goes with that of energies.
        length_unit: The unit of the positions, such as Angstrom (by default) or Bohr.
        charge: The charge of the molecules; by default that in the file, or 0.
        formula: Which molecules of a file are read; by default all must have one.
        skip_incomplete: Whether files are read up to a frame that is cut.
        topology: Of a trajectory, a file of the same atoms, such as a .pdb.
        stride: Which of its frames are read, each second for 2.
        atoms: Which atoms, as in "protein and not element H"; by default all.
        held_out: The fraction of the data that is kept from training, to judge by.
        seed: The source of all randomness.
        num_samples: Samples drawn after the fit, for the report.
        ais_steps: The number of temperatures in annealed importance sampling of log Z.
        kelvin: The temperature in K of the data, to learn the forces in the file (eV /
            Angstrom), and with `--network features` its energies (eV), as those of
            exp(-E / kT). By default neither is used.
        stream: Whether to leave the points of an .npy or .npz file on disk, and hold
            out the last of them. Always so above 512 MiB, or `EQUISTEIN_MAX_BYTES`.
    """

    group: str
    dim: int | None = None
    species: str | None = None
    network: Network | None = None
    purpose: Literal["density", "generation"] | None = None
    labels: bool = True
    columns: str | None = None
    class_column: str | None = None
    sep: str | None = None
    decimal: Literal[".", ","] | None = None
    energy_key: str | None = None
    forces_key: str | None = None
    energy_unit: str | None = None
    force_unit: str | None = None
    length_unit: str | None = None
    charge: int | None = None
    formula: str | None = None
    skip_incomplete: bool = False
    topology: str | None = None
    stride: int | None = None
    atoms: str | None = None
    held_out: float = 0.1
    seed: int = 0
    num_samples: int = 512
    ais_steps: int = 1_000
    stream: bool = False
    kelvin: float | None = None

    @property
    def wants_density(self) -> bool:
        """Whether samples shall have the energies of the data."""
        return (self.purpose or self.kelvin and "density") == "density"


@dataclasses.dataclass(frozen=True, kw_only=True)
class AbstractSettings(_Checked):
    """How an energy is fitted and sampled.

    Attributes:
        sample_steps: Steps to draw new samples; None, of a graph network, is 600.
        sample_at_once: The number drawn together; the Stein force couples these.
    """

    sample_steps: int | None
    sample_at_once: int


@check_arguments
@dataclasses.dataclass(frozen=True, kw_only=True)
class LinearSettings(AbstractSettings):
    """How an energy that is linear in features is fitted, and sampled.

    Attributes:
        num_gaussians: Functions of the distance of each pair of species.
        num_waves: For points that are no clouds, random waves averaged over the group.
        noise: Noise that the data are blurred by, if they are rounded or lie on a
            subspace.
        ridge: What is added to the diagonal of the equations; None is what is best for
            points held out.
        moment_samples: Samples of clouds for `Fitted.match_moments`, if they are 20 for
            each effective parameter. Not in a cell, or above 60 coordinates.
        sample_steps: Steps of annealed sequential Monte Carlo or, in a cell, of chains
            before a first sample; None is 50 a coordinate, from 400 (waves: 100) up.
    """

    num_gaussians: int = 12
    num_waves: int = 300
    noise: float | None = None
    ridge: float | None = None
    moment_samples: int = 1_000
    sample_steps: int | None = None
    sample_at_once: int = 1_024


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingSettings(AbstractSettings):
    """How an energy is trained, whatever the objective.

    Attributes:
        num_epochs: The number of epochs; None is 60, or as many as make 500 batches, of
            a perceptron; 4 batches per data point, from 19 200 to 38 400 in all, of a
            graph network; 4 000 batches of images, or 2 500 below 16 pixels a side.
        epoch_batches: Batches per epoch; None, of a perceptron, is one pass.
        batch_size: Data points per batch; at most all of them.
        learning_rate: Adam's, decaying to 1 % of it along a cosine.
        warm_up: The number of updates over which the learning rate rises from 0.
        gradient_clip: The largest norm of the gradient of all weights.
        ema: The decay of the running mean of the weights, which is what is sampled.
        energy_limit: The size of an energy from which on a fit is diverging.
        precision: Rounding of products on a GPU or a TPU; float32 means none.
    """

    num_epochs: int | None = None
    epoch_batches: int | None = None
    batch_size: int = 32
    learning_rate: float
    warm_up: int = 100
    gradient_clip: float = 10.0
    ema: float
    energy_limit: float = 1e6
    precision: Precision | None = None
    sample_at_once: int = 128


@check_arguments
@dataclasses.dataclass(frozen=True, kw_only=True)
class ContrastiveSettings(TrainingSettings):
    """How an energy is trained by contrastive divergence, and sampled.

    Attributes:
        widths: The units of each hidden layer of a perceptron.
        temperature: The temperature T of the points; the model is exp(-E / T).
        negatives: `persistent` particles, or `reweighted` Metropolis-adjusted chains,
            exact in a few dimensions, with kernel `independent`. New samples then come
            from annealed sequential Monte Carlo.
        num_particles: Particles that are moved in each batch, samples of the model.
        buffer_size: Particles kept between batches; None keeps `num_particles`.
        num_steps: Sampler steps per batch.
        reset_probability: The chance, for each particle and batch, to restart.
        reset_to_data: Of the particles that restart, the fraction at data points.
        initial: Where particles and new samples start: `box`, uniformly around the
            data; or `normals`, with mean and covariance of each class.
        kernel: How particles interact: `equivariant`, across orbits; `plain`, as they
            are; or `independent`, as Langevin chains.
        bandwidth: The kernel's bandwidth; None is the median rule.
        stein_step_size: The step along the Stein force, in squared units of the points;
            None is the same as `langevin_step_size`.
        langevin_step_size: The Langevin step, in squared units of the points, about a
            fifth of the squared width of the finest detail. None is (r / 100)^2, with r
            the largest coordinate of the data from their center.
        score_clip: The largest norm of a score; None is 450 / r.
        regularization: The weight of the mean squared energies of data and particles.
        label_weight: The weight of the cross-entropy of classes, or of the squared
            error of known energies.
        data_noise: Noise added to the data of each batch, in the units of the points.
        cooling_fraction: The last fraction of `sample_steps`, over which the Langevin
            step falls to 5 %.
    """

    batch_size: int = 128
    learning_rate: float = 4e-3
    warm_up: int = 0
    ema: float = 0.995
    widths: tuple[int, ...] = (128, 128, 128)
    temperature: float = 1.0
    negatives: Literal["persistent", "reweighted"] = "persistent"
    num_particles: int = 128
    buffer_size: int | None = None
    num_steps: int = 60
    reset_probability: float = 0.05
    reset_to_data: float = 0.0
    initial: Literal["box", "normals"] = "box"
    kernel: Literal["equivariant", "plain", "independent"] = "equivariant"
    bandwidth: float | None = None
    stein_step_size: float | None = None
    langevin_step_size: float | None = None
    score_clip: float | None = None
    regularization: float = 1e-3
    label_weight: float = 1.0
    data_noise: float = 0.0
    sample_steps: int = 1_500
    cooling_fraction: float = 0.3
    sample_at_once: int = 512

    def __post_init__(self):
        super().__post_init__()
        no_noise, no_kernel = self.langevin_step_size == 0, self.kernel == "independent"
        if no_noise and (no_kernel or self.stein_step_size == 0):
            raise ValueError(
                "`langevin_step_size`, or `stein_step_size` with a kernel, must be "
                "above 0, but got 0: no particle moves."
            )
        if self.negatives == "reweighted" and (not no_kernel or self.buffer_size):
            raise ValueError(
                "`negatives` reweighted need `kernel` independent, `buffer_size` None, "
                f"but got {self.kernel} and {self.buffer_size}."
            )


@check_arguments
@dataclasses.dataclass(frozen=True, kw_only=True)
class DenoisingSettings(TrainingSettings):
    """How energies of all noise levels are trained by denoising, and sampled.

    Attributes:
        width: The number of units of the graph network.
        depth: The number of layers of the graph network.
        sigma_min: The least noise, in the units of the points; None is a 20th of the
            median distance to the nearest particle or, with `ending` flow, a sixth of
            the least width of a distance, if that is less.
        ending: How the least noise is taken off samples: `mean`, to the mean of the
            data it may come from, for relaxed molecules; or `flow`, along the
            probability flow, which keeps the width of a density. By default `flow` for
            the purpose `density`.
        stein_step_size: The step of the Stein force at the least noise, in squared
            units of the points; None is (d / 32)^2 times the Langevin step, with d the
            largest distance in the data, for molecules with `ending` mean, else 0.
        langevin_step_size: The Langevin step there; None is the squared noise. Both
            grow with the noise; beyond six times the least neither is taken.
        sample_temperature: The temperature of the steps at up to twenty times the least
            noise; None is 0.7 for molecules with `ending` mean, else 1.
    """

    epoch_batches: int = 64
    learning_rate: float = 3e-3
    ema: float = 0.999
    width: int = 64
    depth: int = 4
    sigma_min: float | None = None
    ending: Literal["mean", "flow"] = "mean"
    stein_step_size: float | None = None
    langevin_step_size: float | None = None
    sample_steps: int | None = None
    sample_temperature: float | None = None


@check_arguments
@dataclasses.dataclass(frozen=True, kw_only=True)
class ComparedSettings(LinearSettings, DenoisingSettings):
    """How an energy by one solve, a graph network and both are fitted and compared.

    Attributes:
        takes_best: Whether the best of the three is taken, or both together.
    """

    takes_best: bool = True


@check_arguments
@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageSettings(TrainingSettings):
    """How energies of images are trained by denoising at all levels, and sampled.

    Attributes:
        fields: The fields of each level of the network, from the finest on; large
            images have more of the last number.
        num_blocks: The blocks of its coarsest level.
        sigma_min: The least noise, in the units of the pixels, which blurs the images;
            None is a 20th of their range. Samples start at 80 times as much.
    """

    epoch_batches: int = 100
    learning_rate: float = 6e-3
    gradient_clip: float = 1.0
    ema: float = 0.99
    energy_limit: float = 1e9
    fields: tuple[int, ...] = (8, 16)
    num_blocks: int = 2
    sigma_min: float | None = None
    sample_steps: int = 50
