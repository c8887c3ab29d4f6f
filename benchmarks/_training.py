"""SVGD inside training, beside PyTorch: the negatives of `jem-c4`."""

import dataclasses
import importlib

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array

from benchmarks._timing import Contestant, is_installed, print_times, REPEATS
from equistein.energies import JointEnergy
from equistein.groups import Cyclic
from equistein.kernels import AbstractKernel, Equivariant, RBF
from equistein.networks import MLP, Symmetrized
from equistein.samplers import advance, SVGD

_WIDTHS = (32, 64, 64, 64, 32)
_BANDWIDTH = 0.1
_STEP = 0.9
_NUM = 32
_NUM_STEPS = 10_000
_TORCH_STEPS = 300


def training() -> None:
    """Print the microseconds of a step of the sampler that training calls.

    32 particles, with 32 data points as further sources, in the energy of the paper's
    MLP of two classes.
    """
    particles = 7 * jr.normal(jr.key(0), (_NUM, 2))
    data = 7 * jr.normal(jr.key(1), (_NUM, 2))
    network = MLP(2, widths=_WIDTHS, out_size=2, activation=jax.nn.relu, key=jr.key(2))
    plain = JointEnergy(network)
    symmetric = JointEnergy(Symmetrized(network, Cyclic(4)))
    equivariant = Equivariant(RBF(_BANDWIDTH), Cyclic(4))
    contestants = {
        "equistein, SVGD": _ours(plain, RBF(_BANDWIDTH), particles, data),
        "equistein, E-SVGD C4": _ours(symmetric, equivariant, particles, data),
    }
    print("\nA step of SVGD in training: 32 particles, 32 data points, MLP")
    print(f"2-32-64-64-64-32-2; median of {REPEATS} interleaved runs")
    if is_installed("torch", "PyTorch"):
        contestants |= _torch_loops(np.array(particles), np.array(data))
    print_times(contestants, "equistein, SVGD", "us")


def _ours(
    energy: JointEnergy, kernel: AbstractKernel, particles: Array, data: Array
) -> Contestant:
    sampler = SVGD(kernel, optax.sgd(_STEP))

    @eqx.filter_jit
    def negatives(energy, particles, data):
        flow = dataclasses.replace(sampler, repellers=data)
        state = flow.init(particles, energy.log_density)
        state = advance(jr.key(0), flow, energy.log_density, state, _NUM_STEPS)
        return state.particles

    return Contestant(
        lambda: negatives(energy, particles, data).block_until_ready(), _NUM_STEPS
    )


def _torch_loops(particles: np.ndarray, data: np.ndarray) -> dict[str, Contestant]:
    """Return the same update in PyTorch: as it is usually written, and by hand."""
    torch = importlib.import_module("torch")
    sizes = (2, *_WIDTHS)
    layers = []
    for before, after in zip(sizes[:-1], sizes[1:], strict=True):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    network = torch.nn.Sequential(*layers, torch.nn.Linear(sizes[-1], 2))
    fixed = torch.tensor(data)

    def scores(sources):
        sources = sources.detach().requires_grad_(True)
        log_density = torch.logsumexp(network(sources), dim=1).sum()
        return torch.autograd.grad(log_density, sources)[0]

    def kernel(x, y):
        squared = ((x[:, None] - y[None]) ** 2).sum(-1)
        return torch.exp(-squared / (2 * _BANDWIDTH**2))

    def plain():
        x = torch.tensor(particles)
        optimizer = torch.optim.SGD([x], lr=_STEP)
        for _ in range(_TORCH_STEPS):
            sources = torch.cat([x, fixed])
            score = scores(sources)
            targets = x.detach().requires_grad_(True)
            gram = kernel(targets, sources)
            repulsion = -torch.autograd.grad(gram.sum(), targets)[0]
            x.grad = -(gram.detach() @ score + repulsion) / len(sources)
            optimizer.step()

    def by_hand():
        x = torch.tensor(particles)
        for _ in range(_TORCH_STEPS):
            sources = torch.cat([x, fixed])
            score = scores(sources)
            gram = kernel(x, sources)
            pushed = gram.sum(1, keepdim=True) * x - gram @ sources
            force = gram @ score + pushed / _BANDWIDTH**2
            x = x + _STEP * force / len(sources)

    return {
        "PyTorch, autograd for both terms": Contestant(plain, _TORCH_STEPS),
        "PyTorch, repulsion by hand": Contestant(by_hand, _TORCH_STEPS),
    }
