"""Effective draws a second, beside BlackJAX and NumPyro."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import equistein as es
from benchmarks._timing import Contestant, interleaved, is_installed, REPEATS

_DIM = 10
_CHAINS = 16
_DRAWS = 1_000
_WIDE = 5.0  # the spread of the start, where sequential Monte Carlo begins
_TEMPERATURES = 20  # of sequential Monte Carlo, at most
_STEP_SIZE = 0.3  # of its HMC, in units of the scales
_STEPS = 5  # leapfrog steps of HMC: 8 of its step bring a whitened normal back


def draws() -> None:
    """Print seconds of a run, and effective draws of the worst number a second."""
    if not all(
        is_installed(package, name)
        for package, name in (("blackjax", "BlackJAX"), ("arviz_stats", "ArviZ"))
    ):
        return
    import blackjax

    runs: dict[str, Callable[[jax.Array], Any]] = {}
    more: dict[str, dict[str, Any]] = {
        "hmc": {"num_integration_steps": _STEPS}, "nuts": {},
    }  # fmt: skip
    for name, options in more.items():
        family = getattr(blackjax, name)
        ours = es.from_blackjax(family, num_adapt=_DRAWS // 2, **options)
        runs[f"equistein, {name.upper()}"] = _ours(ours)
        runs[f"BlackJAX, {name.upper()}"] = _blackjax(family, options)
    runs["equistein, es.HMC()"] = _ours(es.HMC(num_adapt=_DRAWS // 2))
    runs["equistein, MALA"] = _ours(es.MALA(0.1, num_adapt=_DRAWS // 2))
    runs["equistein, SMC of HMC"] = _our_populations()
    runs["BlackJAX, SMC of HMC"] = _blackjax_populations()
    if is_installed("numpyro", "NumPyro"):
        runs["NumPyro, NUTS"] = _numpyro()
    print(f"{_CHAINS} chains of {_DRAWS} draws, as many by half before them; a normal")
    print(
        f"density in {_DIM} dimensions, scales 1 to 10; median of {REPEATS} runs. SMC:"
    )
    print(f"{_CHAINS} populations of {_DRAWS}, each step five moves")
    print(f"{'':<22}{'first, s':>10}{'later, s':>10}{'effective':>11}{'a second':>10}")
    found: dict[str, Any] = {}

    def keep(name: str, run: Callable[[jax.Array], Any]) -> Contestant:
        def once() -> None:
            found[name] = np.asarray(run(jr.key(0)))

        return Contestant(once)

    times = interleaved({name: keep(name, run) for name, run in runs.items()})
    for name, time in times.items():
        size = _effective(found[name])
        print(
            f"{name:<22}{time.first:>10.2f}{time.median:>10.3f}{size:>11.0f}"
            f"{size / time.median:>10.0f}",
            flush=True,
        )


def _density(x: Any) -> Any:
    return -jnp.sum((x / jnp.geomspace(1.0, 10.0, _DIM)) ** 2) / 2


def _effective(draws: np.ndarray) -> float:
    """Return the least bulk effective size of draws, `(chain, draw, dim)`."""
    from arviz_stats.base.array import array_stats

    sizes = [
        array_stats.ess(draws[..., i], chain_axis=0, draw_axis=1) for i in range(_DIM)
    ]
    return float(np.min(sizes))


def _start() -> Any:
    return _WIDE * jr.normal(jr.key(1), (_CHAINS, _DIM))


def _ours(sampler: es.samplers.AbstractSampler) -> Callable:
    def run(key):
        with es.samplers.suppress_warnings():
            samples = es.run(
                key, sampler, _density, _start(), num_steps=3 * _DRAWS // 2,
                record_every=1, keep=_CHAINS,
            )  # fmt: skip
        return np.swapaxes(samples.history["particles"][-_DRAWS:], 0, 1)

    return run


def _blackjax(family: Any, options: dict[str, Any]) -> Callable:
    import blackjax

    warm_up: Any = blackjax.window_adaptation(family, _density, **options)

    @jax.jit
    def run(key):
        def chain(key, point):
            warm_key, key = jr.split(key)
            (state, tuned), _ = warm_up.run(warm_key, point, num_steps=_DRAWS // 2)
            algorithm: Any = family(_density, **tuned)

            def move(state, key):
                state, _ = algorithm.step(key, state)
                return state, state.position

            return jax.lax.scan(move, state, jr.split(key, _DRAWS))[1]

        return jax.vmap(chain)(jr.split(key, _CHAINS), _start())

    return run


def _our_populations() -> Callable:
    wide = es.samplers.Normal(jnp.zeros(_DIM), _WIDE)
    smc = es.AnnealedSMC(
        es.HMC(num_leapfrogs=_STEPS), reference=wide, num_runs=_CHAINS, num_moves=5
    )

    def run(key):
        start = jnp.zeros((_CHAINS * _DRAWS, _DIM))
        with es.samplers.suppress_warnings():
            samples = es.run(key, smc, _density, start, num_steps=_TEMPERATURES)
        assert samples.summary["inverse_temperatures"].min() == 1
        return samples.particles.reshape(_CHAINS, _DRAWS, _DIM)

    return run


def _blackjax_populations() -> Callable:
    """Return adaptive tempering, whose moves know the scales as ours learn them."""
    import blackjax
    from blackjax.smc.resampling import systematic

    wide = lambda x: -jnp.sum((x / _WIDE) ** 2) / 2
    tuned = {
        "step_size": jnp.array([_STEP_SIZE]),
        "num_integration_steps": jnp.array([_STEPS]),
        "inverse_mass_matrix": jnp.geomspace(1.0, 10.0, _DIM)[None] ** 2,
    }  # fmt: skip
    algorithm: Any = blackjax.adaptive_tempered_smc(
        wide, lambda x: _density(x) - wide(x), blackjax.hmc.build_kernel(),
        blackjax.hmc.init, tuned, systematic, 0.95, num_mcmc_steps=5,
    )  # fmt: skip

    @jax.jit
    def run(key):
        def population(key):
            start_key, key = jr.split(key)
            start = _WIDE * jr.normal(start_key, (_DRAWS, _DIM))

            def step(carry):
                index, state = carry
                return index + 1, algorithm.step(jr.fold_in(key, index), state)[0]

            unfinished = lambda carry: carry[1].tempering_param < 1
            state = jax.lax.while_loop(unfinished, step, (0, algorithm.init(start)))[1]
            return state.particles

        return jax.lax.map(population, jr.split(key, _CHAINS))

    return run


def _numpyro() -> Callable:
    from numpyro.infer import MCMC, NUTS

    chains = MCMC(
        NUTS(potential_fn=lambda x: -_density(x)), num_warmup=_DRAWS // 2,
        num_samples=_DRAWS, num_chains=_CHAINS, chain_method="vectorized",
        progress_bar=False,
    )  # fmt: skip

    def run(key):
        chains.run(key, init_params=_start())
        return chains.get_samples(group_by_chain=True)

    return run
