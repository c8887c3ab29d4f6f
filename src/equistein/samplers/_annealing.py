"""Schedules of the inverse temperature that multiplies the score."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp

from equistein._types import Scalar


class Geometric(eqx.Module):
    r"""From hot to the target: $\beta(t) = \beta_0^{1 - t/T}$, then 1.

    Equal numbers of steps for equal factors of the temperature. Near the modes
    $\log p$ has variance $k/2\beta^2$ under $p^\beta$, so this moves through the
    path at constant speed in the Fisher metric, $\sqrt{\mathrm{Var}}\, d\beta$.

    Args:
        num_steps: The number of steps $T$ until the target is reached.
        start: The first inverse temperature, $0 < \beta_0 \le 1$.

    Raises:
        ValueError: If an argument is out of range.
    """

    num_steps: int
    start: float

    def __init__(self, num_steps: int, start: float = 1e-3):
        if num_steps < 1 or not 0 < start <= 1:
            raise ValueError(
                "Geometric needs `num_steps` >= 1 and 0 < `start` <= 1, but got "
                f"num_steps={num_steps!r}, start={start!r}."
            )
        self.num_steps = int(num_steps)
        self.start = float(start)

    def __call__(self, step: Scalar) -> Scalar:
        left = 1 - jnp.minimum(step / self.num_steps, 1)
        return jnp.exp(left * jnp.log(self.start))


class Power(eqx.Module):
    r"""From flat to the target: $\beta(t) = (t/T)^p$, then 1.

    Args:
        num_steps: The number of steps $T$ until the target is reached.
        power: The exponent $p > 0$; 1 is the linear schedule.

    Raises:
        ValueError: If an argument is not positive.

    References:
        D'Angelo and Fortuin (2021), Annealed Stein Variational Gradient Descent.
    """

    num_steps: int
    power: float

    def __init__(self, num_steps: int, power: float = 1.0):
        if num_steps < 1 or not power > 0:
            raise ValueError(
                "Power needs `num_steps` >= 1 and `power` > 0, but got "
                f"num_steps={num_steps!r}, power={power!r}."
            )
        self.num_steps = int(num_steps)
        self.power = float(power)

    def __call__(self, step: Scalar) -> Scalar:
        return jnp.minimum(step / self.num_steps, 1.0) ** self.power


def thermal_step(
    length: float, annealing: Geometric | Power, num_steps: int, cooling: float = 0.2
) -> Callable[[Scalar], Scalar]:
    r"""A step-size schedule for annealing with a normalizing optimizer.

    $$\varepsilon(t) = \ell\, \beta(t)^{-1/2} \min(1, (T - t) / cT)$$

    Modes are $\beta^{-1/2}$ times wider while hot, so steps of a fixed share of the
    width keep the mobility equal along the path. The linear decay over the last part
    lets the particles settle.

    Args:
        length: The step length $\ell$ at the target, in the units of the points.
        annealing: The schedule of $\beta$.
        num_steps: The number of steps $T$ of the whole run.
        cooling: The share $c$ of the run over which the step decays to zero.

    Returns:
        A schedule for an Optax optimizer.
    """

    def schedule(step):
        hot = jnp.maximum(annealing(step), 1e-6) ** -0.5
        left = (num_steps - step) / (cooling * num_steps)
        return length * hot * jnp.clip(left, 0, 1)

    return schedule
