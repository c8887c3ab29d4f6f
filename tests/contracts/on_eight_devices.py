"""What `test_devices` runs in a process of its own, which has eight devices."""

import functools
import pathlib
import sys
import tempfile

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

import equistein as es
from equistein._sharding import replicate, split_over_devices
from equistein.groups import Cyclic
from equistein.kernels import RBF
from equistein.samplers import run, SVGD
from equistein.training import Batch, Trainer
from short_fits import fit as short_fit


def close(found, wanted, tolerance=1e-10):
    """Return whether two arrays agree but for rounding, in double precision."""
    error = jnp.max(jnp.abs(found - wanted)) / jnp.max(jnp.abs(wanted))
    return float(error) < tolerance


def weights(fitted):
    """Return all weights of a fit in a row, on the host."""
    leaves = jax.tree.leaves(eqx.filter(fitted.energy, eqx.is_inexact_array))
    return np.concatenate([np.asarray(leaf).ravel() for leaf in leaves])


def sampling():
    key, mesh = jr.key(0), es.device_mesh()
    target = es.targets.RotatedGaussians(Cyclic(4))
    density = target.log_density
    kernels = [
        RBF(0.3),
        es.kernels.Equivariant(RBF(0.3), Cyclic(4)),
        es.kernels.Pullback(RBF(0.3), es.features.Radius()),
    ]
    for kernel in kernels:
        # Neither number can be shared by eight.
        for num in (50, 6) if kernel is kernels[0] else (50,):
            x = 2 * jr.normal(jr.key(num), (num, 2))
            scores = jax.vmap(jax.grad(density))(x)
            force = lambda rows, kernel, *sources: kernel.stein_force(rows, *sources)
            alone = kernel.stein_force(x, x, scores)
            shared = split_over_devices(mesh, force, x, kernel, x, scores)
            assert close(shared, alone), (kernel, num)
            sampler = SVGD(kernel, optax.sgd(0.1))
            alone = run(key, sampler, density, x, num_steps=2, check=False)
            shared = run(key, sampler, density, x, num_steps=2, check=False, mesh=mesh)
            assert close(shared.particles, alone.particles), (kernel, num)
    for kernel in kernels[:2]:  # all devices round alike: they center on one mean
        x = 2 * jr.normal(key, (1000, 2), jnp.float32) + 30
        alone = kernel.stein_force(x, x, 30 - x)
        shared = split_over_devices(mesh, force, x, kernel, x, 30 - x)
        assert shared.dtype == jnp.float32
        assert close(shared, alone, 1e-6), kernel
    work()
    mala, x = es.MALA(0.05), jr.normal(key, (64, 2))
    alone = run(key, mala, density, x, num_steps=5)
    shared = run(key, mala, density, x, num_steps=5, mesh=mesh)
    assert close(shared.particles, alone.particles)
    assert not shared.particles.sharding.is_fully_replicated
    some = x[:50]  # which eight cannot share equally
    alone = run(key, mala, density, some, num_steps=5)
    shared = run(key, mala, density, some, num_steps=5, mesh=mesh)
    assert close(shared.particles, alone.particles)
    keys, starts = jr.split(key, 3), jr.normal(key, (3, 20, 2))
    sampler = SVGD(kernels[0], optax.sgd(0.1))
    alone = run(keys, sampler, density, starts, num_steps=3)
    shared = run(keys, sampler, density, starts, num_steps=3, mesh=mesh)
    assert close(shared.particles, alone.particles)


def work():
    """All devices together compute hardly more than one would."""
    key, mesh, num = jr.key(0), es.device_mesh(), 1024
    target, system = es.targets.RotatedGaussians(Cyclic(4)), es.targets.DoubleWell()
    features = es.features.SortedDistances((0,) * 4)
    for kernel, density, shape in (
        (RBF(0.3), target.log_density, (2,)),
        (es.kernels.Equivariant(RBF(0.3), Cyclic(4)), target.log_density, (2,)),
        (es.kernels.Pullback(RBF(0.3), features), system.log_density, (4, 2)),
        (es.kernels.Gradient(RBF(0.3), features), system.log_density, (4, 2)),
    ):
        sampler, x = SVGD(kernel, optax.sgd(0.1)), jr.normal(key, (num, *shape))
        state, found = sampler.init(x, density), []
        for each, begun in (
            (sampler, state),
            (sampler.shard(mesh), replicate(state, mesh)),
        ):
            step = jax.jit(functools.partial(each.step, log_density=density))
            compiled = step.lower(key, begun).compile()
            found.append(compiled.cost_analysis()["flops"])
        alone, of_one_of_eight = found
        assert 8 * of_one_of_eight < 1.25 * alone, (kernel, found)


def training():
    def flops(model, data, mesh):
        """Return the operations of a step on each device, and on one alone."""
        num, found = model.batch_size, []
        plain = Trainer(
            model.objective, model.optimization.transformation(3), num, 3, 0.9
        )
        for trainer in (plain.shard(mesh), plain):
            everything = Batch(data, None, jnp.arange(len(data)))
            state = trainer.init(jr.key(0), model.energy, everything)
            arrays, static = eqx.partition(state, eqx.is_array)

            def step(arrays, points, trainer=trainer, static=static):
                batch = Batch(points, None, jnp.arange(num))
                state = eqx.combine(arrays, static)
                return eqx.filter(trainer._step(jr.key(1), state, batch), eqx.is_array)

            lowered = jax.jit(step).lower(replicate(arrays, mesh), data[:num])
            found.append(lowered.compile().cost_analysis()["flops"])
        return found

    mesh, key = es.device_mesh(), jr.key(3)
    plane = es.targets.RotatedGaussians(Cyclic(4)).sample(jr.key(0), 256)
    clouds = jr.normal(jr.key(1), (64, 6, 3))
    contrastive = es.models.ContrastiveSettings(
        num_epochs=2, num_particles=64, num_steps=5, batch_size=64, widths=(32, 32)
    )
    denoising = es.models.DenoisingSettings(
        num_epochs=2, batch_size=32, width=16, depth=2
    )
    cases = [
        (es.models.for_data(key, Cyclic(4), plane, settings=contrastive), plane),
        (
            es.models.for_data(
                key, es.groups.PointCloud((0,) * 6, 3), clouds, settings=denoising
            ),
            clouds,
        ),
    ]  # fmt: skip
    epochs_taken = []
    for model, data in cases:
        shared, alone = flops(model, data, mesh)
        assert shared < 0.2 * alone, (shared, alone)

        def fit(
            epochs, checkpoint=None, mesh=None, stop=None, *, model=model, data=data
        ):
            def until(told):
                epochs_taken.append(told["epoch"])
                if told["epoch"] == stop:
                    raise KeyboardInterrupt

            return short_fit(
                key, model.energy, data, model.objective, num_epochs=epochs,
                batch_size=model.batch_size, epoch_batches=3, mesh=mesh,
                optimizer=optax.sgd(1e-2), checkpoint=checkpoint, callbacks=[until],
            )  # fmt: skip

        one = fit(2)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "state.eqx"
            many = fit(2, path, mesh)
            # The finished checkpoint is read back on one device and on two.
            for devices in (None, es.device_mesh(2)) if data is plane else ():
                again = fit(2, path, devices)
                assert np.array_equal(weights(again), weights(many))
            if data is plane:  # stopped twice, and gone on with fewer devices
                path = pathlib.Path(folder) / "stopped.eqx"
                for number, devices in enumerate((mesh, es.device_mesh(2)), start=2):
                    with pytest.raises(KeyboardInterrupt):
                        fit(4, path, devices, number)
                    assert path.exists()
                epochs_taken.clear()
                rest = fit(4, path)
                assert epochs_taken == [3, 4]
                assert close(weights(rest), weights(fit(4)))
        assert close(weights(many), weights(one))
        five = fit(2, mesh=es.device_mesh(5))  # which cannot share the batch equally
        assert close(weights(five), weights(one))


def hosts():
    """Two processes of four devices each; what they are given must be the same."""
    own = int(sys.argv[3])
    jax.distributed.initialize(sys.argv[2], num_processes=2, process_id=own)
    key, mesh = jr.key(0), es.device_mesh()
    density = es.targets.RotatedGaussians(Cyclic(4)).log_density
    assert mesh.size == 8
    x, options = 2 * jr.normal(key, (50, 2)), {"num_steps": 2, "check": False}
    for kernel in (
        RBF(0.3),
        es.kernels.Equivariant(RBF(0.3), Cyclic(4)),
        es.kernels.Pullback(RBF(0.3), es.features.Radius()),
    ):
        sampler = SVGD(kernel, optax.sgd(0.1))
        alone = run(key, sampler, density, x, **options)
        shared = run(key, sampler, density, x, mesh=mesh, **options)
        assert close(shared.particles, alone.particles), kernel
    # Eight devices cannot share 50 particles equally.
    sampler = es.MALA(0.1)
    alone = run(key, sampler, density, x, **options)
    shared = run(key, sampler, density, x, mesh=mesh, **options)
    assert close(shared.particles, alone.particles)
    with pytest.raises(ValueError, match="Processes 1 were given another run"):
        run(key, sampler, density, x + own, mesh=mesh, **options)
    sys.stdout.write("all the same\n")
    sys.stdout.flush()


if __name__ == "__main__":
    {"sampling": sampling, "training": training, "hosts": hosts}[sys.argv[1]]()
