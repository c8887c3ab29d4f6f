import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import equistein as es
from equistein.bridges import BOLTZMANN, from_energy_forces
from equistein.groups import PointCloud

KELVIN = 1 / BOLTZMANN  # at which kT is 1 eV


def spring(points):
    """Each coordinate on a spring of 2 eV / Angstrom^2."""
    axes = tuple(range(1, points.ndim))
    return (points**2).sum(axes), -2 * points


@pytest.fixture
def density():
    return from_energy_forces(spring, temperature=KELVIN)


@pytest.mark.parametrize("shape", [(3,), (4, 3), (5, 5, 1)])
def test_value_and_gradient_are_those_of_the_function(shape, key, density):
    point = jr.normal(key, shape)
    value, score = jax.jit(jax.value_and_grad(density))(point)
    assert value == pytest.approx(-jnp.sum(point**2))
    assert jnp.allclose(score, -2 * point)
    _, slope = jax.jvp(density, (point,), (point,))
    assert slope == pytest.approx(-2 * jnp.sum(point**2))


def test_the_gradient_is_minus_the_forces_over_k_t(key):
    wrong = from_energy_forces(
        lambda x: (spring(x)[0], -spring(x)[1]), temperature=300.0
    )
    right = from_energy_forces(spring, temperature=300.0)
    point, step = jr.normal(key, (2, 3)), 1e-4
    for density, fits in ((right, True), (wrong, False)):
        ahead, behind = (density(point.at[0, 0].add(s)) for s in (step, -step))
        slope = (ahead - behind) / (2 * step)
        found = jax.grad(density)(point)[0, 0]
        assert np.isclose(slope, found, rtol=1e-6) == fits


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_all_particles_are_one_call_in_double_precision(dtype, key):
    calls = []

    def watched(points):
        calls.append((points.shape, points.dtype))
        return spring(points)

    density = from_energy_forces(watched, temperature=300.0)
    particles = jr.normal(key, (2, 7, 4, 3), dtype)
    both = jax.jit(jax.vmap(jax.vmap(jax.value_and_grad(density))))
    values, scores = both(particles)
    assert values.dtype == scores.dtype == particles.dtype
    assert calls == [((14, 4, 3), np.dtype("float64"))]
    assert density.num_evaluations == 14
    assert np.allclose(density.energies(particles[0]), spring(particles[0])[0])


@pytest.mark.parametrize(("temperature", "fits"), [(300.0, True), (330.0, False)])
def test_mala_draws_the_temperature(temperature, fits):
    """Each coordinate has variance kT / 2 at a spring of 2 eV / Angstrom^2."""
    density = from_energy_forces(spring, temperature=temperature)
    variance = BOLTZMANN * 300 / 2
    start = variance**0.5 * jr.normal(jr.key(0), (4_000, 2))
    chains = es.MALA(0.5 * variance)
    samples = es.run(jr.key(1), chains, density, start, num_steps=40)
    found = np.mean(np.asarray(samples.particles) ** 2)
    error = variance * (2 / samples.particles.size) ** 0.5
    assert (abs(found - variance) < 4 * error) == fits


def test_a_container_is_refused_in_a_cell():
    with pytest.raises(ValueError, match="`container` is for clusters"):
        es.from_energy_forces(
            print, temperature=KELVIN, cell=3 * np.eye(3), container=2.0
        )


def test_atoms_beyond_the_container_are_pulled_back_and_the_cloud_may_move(key):
    free = from_energy_forces(
        lambda x: (np.zeros(len(x)), np.zeros_like(x)),
        temperature=KELVIN, species=(6, 1, 1), container=2.0,
    )  # fmt: skip
    assert free.group == PointCloud((6, 1, 1), 3)
    inside = jnp.array([[0.0, 0, 0], [1, 0, 0], [-1, 0, 0]])
    assert free(inside) == 0
    assert np.all(np.isfinite(jax.grad(free)(jnp.zeros((3, 3)))))
    outside = 3 * inside + 10
    assert free(outside) == pytest.approx(-2 * 2.5 * (3.0 - 2.0) ** 2)
    forces = jax.grad(free)(outside)
    assert jnp.allclose(forces[1], jnp.array([-5.0, 0, 0]))
    assert jnp.allclose(jnp.sum(forces, axis=0), 0)
    points = jr.normal(key, (4, 3, 3)) * 3
    es.check_invariance(free, free.group, points)


def test_forces_are_checked_against_energies(key):
    points = np.asarray(jr.normal(key, (5, 2, 3)))
    from_energy_forces(spring, temperature=300.0).check_forces(points)
    for wrong in (lambda f: -f, lambda f: 1.2 * f):
        other = from_energy_forces(
            lambda x, wrong=wrong: (spring(x)[0], wrong(spring(x)[1])),
            temperature=300.0,
        )
        with pytest.raises(ValueError, match="minus the gradient .* at 5 of 5 points"):
            other.check_forces(points)
    lacking = lambda x: (spring(x)[0], spring(x)[1] * np.array([1, 1, 0]))
    with pytest.raises(ValueError, match="minus the gradient"):
        from_energy_forces(lacking, temperature=300.0).check_forces(points)


def test_what_is_no_pair_or_of_other_atoms_is_named(key):
    points = np.asarray(jr.normal(key, (5, 2, 3)))
    for wrong in (dict(energy=1), None, np.zeros(5)):
        density = from_energy_forces(lambda x, wrong=wrong: wrong, temperature=300.0)
        with pytest.raises(ValueError, match="pair"):
            density.energies(points)

    def fails(points):
        raise RuntimeError("SCF:\n  not converged\n  in 9 steps")

    density = from_energy_forces(fails, temperature=300.0)
    with pytest.raises(ValueError, match="SCF: not converged in 9 steps$"):
        es.run(key, es.MALA(0.1), density, jnp.asarray(points), num_steps=1)
    density = from_energy_forces(spring, temperature=300.0, species=(1, 1))
    for other in (points[0], points[:, :1]):
        with pytest.raises(ValueError, match="2 atoms"):
            density.energies(other)


# ------------------------------------------------------ what does not do


def failing(after, error=RuntimeError):
    """A spring that raises from some call on."""
    calls = []

    def function(points):
        calls.append(len(points))
        if len(calls) > after:
            raise error("no convergence")
        return spring(points)

    return function


def test_control_c_while_the_function_is_called_interrupts_the_run():
    density = from_energy_forces(failing(60, KeyboardInterrupt), temperature=KELVIN)
    with pytest.raises(es.RunInterrupted) as caught:
        es.run(jr.key(0), es.MALA(0.1), density, jnp.zeros((3, 2)), num_steps=200)
    assert 0 < caught.value.samples.num_steps < 60
    at_once = from_energy_forces(failing(0, KeyboardInterrupt), temperature=KELVIN)
    with pytest.raises(KeyboardInterrupt):
        es.run(jr.key(0), es.MALA(0.1), at_once, jnp.zeros((3, 2)), num_steps=200)


def test_what_a_run_gave_before_the_function_raised_is_kept():
    density = from_energy_forces(failing(60), temperature=KELVIN)
    run = lambda density, **options: es.run(
        jr.key(0), es.MALA(0.1), density, num_steps=200, **options
    )
    start = jnp.zeros((3, 2))
    with pytest.raises(es.EvaluationFailed, match="RuntimeError: no convergence") as e:
        run(density, particles=start)
    samples = e.value.samples
    assert 0 < samples.num_steps < 60
    good = from_energy_forces(spring, temperature=KELVIN)
    again = es.run(
        jr.key(0), es.MALA(0.1), good, initial_state=samples.state,
        num_steps=200 - samples.num_steps,
    )  # fmt: skip
    whole = run(good, particles=start)
    assert jnp.allclose(again.particles, whole.particles)


def test_failures_may_be_rejected_and_are_counted():
    """With no density beyond 1, what is left is the spring's density cut there."""

    def cut(points):
        far = np.abs(points[:, 0]) > 1
        if len(points) == 1 and far[0]:
            raise RuntimeError("too far")
        energies, forces = spring(points)
        if far.any():
            energies[far] = np.nan
            if far.sum() % 2:
                raise RuntimeError("one of them is too far")
        return energies, forces

    density = from_energy_forces(cut, temperature=KELVIN, on_failure="reject")
    assert density(jnp.array([2.0])) == -jnp.inf
    samples = es.run(
        jr.key(0), es.MALA(0.5), density, jnp.zeros((500, 1)), num_steps=50
    )
    assert jnp.max(jnp.abs(samples.particles)) < 1
    assert density.num_failed > 10


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: (np.full(len(x), np.nan), x), "not finite at 3 of 3"),
        (lambda x: (np.zeros(len(x)), np.inf * np.ones_like(x)), "not finite"),
        (lambda x: (0.0, x), "energies of shape"),
        (lambda x: (np.zeros(len(x)), x[:1]), "forces of shape"),
        (lambda x: None, "the function raised TypeError|cannot unpack"),
    ],
)
def test_what_is_no_energy_and_force_is_told_of(function, said):
    density = from_energy_forces(function, temperature=300.0)
    with pytest.raises(ValueError, match=said):
        es.run(jr.key(0), es.MALA(0.1), density, jnp.ones((3, 2)), num_steps=5)


@pytest.mark.usefixtures("single_precision")
@pytest.mark.parametrize("constant", [0.0, -6_712_345.25, 3e6])
def test_a_large_constant_does_no_harm(constant):
    def spring(points):
        return constant + 4 * np.sum(points**2, axis=1), -8 * points

    points = np.linspace(-0.1, 0.1, 12).reshape(4, 3).astype(np.float32)
    exact, _ = spring(points.astype(float))
    density = from_energy_forces(spring, temperature=300.0)
    assert np.allclose(density.energies(points), exact, rtol=1e-12)
    gaps = np.diff([float(density(point)) for point in jnp.asarray(points)])
    assert np.allclose(gaps, -np.diff(exact) / (BOLTZMANN * 300), atol=0.01)


@pytest.mark.usefixtures("single_precision")
def test_the_energy_of_a_clash_is_no_constant():
    density = from_energy_forces(
        lambda points: (points[:, 0] ** -12, 12 * points**-13), temperature=300.0
    )
    clash, relaxed = (jnp.array([distance]) for distance in (0.2, 3.0))
    assert float(density(clash)) < -1e9
    assert np.isclose(float(density(relaxed)), -(3.0**-12) / (BOLTZMANN * 300))


# ------------------------------------------------------ arrays of other packages


def jax_spring(points):
    assert isinstance(points, jax.Array)
    return jnp.sum(points**2, axis=1), -2 * points


def torch_spring(points):
    """Forces by Torch's own gradient, in single precision as many models are."""
    import torch

    assert points.dtype == torch.float64
    x = points.float().requires_grad_()
    energies = (x**2).sum(dim=1)
    (slopes,) = torch.autograd.grad(energies.sum(), x)
    return energies, -slopes


@pytest.mark.parametrize("arrays", ["jax", "torch"])
def test_functions_of_other_arrays_give_the_same_in_one_call_a_step(arrays):
    if arrays == "torch":
        pytest.importorskip("torch", reason="needs Torch")
    function = {"jax": jax_spring, "torch": torch_spring}[arrays]
    density = from_energy_forces(function, temperature=KELVIN, arrays=arrays)
    exact = from_energy_forces(spring, temperature=KELVIN)
    start = jr.normal(jr.key(0), (7, 2))
    value = jax.vmap(jax.value_and_grad(density))
    for found, expected in zip(
        value(start), jax.vmap(jax.value_and_grad(exact))(start), strict=True
    ):
        assert np.allclose(found, expected, rtol=1e-5)
    assert (density.num_calls, density.num_evaluations) == (1, 7)
    es.run(jr.key(1), es.MALA(0.1), density, start, num_steps=20, check=False)
    assert density.num_evaluations == 7 * density.num_calls
    assert 21 <= density.num_calls <= 24  # a step each, and the start


def test_a_failed_batch_counts_each_call():
    def one_by_one(points):
        if len(points) > 1:
            raise RuntimeError("too many")
        return spring(points)

    density = from_energy_forces(one_by_one, temperature=KELVIN, on_failure="reject")
    jax.vmap(density)(jnp.ones((3, 2)))
    assert (density.num_calls, density.num_evaluations) == (4, 3)
