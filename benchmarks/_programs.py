"""How large the programs are that XLA compiles: of a run, an epoch, and a generator."""

from typing import Any

import equinox as eqx
import jax.random as jr

import equistein as es
from benchmarks._by_hand import LOOPS, start, two_modes
from benchmarks._epochs import cases, molecules
from benchmarks._first_calls import sampler_named
from benchmarks._timing import compiled

_NUM, _NUM_STEPS = 256, 100


def programs() -> None:
    """Print instructions as they were traced and optimized, and seconds of compiling.

    The programs by hand are those of the other benchmarks; they record, check and adapt
    nothing.
    """
    print("Instructions of HLO, traced and optimized, and seconds to compile")
    heads = f"{'traced':>9}{'optimized':>11}{'s':>7}"
    print(f"{'':<36}{heads}{heads}, by hand")
    for name, loop in LOOPS.items():
        sampler, x = sampler_named(name, _NUM_STEPS), start(_NUM)

        def ours(key: Any, x: Any, sampler: Any = sampler) -> Any:
            state = sampler.init(x, two_modes)
            return es.samplers.advance(key, sampler, two_modes, state, _NUM_STEPS)

        by_hand = lambda key, x, loop=loop: loop(key, x, _NUM_STEPS)
        _print(name, _sizes(ours, jr.key(0), x), _sizes(by_hand, jr.key(0), x))
    for name, case in cases().items():
        (trainer, state), (by_hand, arguments) = case.ours(), case.loop()
        sizes = _sizes(trainer.epoch, state, case.data)
        _print(f"epoch, {name}", sizes, _sizes(by_hand, *arguments))
    diffusion, case = es.diffusion, molecules()
    lengths, kernel = diffusion.StepSizes(1e-3, 1e-4, 100.0), es.kernels.RBF(1.0)
    for steps in (
        diffusion.DiffusionSteps(lengths, _NUM_STEPS, kernel),
        diffusion.HeunSteps(_NUM_STEPS, 100.0),
    ):
        found = _sizes(steps.run, jr.key(0), case.energy, case.data)
        _print(f"reverse diffusion, {type(steps).__name__}", found)


def _sizes(function: Any, *arguments: Any) -> tuple[int, int, float]:
    """Return the instructions, traced and optimized, and the seconds of compiling."""
    arrays, static = eqx.partition(arguments, eqx.is_array)
    call = lambda arrays: function(*eqx.combine(arrays, static))
    program = compiled(lambda arrays: eqx.filter(call(arrays), eqx.is_array), arrays)
    return program.traced, program.optimized, program.compiling


def _print(name: str, *programs: tuple[int, int, float]) -> None:
    cells = "".join(f"{a:>9}{b:>11}{took:>7.2f}" for a, b, took in programs)
    print(f"{name:<36}{cells}", flush=True)
