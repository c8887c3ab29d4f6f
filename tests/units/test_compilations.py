"""How many programs each stage compiles; a call with the same shapes compiles none."""

import blackjax
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

import equistein as es

CLOUD = es.groups.PointCloud([0] * 4, 2)
EQUIVARIANT = es.kernels.Equivariant(es.kernels.RBF(), es.groups.Cyclic(2))
PROJECTED = es.MALA(0.1, project=CLOUD.project)
SAMPLERS = {
    "SVGD": es.SVGD(EQUIVARIANT, optax.adam(0.1)),
    "Langevin": es.Langevin(0.1),
    "MALA": es.MALA(0.1),
    "tempering": es.ParallelTempering(es.MALA(0.1)),
    "SMC": es.AnnealedSMC(es.MALA(0.1)),
    "HMC": es.from_blackjax(blackjax.hmc, num_integration_steps=3, num_adapt=20),
    "tempering of clouds": es.ParallelTempering(PROJECTED, num_temperatures=4),
}


def well(x):
    return -0.5 * jnp.sum((x - jnp.mean(x, axis=0, keepdims=True)) ** 2)


def bowl(x):
    return -0.5 * jnp.sum(x**2)


QUICK = ("tempering of clouds",)
CASES = [(name, None) for name in SAMPLERS] + [("SVGD", 2), ("tempering", 2)]


@pytest.mark.parametrize(
    ("name", "num_runs"),
    [
        pytest.param(*case, marks=() if case[0] in QUICK else pytest.mark.slow)
        for case in CASES
    ],
)
def test_a_run_compiles_at_most_four_programs(name, num_runs, counted):
    density, shape = (well, (4, 2)) if "clouds" in name else (bowl, (2,))
    keys = jr.split(jr.key(0), 4)
    key = keys[0] if num_runs is None else keys[:num_runs]
    points = np.random.default_rng(0).normal(size=(*key.shape, 80, *shape))
    start = jax.device_put(points - points.mean(axis=-2, keepdims=True))
    other = keys[1] if num_runs is None else keys[2:]
    jax.clear_caches()
    with es.samplers.suppress_warnings():
        with counted() as first:
            found = es.run(key, SAMPLERS[name], density, start, num_steps=100)
        assert len(first) <= 4, first
        with counted() as again:
            es.run(other, SAMPLERS[name], density, start, num_steps=230)
        assert again == []
        with counted() as more:
            es.run(
                key, SAMPLERS[name], density, num_steps=50, initial_state=found.state
            )
        assert len(more) <= 1, more


@pytest.mark.parametrize("axes", [pytest.param({}, marks=pytest.mark.slow), {"x": 0}])
def test_a_posterior_compiles_five_programs_and_one_for_its_symmetry(axes, counted):
    parameters = es.Parameters({"x": jnp.zeros(2)}, exchangeable=axes)
    posterior = es.Posterior(lambda tree: bowl(tree["x"]), parameters)
    keys, sizes = list(jr.split(jr.key(0), 3)), {"num_steps": 200, "num_draws": 20}
    jax.clear_caches()
    with es.samplers.suppress_warnings():
        with counted() as first:
            posterior.run(keys[0], **sizes)
        assert len(first) <= 5 + len(axes), first
        with counted() as again:
            posterior.run(keys[1], **sizes)
        assert again == []


@pytest.mark.slow
def test_scores_compile_four_programs(counted):
    target = es.targets.DoubleWell()
    points = np.random.default_rng(0).normal(size=(3, 200, 4, 2)) * 2
    jax.block_until_ready(target.known_states(jax.device_put(points[0])))  # once
    samples, *reference = (part - part.mean(axis=1, keepdims=True) for part in points)
    score = lambda part: es.score_against(part, target, reference=tuple(reference))
    reference[1] = np.concatenate([reference[1]] * 2)
    jax.clear_caches()
    with pytest.warns(UserWarning, match="virial"), counted() as first:
        score(samples)
    assert len(first) <= 4, first
    with pytest.warns(UserWarning, match="virial"), counted() as again:
        score(samples[::-1])
    assert again == []


def contrastive():
    settings = es.models.ContrastiveSettings(
        num_epochs=2, epoch_batches=2, batch_size=16, num_particles=16, num_steps=2,
        sample_steps=4, sample_at_once=16,
    )  # fmt: skip
    data = np.random.default_rng(0).normal(size=(40, 2))
    return es.groups.Cyclic(4), jax.device_put(data), settings


def denoising():
    settings = es.models.DenoisingSettings(
        num_epochs=2, batch_size=16, width=8, depth=1, sample_steps=4, sample_at_once=16
    )
    data = np.random.default_rng(0).normal(size=(40, 4, 2))
    return CLOUD, jax.device_put(data), settings


@pytest.mark.parametrize(
    "make", [contrastive, pytest.param(denoising, marks=pytest.mark.slow)]
)
def test_a_fit_compiles_six_programs_and_sampling_four(make, counted):
    group, data, settings = make()
    model = es.models.for_data(jr.key(0), group, data, settings=settings)
    keys = list(jr.split(jr.key(1), 4))
    jax.clear_caches()
    with counted() as first:
        fitted = model.fit(keys[0], data)
    assert len(first) <= 6, str(first)
    with counted() as again:
        model.fit(keys[1], data)
    assert again == []
    with counted() as drawn, es.samplers.suppress_warnings():
        fitted.sample(keys[2], 16)
    assert len(drawn) <= 4, drawn
    with counted() as again, es.samplers.suppress_warnings():
        fitted.sample(keys[3], 12 + 4)
    assert again == []
