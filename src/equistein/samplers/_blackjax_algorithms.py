"""The moves of an algorithm of BlackJAX."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

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


def name_of(algorithm: Any) -> str:
    """Return BlackJAX's name of an algorithm that moves independent chains."""
    try:
        import blackjax
    except ImportError as error:
        raise ImportError(
            "from_blackjax needs BlackJAX: pip install 'equistein[bayes]'."
        ) from error

    name = next((n for n, one in vars(blackjax).items() if one is algorithm), None)
    if name in KINDS:
        return name
    raise ValueError(
        f"from_blackjax needs one of {', '.join(f'blackjax.{n}' for n in KINDS)}, "
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
        self.evaluations_per_step()  # refuses what it cannot count

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
        if self.kind.is_dynamic:
            return lambda point, density: init(point, density, key)
        return init

    def kernel(self) -> Callable[..., tuple[Any, Any]]:
        """Return BlackJAX's function for a move."""
        import blackjax

        some = lambda names: {k: v for k, v in self.options.items() if k in names}
        kernel = getattr(blackjax, self.name).build_kernel(**some(self.kind.building))
        running = some(self.kind.running)
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
