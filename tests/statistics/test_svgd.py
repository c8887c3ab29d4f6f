import jax
import jax.numpy as jnp
import jax.random as jr
import optax
import pytest

from equistein.features import Radius
from equistein.groups import Cyclic
from equistein.kernels import (
    AbstractScalarKernel,
    Equivariant,
    Invariant,
    Median,
    Pullback,
    RBF,
)
from equistein.metrics import wasserstein_1d
from equistein.samplers import Geometric, run, SVGD, thermal, vector_adam
from equistein.targets import RotatedGaussians, Shells

pytestmark = pytest.mark.slow


class NoRepulsion(AbstractScalarKernel):
    """A broken twin: with a constant kernel SVGD is plain gradient ascent."""

    def __call__(self, x, y):
        return jnp.ones((), x.dtype)


@pytest.mark.parametrize(
    ("kernel", "passes"), [(RBF(1.0), True), (NoRepulsion(), False)]
)
def test_svgd_recovers_unit_variance(kernel, passes, key):
    start_key, run_key = jr.split(key)
    start = 3 * jr.normal(start_key, (40, 1))
    sampler = SVGD(kernel, optax.adam(0.1))
    log_density = lambda x: -jnp.sum(x**2) / 2
    samples = run(run_key, sampler, log_density, start, num_steps=2_000)
    standard_error = jnp.sqrt(2 / 40)  # of the variance of 40 independent draws
    variance = jnp.var(samples.particles)
    assert (jnp.abs(variance - 1) < standard_error) == passes


GROUP = Cyclic(4)


@pytest.mark.parametrize(
    ("kernel", "bars", "passes"),
    [
        (Equivariant(RBF(0.2), GROUP), (0.16, 0.075), True),
        (Equivariant(RBF(Median()), GROUP), (0.09, 0.045), True),
        (RBF(0.2), (0.16, 0.075), False),
        (Invariant(RBF(0.2), GROUP), (0.16, 0.075), False),
    ],
)
def test_equivariant_svgd_fills_the_mode_of_four_gaussians(kernel, bars, passes, key):
    target = RotatedGaussians(GROUP)
    fold = jax.vmap(GROUP.canonicalize)
    exact = fold(target.sample(key, 20_000))
    sampler = SVGD(kernel, optax.sgd(0.02))
    gaps = []
    for seed in range(3):
        start = jnp.sqrt(2.0) * jr.normal(jr.fold_in(key, seed), (50, 2))
        samples = run(key, sampler, target.log_density, start, num_steps=25_000)
        folded = fold(samples.particles)
        gaps.append([wasserstein_1d(folded[:, i], exact[:, i]) for i in (0, 1)])
    mean = jnp.mean(jnp.array(gaps), axis=0)
    assert bool(jnp.all(mean <= jnp.array(bars))) == passes


@pytest.mark.parametrize(
    ("radii", "width", "dim", "num"),
    [((4.0, 8.0), 0.5, 2, 50), ((4.0, 9.0), 0.3, 3, 100)],
    ids=["circles", "spheres"],
)
@pytest.mark.parametrize("annealed", [True, False])
def test_annealing_sets_the_weights_whatever_the_start(
    radii, width, dim, num, annealed, key
):
    target = Shells(radii, width, dim)
    kernel = Pullback(RBF(0.3), Radius())
    num_steps = 10_000
    hot = Geometric(8_000, start=0.01)
    rate = thermal(0.03, hot, num_steps) if annealed else 0.01
    sampler = SVGD(
        kernel, vector_adam(rate, b1=0.0, b2=0.9), annealing=hot if annealed else None
    )
    within = []
    for seed, spread in enumerate((1.0, 3.0, 6.0)):
        start = spread * jr.normal(jr.fold_in(key, seed), (num, dim))
        samples = run(key, sampler, target.log_density, start, num_steps=num_steps)
        radius = jnp.linalg.norm(samples.particles, axis=1)
        inner = radius < sum(radii) / 2
        weight = jnp.mean(inner)
        sds = [jnp.std(radius[chosen]) for chosen in (inner, ~inner) if chosen.any()]
        within.append(
            abs(float(weight) - float(target.weights[0])) < 0.04
            and all(abs(sd / width - 1) < 0.15 for sd in sds)
        )
    assert all(within) == annealed


@pytest.mark.parametrize("langevin", [0.02, 0.0])
def test_langevin_noise_mends_the_lack_of_spread_in_many_dimensions(langevin, key):
    dim, num = 20, 50
    start_key, run_key = jr.split(key)
    sampler = SVGD(RBF(), optax.sgd(0.02), langevin=langevin)
    start = jr.normal(start_key, (num, dim))
    log_density = lambda x: -jnp.sum(x**2) / 2
    samples = run(run_key, sampler, log_density, start, num_steps=20_000)
    variance = jnp.mean(jnp.var(samples.particles, axis=0))
    standard_error = jnp.sqrt(2 / (num * dim))
    assert (jnp.abs(variance - 1) < 4 * standard_error) == (langevin > 0)
