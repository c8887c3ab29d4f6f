"""The moves of an algorithm of BlackJAX."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int

from equistein._types import Key, Scalar

Density: TypeAlias = Callable[[Float[Array, " coordinate"]], Scalar]
_INTEGRATORS = {  # and their evaluations of the score for one step
    "velocity_verlet": 1, "mclachlan": 2, "yoshida": 3, "omelyan": 5,
}  # fmt: skip


NAMES = (  # in BlackJAX; an algorithm with a state of its own cannot be here
    "hmc", "mhmc", "nuts", "dhmc", "dmhmc", "adjusted_mclmc", "adjusted_mclmc_dynamic",
)  # fmt: skip
_DYNAMIC = ("dhmc", "dmhmc", "adjusted_mclmc_dynamic")  # random numbers of steps
_PASSED = ("rng_key", "state", "logdensity_fn", "step_size", "inverse_mass_matrix")


def name_of(algorithm: Any) -> str:
    """Return BlackJAX's name of an algorithm that moves independent chains."""
    try:
        import blackjax
    except ImportError as error:
        raise ImportError(
            "from_blackjax needs BlackJAX: pip install 'equistein[bayes]'."
        ) from error

    name = next((n for n, one in vars(blackjax).items() if one is algorithm), None)
    if name in NAMES:
        return name
    raise ValueError(
        f"from_blackjax needs one of {', '.join(f'blackjax.{n}' for n in NAMES)}, "
        "itself and not what it returns for a density, but got "
        f"{f'blackjax.{name}' if name else repr(algorithm)}: of others the moves are "
        "not exact, or a step size and an inverse mass matrix do not tell all of them. "
        "For MALA, SVGD and sequential Monte Carlo take those of `equistein`."
    )


class Walker(eqx.Module):
    """A point in coordinates, with its log density and score."""

    point: Float[Array, " coordinate"]
    value: Scalar
    score: Float[Array, " coordinate"]


class Algorithm(eqx.Module):
    """An algorithm of BlackJAX, by name, with its options."""

    name: str
    options: dict[str, Any]

    def __init__(self, algorithm: Any, options: dict[str, Any]):
        self.name = name_of(algorithm)
        building, running = self._parameters()
        unknown = sorted(options.keys() - building.keys() - running.keys())
        if unknown:
            raise ValueError(
                f"from_blackjax(blackjax.{self.name}, ...) has the options "
                f"{', '.join([*building, *running])}, but got {', '.join(unknown)}."
            )
        for name, parameter in running.items():
            if parameter.default is parameter.empty and name not in options:
                raise ValueError(
                    f"from_blackjax(blackjax.{self.name}, ...) needs `{name}`, such as "
                    f"{name}=10."
                )
        defaults: dict[str, Any] = {}
        if self.is_microcanonical:
            defaults["integration_steps_params"] = (2,)
            if self.is_dynamic:
                defaults["integration_steps_fn"] = around
        self.options = defaults | options
        self.evaluations_per_step()  # refuses what it cannot count

    @property
    def is_dynamic(self) -> bool:
        return self.name in _DYNAMIC

    @property
    def is_microcanonical(self) -> bool:
        return self.name.startswith("adjusted_mclmc")

    def _parameters(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the options of BlackJAX's `build_kernel`, and those of a move."""
        import blackjax

        build = getattr(blackjax, self.name).build_kernel
        building = dict(inspect.signature(build).parameters)
        building.pop("next_random_arg_fn", None)  # of a state that is made anew
        running = dict(inspect.signature(build()).parameters)
        return building, {k: v for k, v in running.items() if k not in _PASSED}

    def transition(
        self,
        key: Key,
        density: Density,
        walker: Walker,
        step_size: Scalar,
        inverse_mass_matrix: Array,
    ) -> tuple[Walker, Scalar, Int[Array, ""], Bool[Array, ""]]:
        """Move a walker in coordinates once.

        It holds the values of this density at its point: nothing is evaluated there.

        Returns:
            The new walker, the rate of acceptance, the evaluations of the score, and
            whether the density was a number where the move went.
        """
        start_key, key = jr.split(key)
        dtype, density = walker.value.dtype, widened(density, walker.value.dtype)
        start, step_size, mass = wide((walker, step_size, inverse_mass_matrix))
        with lenient():
            # What `init` evaluates is replaced, so the compiler leaves it out.
            state = self.init(start_key)(start.point, density)._replace(
                logdensity=start.value, logdensity_grad=start.score
            )
            state, info = self.kernel()(
                key, state, density, step_size=step_size, inverse_mass_matrix=mass
            )
            rate, spent = jnp.asarray(info.acceptance_rate), self.evaluations(info)
            defined = self.is_defined(info)
        end = Walker(state.position, state.logdensity, state.logdensity_grad)
        rate = jnp.where(jnp.isfinite(rate), rate, 0)
        end, rate = jax.tree.map(lambda x: x.astype(dtype), (end, rate))
        return end, rate, spent, defined

    def init(self, key: Key) -> Callable[[Array, Density], Any]:
        """Return BlackJAX's function for the state at a point."""
        import blackjax

        init = getattr(blackjax, self.name).init
        if self.is_dynamic:
            return lambda point, density: init(point, density, key)
        return init

    def kernel(self) -> Callable[..., tuple[Any, Any]]:
        """Return BlackJAX's function for a move."""
        import blackjax

        parts = self._parameters()
        building, running = (
            {k: v for k, v in self.options.items() if k in part} for part in parts
        )
        kernel = getattr(blackjax, self.name).build_kernel(**building)
        return lambda key, state, density, step_size, inverse_mass_matrix: kernel(
            key, state, density, step_size=step_size,
            inverse_mass_matrix=inverse_mass_matrix, **running,
        )  # fmt: skip

    def evaluations(self, info: Any) -> Int[Array, ""]:
        """Return those of the score that a move took."""
        steps = jnp.asarray(info.num_integration_steps).astype(int)
        return self.evaluations_per_step() * steps

    def is_defined(self, info: Any) -> Bool[Array, ""]:
        """Return whether the density was a number at the ends of a move's path.

        What was NaN in between alone is not reported, nor what `mhmc` did not choose.
        """
        ends = (
            [info.proposal]
            if self.name != "nuts"
            else [info.trajectory_leftmost_state, info.trajectory_rightmost_state]
        )
        values = jnp.stack([jnp.asarray(end.logdensity) for end in ends])
        return ~jnp.any(jnp.isnan(values))

    def evaluations_per_step(self) -> int:
        """Return those of the score for a step of the integrator."""
        from blackjax.mcmc import integrators

        prefix = "isokinetic_" if self.is_microcanonical else ""
        default = "mclachlan" if self.is_microcanonical else "velocity_verlet"
        chosen = self.options.get("integrator", getattr(integrators, prefix + default))
        for name, number in _INTEGRATORS.items():
            if chosen is getattr(integrators, prefix + name):
                return number
        names = ", ".join(prefix + name for name in _INTEGRATORS)
        raise ValueError(
            f"from_blackjax(blackjax.{self.name}, ...) needs `integrator`, of "
            f"blackjax.mcmc.integrators one of {names}, but got {chosen!r}."
        )


def around(key: Key, mean: float | int | Scalar) -> Int[Array, ""]:
    """Draw a number of steps, at least 1, whose mean is `mean`, as BlackJAX advises."""
    from blackjax.mcmc.adjusted_mclmc import rescale

    return jnp.round(jr.uniform(key) * rescale(mean) + 0.5).astype(int)


def wide(tree: Any) -> Any:
    """Return arrays in JAX's default precision, the only one that BlackJAX has."""
    return jax.tree.map(lambda x: x.astype(jnp.zeros(()).dtype), tree)


def widened(density: Density, dtype: Any) -> Density:
    """Return a density of points in another precision as one in the default."""
    return lambda z: wide(density(z.astype(dtype)))


@contextmanager
def lenient() -> Iterator[None]:
    """Allow BlackJAX's code what it needs of JAX."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield
