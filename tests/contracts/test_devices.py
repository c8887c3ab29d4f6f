import os
import pathlib
import socket
import subprocess
import sys

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from sampler_registry import log_density, SAMPLERS, start

import equistein as es
from equistein._sharding import split_over_devices
from equistein.groups import Cyclic
from equistein.samplers import run


def test_rows_are_padded_and_what_is_found_is_put_back_together(key):
    mesh, x = es.device_mesh(1), jr.normal(key, (7, 2, 3))
    function = lambda rows, a: (a * jnp.sum(rows, axis=(1, 2)), rows**2)
    found = split_over_devices(mesh, function, x, jnp.asarray(2.0))
    for part, wanted in zip(found, function(x, 2.0), strict=True):
        assert np.array_equal(part, wanted)


def test_bad_meshes_are_refused(key):
    x, sampler = start(key), SAMPLERS["svgd"]
    with pytest.raises(ValueError, match="`num_devices`"):
        es.device_mesh(99)
    other = jax.sharding.Mesh(np.asarray(jax.devices()[:1]), ("batch",))
    with pytest.raises(ValueError, match="`mesh`"):
        run(key, sampler, log_density, x, num_steps=1, mesh=other)
    settings = es.models.ContrastiveSettings()
    model = es.models.for_data(key, Cyclic(4), x, settings=settings)
    with pytest.raises(ValueError, match="`mesh`"):
        es.fit(
            key, model.energy, x, model.objective, num_epochs=1, batch_size=4,
            mesh=other,
        )  # fmt: skip


# ------------------------------------------------- eight devices on one processor


def process(num_devices, *arguments):
    """Begin a part in a process of its own, of some devices, in double precision."""
    flags = f"--xla_force_host_platform_device_count={num_devices} "
    flags += os.environ.get("XLA_FLAGS", "")
    here = pathlib.Path(__file__).parent
    paths = os.pathsep.join([str(here.parent), os.environ.get("PYTHONPATH", "")])
    added = {"XLA_FLAGS": flags, "JAX_ENABLE_X64": "1", "PYTHONPATH": paths}
    return subprocess.Popen(
        [sys.executable, "on_eight_devices.py", *arguments], text=True,
        env=os.environ | added, cwd=here, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("part", ["sampling", "training"])
def test_eight_devices_do_what_one_does(part):
    ran = process(8, part)
    told, _ = ran.communicate(timeout=600)
    assert ran.returncode == 0, told[-3_000:]


@pytest.mark.slow
def test_two_processes_of_four_devices_do_what_one_does():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    started = [process(4, "hosts", address, str(own)) for own in range(2)]
    for each in started:
        told, _ = each.communicate(timeout=600)
        # A process may be ended for the other left first: what counts is its word.
        assert "all the same" in told, told[-3_000:]
