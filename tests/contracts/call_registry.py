"""A right call of each public function and class that takes arguments, in small."""

import dataclasses
import inspect

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax

import equistein as es
from equistein import diffusion

X = jr.normal(jr.key(0), (6, 2))
Y = jr.normal(jr.key(1), (6, 2))
CLOUDS = jr.normal(jr.key(2), (5, 3, 2))
LOGITS = jr.normal(jr.key(3), (6, 3))
LABELS = jnp.array([0, 1, 2, 0, 1, 2])
IMAGES = jr.uniform(jr.key(4), (4, 8, 8, 1))
WATER = np.array([[[0, 0, 0], [0.76, 0.59, 0], [-0.76, 0.59, 0]]])
C4 = es.groups.Cyclic(4)
TRIVIAL = es.groups.Trivial()
RBF = es.kernels.RBF(1.0)
SPECIES = (0, 0, 0)


def log_density(x):
    return -0.5 * jnp.sum(x**2)


def forces(x):
    return 0.5 * (x**2).sum((1, 2)), -x


def ladder_at(points):
    """Return samples of tempering at some points, for which nothing is compiled."""
    sampler = es.ParallelTempering(es.MALA(), (1.0, 0.5), num_adapt=0)
    state = jax.eval_shape(lambda: sampler.init(points, log_density))
    state = jax.tree.map(lambda leaf: np.ones(leaf.shape, leaf.dtype), state)
    ladder = np.asarray(sampler.inverse_temperatures)
    state = dataclasses.replace(state, inverse_temperatures=ladder)
    return es.Samples(points, {}, 0, False, state)


LADDER = ladder_at(X)
PLAIN = es.energies.PlainEnergy(
    es.networks.FeatureNetwork(
        es.networks.MLP(1, widths=(4,), key=jr.key(0)), es.features.Radius(), X
    )
)
JOINT = es.energies.JointEnergy(
    es.networks.FeatureNetwork(
        es.networks.MLP(1, widths=(4,), out_size=3, key=jr.key(0)),
        es.features.Radius(),
        X,
    )
)
SVGD = es.SVGD(RBF, optax.sgd(0.1))
LANGEVIN = es.Langevin(0.01)
MALA = es.MALA(0.1)
NORMAL = es.samplers.Normal(jnp.zeros(2), 1.0)
BOX = es.training.Box(X, C4)
PERSISTENT = es.negatives.Persistent(LANGEVIN, BOX, num_particles=4)
MATCHING = es.objectives.ScoreMatching()
STEP_SIZES = diffusion.StepSizes(
    jnp.asarray(0.1), jnp.asarray(0.0), jnp.asarray(jnp.inf)
)
CONSTANT = es.features.Radius()


def calls(owner, **entries):
    """Return calls by the public name, `calls(es.groups, Cyclic=dict(order=4))`."""
    name = owner.__name__.replace("equistein", "es", 1)
    return {
        f"{name}.{key}": (by_name(getattr(owner, key)), entries[key]) for key in entries
    }


def by_name(public):
    """Return a function that takes what comes one after another by name as well."""
    parameters = inspect.signature(public).parameters.values()
    several = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
    if not several:
        return public

    def called(**named):
        several_values = named.pop(several[0])
        if not isinstance(several_values, list | tuple):
            several_values = (several_values,)
        return public(*several_values, **named)

    return called


CALLS = {
    **calls(
        es.groups,
        Cyclic=dict(order=4),
        Dihedral=dict(corners=3),
        SpecialOrthogonal=dict(dim=2),
        Orthogonal=dict(dim=3),
        Permutations=dict(num=3),
        Signs=dict(num=2),
        SignedPermutations=dict(num=2),
        TorusTranslations=dict(periods=(1.0, 2.0)),
        ImageRotations=dict(reflections=True),
        PointCloud=dict(species=SPECIES, dim=2),
        Molecule=dict(topology=(((0, 1),), (8, 1))),
        Product=dict(groups=(es.groups.Permutations(3), C4)),
        Direct=dict(parts=((C4, (2,)), (TRIVIAL, (1,)))),
        parse_group=dict(text="cyclic:4"),
        check_invariance=dict(log_density=log_density, group=C4, points=X),
        encode_species=dict(species=("C", "O")),
    ),
    **calls(
        es.features,
        Concatenated=dict(parts=(CONSTANT, es.features.Coordinates())),
        Radius=dict(epsilon=0.01),
        SortedDistances=dict(species=SPECIES),
        SortedRowSums=dict(species=SPECIES),
        PairHistogram=dict(species=SPECIES, reach=4.0, num_centers=3),
        Periodic=dict(periods=(1.0, 2.0)),
        RandomFeatures=dict(symmetry=es.groups.Permutations(3), num=2),
        Polynomials=dict(symmetry=C4, degree=2),
        Quadratic=dict(symmetry=C4),
        Bonded=dict(bonds=((0, 1),), atomic_numbers=(8, 1)),
        Torsions=dict(atoms=((0, 1, 2, 3),)),
        Distances=dict(pairs=((0, 1),)),
        RadiusOfGyration={},
    ),
    **calls(
        es.kernels,
        RBF=dict(bandwidth=1.0),
        IMQ=dict(bandwidth=1.0),
        PeriodicRBF=dict(bandwidth=1.0, periodic=es.features.Periodic((1.0, 2.0))),
        Median=dict(factor=1.0, every=10, max_particles=16),
        Preconditioner=dict(
            center=X[0],
            factor=jnp.ones(2),
            inverse=jnp.ones(2),
            log_det=jnp.zeros(()),
            growth=jnp.ones(2),
        ),
        Equivariant=dict(base=RBF, group=C4),
        Invariant=dict(base=RBF, group=C4),
        Pullback=dict(base=RBF, features=es.features.Radius()),
        Gradient=dict(base=RBF, features=es.features.Radius()),
        Moments=dict(features=es.features.Radius(), ridge=0.01),
    ),
    **calls(
        es.samplers,
        SVGD=dict(kernel=RBF, optimizer=optax.sgd(0.1), score_clip=5.0),
        Langevin=dict(step_size=0.01),
        MALA=dict(step_size=0.1, num_adapt=3, acceptance=0.6),
        HMC=dict(step_size=0.1, num_leapfrogs=2, num_adapt=3, acceptance=0.6),
        ParallelTempering=dict(inner=MALA, num_temperatures=3, reference=NORMAL),
        AnnealedSMC=dict(inner=MALA, reference=NORMAL, num_runs=2, num_moves=1),
        temperatures=dict(kelvin=300.0, hottest=1200.0, num=8),
        Normal=dict(center=jnp.zeros(2), scale=1.0),
        Geometric=dict(num_steps=10, start=0.01),
        run=dict(
            key=jr.key(0),
            sampler=LANGEVIN,
            log_density=log_density,
            particles=X,
            num_steps=3,
        ),
        systematic_resampling=dict(key=jr.key(0), weights=jnp.full(4, 0.25)),
        vector_adam=dict(learning_rate=0.1),
        annealed_svgd=dict(kernel=RBF, num_steps=10, step_size=0.1),
        thermal=dict(
            step_size=0.1, annealing=es.samplers.Geometric(num_steps=10), num_steps=10
        ),
        as_blackjax=dict(sampler=LANGEVIN, log_density=log_density),
        GeometricPath=dict(log_density=log_density, reference=NORMAL),
    ),
    **calls(
        es.networks,
        MLP=dict(in_size=2, widths=(4,), key=jr.key(0)),
        FeatureNetwork=dict(
            network=es.networks.MLP(1, widths=(4,), key=jr.key(0)),
            features=es.features.Radius(),
            data=X,
        ),
        EGNN=dict(species=SPECIES, dim=2, width=4, depth=1, key=jr.key(0)),
        SteerableCNN=dict(shape=(8, 8, 1), fields=(2, 2), key=jr.key(0)),
        NoiseMLP=dict(in_size=2, widths=(4,), key=jr.key(0)),
        Symmetrized=dict(
            network=es.networks.MLP(2, widths=(4,), key=jr.key(0)), symmetry=C4
        ),
        SteerableConv=dict(
            in_fields=1,
            out_fields=2,
            group=es.groups.ImageRotations(),
            lifting=True,
            image_size=6,
            key=jr.key(0),
        ),
    ),
    **calls(
        es.energies,
        PlainEnergy=dict(network=PLAIN.network),
        JointEnergy=dict(network=JOINT.network, temperature=1.0),
        TemperedEnergy=dict(energy=PLAIN, temperature=2.0),
        ConditionalEnergy=dict(energy=JOINT, label=1),
        SummedEnergy=dict(terms=[(1.0, PLAIN), (0.5, PLAIN)]),
        KnownEnergy=dict(log_density=log_density, symmetry=C4),
    ),
    **calls(
        es.metrics,
        accuracy=dict(logits=LOGITS, labels=LABELS),
        expected_calibration_error=dict(logits=LOGITS, labels=LABELS, num_bins=5),
        energy_distance=dict(first=X, second=Y),
        wasserstein_1d=dict(first=X[:, 0], second=Y[:, 0], order=1),
        total_variation=dict(
            first=X[:, 0], second=Y[:, 0], limits=(-3.0, 3.0), num_bins=5
        ),
        mode_weights=dict(samples=X, modes=Y[:2]),
        proportions=dict(labels=LABELS, num=3),
        frechet_distance=dict(first=X, second=Y),
        precision_and_recall=dict(samples=X, data=Y, num_neighbors=2),
        bits_per_dimension=dict(log_likelihood=jnp.zeros(3), shape=(8, 8, 1)),
        mean_log_likelihood=dict(log_density=log_density, particles=X),
        kernel_stein_discrepancy=dict(log_density=log_density, particles=X, kernel=RBF),
        outlier_scores=dict(energy=PLAIN, points=X),
        typicality=dict(
            statistics=lambda x: x, points=X, data=Y, labels=LABELS, num_classes=3
        ),
        pair_distances=dict(points=CLOUDS),
        radial_distribution=dict(
            points=CLOUDS, group=es.groups.PeriodicCloud(SPECIES, (4.0, 4.0))
        ),
        virial=dict(log_density=log_density, points=CLOUDS),
        free_energy=dict(samples=X, collective_variable=lambda x: x[0], bins=2),
        thermal_averages=dict(samples=LADDER, inverse_temperatures=(1.0, 0.7)),
        reweight=dict(
            particles=X, log_density=log_density, target=lambda x: -jnp.sum(x**4)
        ),
        annealed_importance_sampling=dict(
            key=jr.key(0),
            log_density=log_density,
            reference=NORMAL,
            num_particles=8,
            num_steps=4,
        ),
        geometric_wasserstein=dict(
            first=CLOUDS, second=CLOUDS, group=es.groups.PointCloud(SPECIES, 2)
        ),
        published_scores=dict(name="LJ-13"),
    ),
    **calls(
        es.targets,
        DoubleWell=dict(num_particles=4, dim=2, temperature=1.0),
        LennardJones=dict(num_particles=3, dim=3, temperature=1.0),
        HardMixture=dict(dim=3, radius=5.0),
        RotatedGaussians=dict(group=C4, mean=(3.0, 0.0)),
        Shells=dict(radii=(1.0, 2.0), widths=0.3, dim=2),
        find_minima=dict(log_density=log_density, starts=X, features=CONSTANT),
    ),
    **calls(
        es.objectives,
        ContrastiveDivergence=dict(negatives=PERSISTENT, regularization=0.01),
        DenoisingScoreMatching=dict(sigma_min=0.1),
        Blurred=dict(objective=MATCHING, noise=0.1),
    ),
    **calls(
        es.negatives,
        Persistent=dict(sampler=LANGEVIN, initial=BOX, num_particles=4, num_steps=2),
        FromData=dict(sampler=LANGEVIN, num_steps=2),
    ),
    **calls(
        es.training,
        Box=dict(data=X, group=C4),
        DataPoints=dict(data=X, group=C4),
        Normals=dict(data=X, group=C4),
        SamplingGenerator=dict(sampler=LANGEVIN, initial=BOX, num_steps=2),
        Reweighted=dict(sampler=MALA, reference=NORMAL, num_particles=4, num_steps=2),
        Monitor=dict(function=lambda fitted: {}, every=2),
        check_classes=dict(values=np.array([0, 1, 2, 1]), num_classes=3),
        Optimization=dict(max_rollbacks=2, energy_limit=1e6),
        adam=dict(learning_rate=0.1, num_updates=10),
        Clamp=dict(values=jnp.zeros(2), mask=jnp.array([True, False])),
        fit=dict(
            key=jr.key(0),
            energy=PLAIN,
            data=X,
            objective=MATCHING,
            num_epochs=1,
            batch_size=4,
        ),
    ),
    **calls(
        diffusion,
        StepSizes=dict(
            langevin=jnp.asarray(0.1), stein=jnp.asarray(0.0), score_clip=jnp.ones(())
        ),
        DiffusionSteps=dict(step_sizes=STEP_SIZES, num_steps=4),
        HeunSteps=dict(num_steps=4, score_clip=jnp.ones(())),
        ReverseDiffusion=dict(
            steps=diffusion.DiffusionSteps(STEP_SIZES, 4), shape=(2,), num_at_once=4
        ),
        BlurredNormals=dict(data=X, group=C4),
        NoiseEnergy=dict(
            network=es.networks.NoiseMLP(2, widths=(4,), key=jr.key(0)),
            data=X,
            sigma_min=0.1,
        ),
    ),
    **calls(
        es.models,
        for_data=dict(key=jr.key(0), group=C4, data=X),
        energy_for=dict(key=jr.key(0), group=C4, data=X, widths=(4,)),
        pretrained=dict(name="c5h8o"),
    ),
    **calls(es.bridges, from_energy_forces=dict(function=forces, temperature=300.0)),
    **calls(es.posteriors, Interval=dict(low=0.0, high=1.0), Wrapped=dict(period=6.28)),
    **calls(
        es.molecules,
        formula=dict(symbols=("C", "O")),
        atoms_of=dict(formula="CH4O"),
        atomic_numbers_of=dict(symbols=("C", "O")),
        symbols_of=dict(atomic_numbers=(6, 8)),
        infer_bonds=dict(symbols=("O", "H", "H"), positions=WATER[0]),
        valences_of=dict(symbols=("O", "H", "H")),
    ),
    **calls(
        es.metrics,
        bond_orders=dict(symbols=("O", "H", "H"), positions=WATER),
        summarize_chains=dict(values=jr.normal(jr.key(3), (4, 20))),
        split_r_hat=dict(values=np.asarray(X).T),
    ),
}
