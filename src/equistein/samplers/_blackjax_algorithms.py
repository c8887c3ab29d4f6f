"""The algorithms of BlackJAX that move independent chains, and their warm-ups."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int

from equistein._types import Key, Scalar
from equistein.samplers._metropolis import Walker

Density: TypeAlias = Callable[[Float[Array, " coordinate"]], Scalar]
_INTEGRATORS = {  # and their evaluations of the score for one step
    "velocity_verlet": 1, "mclachlan": 2, "yoshida": 3, "omelyan": 5,
}  # fmt: skip
_DRAWS = 4_096  # of a random number of steps, for its mean


class Kind(NamedTuple):
    """How BlackJAX's functions for one algorithm are called."""

    building: tuple[str, ...]
    running: tuple[str, ...]
    needed: str | None = None
    is_dynamic: bool = False
    is_microcanonical: bool = False


_BUILT = ("integrator", "divergence_threshold")
_COUNT = ("integration_steps_params",)
KINDS = {  # by name in BlackJAX; an algorithm with a state of its own cannot be here
    "hmc": Kind(
        (*_BUILT, "build_proposal"), ("num_integration_steps",), "num_integration_steps"
    ),
    "mhmc": Kind(_BUILT, ("num_integration_steps",), "num_integration_steps"),
    "nuts": Kind(_BUILT, ("max_num_doublings",)),
    "dhmc": Kind((*_BUILT, "integration_steps_fn"), _COUNT, is_dynamic=True),
    "dmhmc": Kind((*_BUILT, "integration_steps_fn"), _COUNT, is_dynamic=True),
    "adjusted_mclmc": Kind(
        _BUILT, (*_COUNT, "L_proposal_factor"), is_microcanonical=True
    ),
    "adjusted_mclmc_dynamic": Kind(
        (*_BUILT, "integration_steps_fn"), (*_COUNT, "L_proposal_factor"),
        is_dynamic=True, is_microcanonical=True,
    ),
}  # fmt: skip
_REFUSED = {
    "mclmc sgld sghmc sgnht csgld": "its steps are not accepted or rejected, so they "
    "leave another density invariant than the one given; adjusted_mclmc is exact",
    "ghmc": "it keeps its momentum from step to step, which tempering and resampling "
    "would tear from its point",
    "mala barker": "it takes one step a move, as es.MALA does",
    "svgd": "its particles interact; it is es.SVGD",
    "tempered_smc adaptive_tempered_smc inner_kernel_tuning partial_posteriors_smc "
    "persistent_sampling_smc adaptive_persistent_sampling_smc pretuning nss nsswig":
        "it moves weighted particles, not chains; es.AnnealedSMC does, and takes chains",
    "pathfinder multipathfinder meanfield_vi fullrank_vi schrodinger_follmer":
        "it fits an approximation and does not leave the density invariant",
}  # fmt: skip


class Algorithm(eqx.Module):
    """An algorithm of BlackJAX, by name, with its options."""

    name: str
    options: dict[str, Any]

    def __init__(self, algorithm: Any, options: dict[str, Any]):
        self.name = _name_of(algorithm)
        kind = KINDS[self.name]
        known = (*kind.building, *kind.running)
        unknown = sorted(options.keys() - set(known))
        if unknown:
            raise ValueError(
                f"from_blackjax(blackjax.{self.name}, ...) has the options "
                f"{', '.join(known)}, but got {', '.join(unknown)}."
            )
        if kind.needed is not None and kind.needed not in options:
            raise ValueError(
                f"from_blackjax(blackjax.{self.name}, ...) needs `{kind.needed}`, such "
                f"as {kind.needed}=10."
            )
        defaults: dict[str, Any] = {}
        if kind.is_microcanonical:
            defaults = {"integration_steps_params": (2,)}
        if kind.is_microcanonical and kind.is_dynamic:
            defaults["integration_steps_fn"] = around
        self.options = defaults | options
        self._evaluations_per_step()  # refuses what it cannot count

    @property
    def kind(self) -> Kind:
        return KINDS[self.name]

    def transition(
        self,
        key: Key,
        density: Density,
        walker: Walker,
        step_size: Scalar,
        inverse_mass_matrix: Array,
    ) -> tuple[Walker, Scalar, Int[Array, ""]]:
        """Move a walker in coordinates once.

        It holds the values of this density at its point: nothing is evaluated there.

        Returns:
            The new walker, the rate of acceptance, and the evaluations of the score.
        """
        start_key, key = jr.split(key)
        dtype, density = walker.value.dtype, _widened(density, walker.value.dtype)
        start, step_size, mass = _wide((walker, step_size, inverse_mass_matrix))
        with _lenient():
            # What `init` evaluates is replaced, so the compiler leaves it out.
            state = self._init(start_key)(start.point, density)._replace(
                logdensity=start.value, logdensity_grad=start.score
            )
            state, info = self._kernel()(
                key, state, density, step_size=step_size, inverse_mass_matrix=mass
            )
            rate, spent = jnp.asarray(info.acceptance_rate), self._evaluations(info)
        end = Walker(state.position, state.logdensity, state.logdensity_grad)
        rate = jnp.where(jnp.isfinite(rate), rate, 0)
        end, rate = jax.tree.map(lambda x: x.astype(dtype), (end, rate))
        return end, rate, spent

    def warm_up(
        self,
        key: Key,
        density: Density,
        point: Float[Array, " coordinate"],
        step_size: Scalar,
        inverse_mass_matrix: Array,
        num_steps: int,
        acceptance: float,
    ) -> tuple[Scalar, Array, Int[Array, ""]]:
        """Run BlackJAX's own warm-up of one chain, from a point in coordinates.

        Returns:
            The step size, the inverse mass matrix, and the evaluations of the score.
        """
        dtype, density = point.dtype, _widened(density, point.dtype)
        start = _wide((point, step_size, inverse_mass_matrix))
        run = self._microcanonical if self.kind.is_microcanonical else self._windows
        with _lenient():
            step_size, mass, spent = run(key, density, *start, num_steps, acceptance)
        return step_size.astype(dtype), mass.astype(dtype), spent

    def _windows(self, key, density, point, step_size, mass, num_steps, acceptance):
        """Run `blackjax.window_adaptation`, Stan's warm-up."""
        import blackjax

        init_key, key = jr.split(key)
        parts = _Parts(self._init(init_key), lambda: self._kernel())
        adaptation: Any = blackjax.window_adaptation(
            parts, density, is_mass_matrix_diagonal=mass.ndim == 1,
            initial_inverse_mass_matrix=mass, initial_step_size=step_size,
            target_acceptance_rate=acceptance,
            adaptation_info_fn=lambda state, info, adapted: self._evaluations(info),
        )  # fmt: skip
        found, spent = adaptation.run(key, point, num_steps)
        found = found.parameters
        return found["step_size"], found["inverse_mass_matrix"], jnp.sum(spent) + 1

    def _microcanonical(self, key, density, point, step_size, mass, num, acceptance):
        """Run `blackjax.adjusted_mclmc_find_L_and_step_size`, a third for each part.

        It takes as many integration steps a move as the moves to come.
        """
        import blackjax
        from blackjax.adaptation.mclmc_adaptation import MCLMCAdaptationState

        init_key, count_key, key = jr.split(key, 3)
        count = self._mean_number_of_steps(count_key).astype(point.dtype)
        step = self._kernel()

        def kernel(*, rng_key, state, logdensity_fn, integration_steps_params, **found):
            del integration_steps_params
            return step(rng_key, state, logdensity_fn, **found)

        found: Any
        _, found, steps = blackjax.adjusted_mclmc_find_L_and_step_size(
            kernel, density, num, self._init(init_key)(point, density), key, acceptance,
            frac_tune1=1 / 3, frac_tune2=1 / 3, target_num_integration_steps=count,
            params=MCLMCAdaptationState(count * step_size, step_size, mass),
        )  # fmt: skip
        spent = self._evaluations_per_step() * jnp.asarray(steps).astype(int) + 1
        return found.step_size, found.inverse_mass_matrix, spent

    def _init(self, key: Key) -> Callable[[Array, Density], Any]:
        import blackjax

        init = getattr(blackjax, self.name).init
        if self.kind.is_dynamic:
            return lambda point, density: init(point, density, key)
        return init

    def _kernel(self) -> Callable[..., tuple[Any, Any]]:
        import blackjax

        some = lambda names: {k: v for k, v in self.options.items() if k in names}
        kernel = getattr(blackjax, self.name).build_kernel(**some(self.kind.building))
        running = some(self.kind.running)
        return lambda key, state, density, step_size, inverse_mass_matrix: kernel(
            key, state, density, step_size=step_size,
            inverse_mass_matrix=inverse_mass_matrix, **running,
        )  # fmt: skip

    def _evaluations(self, info: Any) -> Int[Array, ""]:
        steps = jnp.asarray(info.num_integration_steps).astype(int)
        return self._evaluations_per_step() * steps

    def _evaluations_per_step(self) -> int:
        from blackjax.mcmc import integrators

        prefix = "isokinetic_" if self.kind.is_microcanonical else ""
        default = "mclachlan" if self.kind.is_microcanonical else "velocity_verlet"
        chosen = self.options.get("integrator", getattr(integrators, prefix + default))
        for name, number in _INTEGRATORS.items():
            if chosen is getattr(integrators, prefix + name):
                return number
        names = ", ".join(prefix + name for name in _INTEGRATORS)
        raise ValueError(
            f"from_blackjax(blackjax.{self.name}, ...) needs `integrator`, of "
            f"blackjax.mcmc.integrators one of {names}, but got {chosen!r}."
        )

    def _mean_number_of_steps(self, key: Key) -> Scalar:
        counts = self.options["integration_steps_params"]
        if not self.kind.is_dynamic:
            return jnp.asarray(counts[0], float)
        draw = lambda key: self.options["integration_steps_fn"](key, *counts)
        return jnp.mean(jax.vmap(draw)(jr.split(key, _DRAWS)).astype(float))


class _Parts(NamedTuple):
    """What BlackJAX's warm-up takes of an algorithm."""

    init: Callable[..., Any]
    build_kernel: Callable[[], Callable[..., tuple[Any, Any]]]


def around(key: Key, mean: float) -> Int[Array, ""]:
    """Draw a number of steps, at least 1, whose mean is `mean`, as BlackJAX advises."""
    from blackjax.mcmc.adjusted_mclmc import rescale

    return jnp.round(jr.uniform(key) * rescale(mean) + 0.5).astype(int)


def _wide(tree: Any) -> Any:
    """Return arrays in JAX's default precision, the only one that BlackJAX has."""
    return jax.tree.map(lambda x: x.astype(jnp.zeros(()).dtype), tree)


def _widened(density: Density, dtype: Any) -> Density:
    """Return a density of points in another precision as one in the default."""
    return lambda z: _wide(density(z.astype(dtype)))


@contextmanager
def _lenient() -> Iterator[None]:
    """Allow BlackJAX's code what it needs of JAX."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def _name_of(algorithm: Any) -> str:
    """Return the name that BlackJAX has for an algorithm.

    Raises:
        ValueError: If it is none that moves independent chains, with the reason.
    """
    import blackjax

    name = next((n for n, one in vars(blackjax).items() if one is algorithm), None)
    if name in KINDS:
        return name
    wanted = f"from_blackjax needs one of {', '.join(f'blackjax.{n}' for n in KINDS)}"
    if name is None:
        raise ValueError(
            f"{wanted}, itself and not what it returns for a density, but got "
            f"{algorithm!r}."
        )
    for names, reason in _REFUSED.items():
        if name in names.split():
            raise ValueError(f"{wanted}, but got blackjax.{name}: {reason}.")
    raise ValueError(
        f"{wanted}, but got blackjax.{name}: it is not moved by a step size and an "
        "inverse mass matrix alone."
    )
