"""An energy based model of two rings (paper, appendix D.2, figure ebm_circ)."""

import dataclasses
import pathlib
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein._types import LogDensity, Particles
from equistein.energies import energy_for
from equistein.experiments._base import Experiment, Stage
from equistein.experiments.learned._planar import (
    check_temperature,
    epochs_to_svgd,
    history_of,
    labelled,
    likelihood_curves,
    likelihood_monitor,
    metrics_of,
    PAPER,
    PAPER_WIDTHS,
    Plane,
    seeded,
    smoke,
)
from equistein.experiments.toys._shells import radial_density as radial_law
from equistein.groups import Orthogonal, Trivial
from equistein.metrics import energy_distance, wasserstein_1d
from equistein.plotting import curves, histograms, planar_energies
from equistein.runs import FLOOR, Outcome, SEED
from equistein.targets import Shells
from equistein.training import fit, FitConfig

_NUM_EXACT = 4_000
_DRAWN = 160
_SHOWN = 256
_ANGLES = 90
_RADII = 300


@dataclasses.dataclass(frozen=True, kw_only=True)
class EbmCirclesConfig:
    """Settings of `ebm-circles`.

    Attributes:
        num_seeds: The number of seeds, counted up from the run's seed; each has data of
            its own.
        num_data: Training points.
        num_test: Held-out points.
        num_samples: Samples drawn of each model.
        radii: The radii of the rings.
        width: Their standard deviation.
        widths: The units of the network's hidden layers.
        monitor_every: The epochs between two looks at the held-out likelihood.
        fit: How it is trained; `negatives` is set by the model, and `supervised` is the
            weight of the squared error to the data's true energies.
    """

    num_seeds: int = 5
    num_data: int = 128
    num_test: int = 2_000
    num_samples: int = 512
    radii: tuple[float, float] = (3.0, 10.0)
    width: float = 0.5
    widths: tuple[int, ...] = (64, 64, 64)
    monitor_every: int = 10
    fit: FitConfig = FitConfig()  # noqa: RUF009


def stages(
    config: EbmCirclesConfig, seed: int, kept: pathlib.Path | None = None
) -> dict[str, Stage]:
    check_temperature(config.fit)
    target = Shells(config.radii, config.width, 2)
    normalizer = target.log_normalizer
    plane = _plane(config)

    def exact_log_density(point):
        return target.log_density(point) - normalizer

    def learned(name: str, index: int) -> Outcome:
        keys = jr.split(jr.fold_in(jr.key(seed + index), 0), 5)
        data = target.sample(keys[0], config.num_data)
        held_out = target.sample(keys[1], config.num_test)
        group = Trivial() if name == "plain" else Orthogonal(2)
        energy = energy_for(keys[2], group, data, widths=config.widths)
        negatives = "esvgd" if name == "equivariant" else "svgd"
        fitted = fit(
            keys[3], energy, data,
            dataclasses.replace(config.fit, negatives=negatives),
            labels=-jax.vmap(target.log_density)(data),
            monitor=likelihood_monitor(plane, held_out),
            monitor_every=config.monitor_every, progress=True,
            checkpoint=kept and kept / f"{name}{SEED}{index}.eqx",
        )  # fmt: skip
        sample_key, ais_key, exact_key = jr.split(keys[4], 3)
        samples = fitted.sample(sample_key, config.num_samples)
        by_ais = fitted.log_normalizer(ais_key, num_particles=256, num_steps=1_000)
        profile = radial_profile(fitted.log_density, config, plane)
        numbers = {
            "log_likelihood": fitted.history["log_likelihood"][-1],
            "log_likelihood_by_ais": jnp.mean(fitted.log_likelihood(held_out, by_ais)),
            "ais_error_bound": by_ais.error,
            "rollbacks": len(fitted.events),
            "true_log_likelihood": jnp.mean(jax.vmap(exact_log_density)(held_out)),
            **_of_profile(config, profile),
            "inner_weight_of_data": jnp.mean(_radii(data) < _middle(config)),
            **_of_samples(exact_key, target, config, samples),
        }
        return Outcome(
            metrics=metrics_of(numbers),
            samples=np.asarray(samples),
            history=history_of(fitted),
            arrays={
                "log_density": plane.draw([fitted.log_density], _DRAWN)[None],
                "profile": profile[None],
            },
            events=fitted.events,
        )

    def exact() -> Outcome:
        keys = jr.split(jr.fold_in(jr.key(seed), 1), config.num_seeds)
        drawn = plane.draw([target.log_density], _DRAWN)[None]
        profile = radial_profile(target.log_density, config, plane)
        rows, sets = [], []
        for key in keys:
            sample_key, exact_key, held_key = jr.split(key, 3)
            samples = target.sample(sample_key, config.num_samples)
            held_out = target.sample(held_key, config.num_test)
            likelihood = jnp.mean(jax.vmap(exact_log_density)(held_out))
            rows.append(
                metrics_of({"log_likelihood": likelihood}
                           | _of_profile(config, profile)
                           | _of_samples(exact_key, target, config, samples))
            )  # fmt: skip
            sets.append(np.asarray(samples))
        return Outcome(
            metrics={k: np.concatenate([row[k] for row in rows]) for k in rows[0]},
            samples=np.concatenate(sets),
            arrays={
                "log_density": np.repeat(drawn, len(keys), axis=0),
                "profile": np.repeat(profile[None], len(keys), axis=0),
            },
        )

    return seeded(learned, config.num_seeds) | {FLOOR: exact}


def radial_profile(
    log_density: LogDensity, config: EbmCirclesConfig, plane: Plane
) -> np.ndarray:
    """Return the density of the radius at `radii_of(config)`, by quadrature."""
    angles = jnp.arange(_ANGLES) * 2 * jnp.pi / _ANGLES
    circle = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
    radii = jnp.asarray(radii_of(config))
    points = (radii[:, None, None] * circle[None]).reshape(-1, 2)
    values = jax.vmap(log_density)(points) - plane.log_normalizer(log_density)
    around = jnp.mean(jnp.exp(values).reshape(len(radii), _ANGLES), axis=1)
    return np.asarray(2 * jnp.pi * radii * around)


def radii_of(config: EbmCirclesConfig) -> np.ndarray:
    """Return the radii at which profiles are given."""
    last = max(config.radii) + 8 * config.width
    return np.linspace(1e-3, last, _RADII, dtype=np.float32)


def draw(config: EbmCirclesConfig, outcomes: Mapping[str, Outcome]) -> dict:
    columns = labelled(outcomes)
    reach = max(config.radii) + 4.0
    panels = {
        name: [
            (
                np.exp(outcome.arrays["log_density"][0, 0]),
                outcome.samples[: min(_SHOWN, config.num_samples)],
                "density",
            )
        ]
        for name, outcome in columns.items()
    }
    law = radial_law(Shells(config.radii, config.width, 2))
    top = float(law[1].max())
    figures = {
        "energies": planar_energies(panels, ["p(x)"], _plane(config).reach, reach),
        "radii": histograms(
            {
                f"{name}, samples": np.linalg.norm(outcome.samples, axis=1)
                for name, outcome in columns.items()
            },
            law,
            "distance from the origin",
            limits=(0.0, float(radii_of(config)[-1])),
        ),
        "profiles": curves(
            {n: (radii_of(config), o.arrays["profile"]) for n, o in columns.items()},
            "density of the radius",
            x_label="distance from the origin",
            limits=(0.0, 1.3 * top),
        ),
    }
    series = likelihood_curves(outcomes)
    if series:
        exact = [o.metrics["true_log_likelihood"].mean() for n, o in outcomes.items()
                 if n != FLOOR]  # fmt: skip
        figures["likelihood"] = curves(
            series,
            "held-out log-likelihood (nats)",
            exact=float(exact[0]),
            x_label="epoch",
            limits=(float(exact[0]) - 3.0, float(exact[0]) + 0.3),
        )
    return figures


def compare(config: EbmCirclesConfig, outcomes: Mapping[str, Outcome]) -> dict:
    return epochs_to_svgd(outcomes)


def _plane(config: EbmCirclesConfig) -> Plane:
    """Return a square that holds all mass, resolved well below a ring's width."""
    return Plane(2.5 * max(config.radii), 250)


def _middle(config: EbmCirclesConfig) -> float:
    return sum(config.radii) / 2


def _radii(points: Particles):
    return jnp.sqrt(jnp.sum(points**2, axis=-1))


def _of_profile(config: EbmCirclesConfig, profile: np.ndarray) -> dict:
    """Measure the rings of a learned density."""
    radii = radii_of(config)
    inside = radii < _middle(config)
    step = radii[1] - radii[0]
    return {
        "inner_weight": step * profile[inside].sum(),
        "inner_crest": radii[inside][np.argmax(profile[inside])],
        "outer_crest": radii[~inside][np.argmax(profile[~inside])],
        "density_between": profile[np.argmin(np.abs(radii - _middle(config)))]
        / profile.max(),
    }


def _of_samples(
    key, target: Shells, config: EbmCirclesConfig, samples: Particles
) -> dict:
    exact = target.sample(key, _NUM_EXACT)
    radii = _radii(samples)
    return {
        "inner_weight_of_samples": jnp.mean(radii < _middle(config)),
        "w1_radius": wasserstein_1d(radii, _radii(exact)),
        "energy_distance": energy_distance(samples, exact),
    }


_QUICK = FitConfig(
    num_epochs=160,
    batch_size=32,
    num_particles=32,
    num_steps=50,
    langevin=0.02,
    stein_step=0.3,
    reset_probability=0.2,
    reset_to_data=0.5,
    supervised=0.5,
    learning_rate=2e-3,
    regularization=1e-2,
    data_noise=0.15,
    ema=0.998,
    sample_steps=1_000,
    sample_at_once=256,
)

EBM_CIRCLES = Experiment(
    name="ebm-circles",
    figure="figure ebm_circ, appendix D.2",
    summary="learn two rings with rotational symmetry from points and their energies",
    presets={
        "smoke": smoke(EbmCirclesConfig(fit=_QUICK)),
        "quick": EbmCirclesConfig(fit=_QUICK),
        "paper": EbmCirclesConfig(
            widths=PAPER_WIDTHS,
            fit=dataclasses.replace(
                PAPER,
                step_epochs=(250, 400),
                step_factors=(0.5 / 0.9, 0.1 / 0.9),
                bandwidth=0.05,
                supervised=0.5,
                learning_rate_epochs=(150, 400),
                learning_rate_factors=(0.5, 0.1),
            ),
        ),
    },
    stages=stages,
    compare=compare,
    trains=True,
    draw=draw,
    notes={
        "plain": "The network sees coordinates. All models get the true energies of "
        "the data, as known energies, in the squared error of the paper.",
        "equivariant-svgd": "The network sees the radius alone; the particles feel one "
        "another by their distance in the plane.",
        "equivariant": "The same network, and particles that feel one another by "
        "their radii. epochs_ratio: the epochs until its held-out likelihood is that "
        "of equivariant-svgd at the end, over the epochs that one needs for it.",
    },
    captions={
        "energies": "The first seed: the density, normalized by quadrature, with "
        "samples from fresh starts.",
        "profiles": "The density of the distance from the origin, by quadrature: mean "
        "and range over the seeds.",
        "radii": "The distances of samples from the origin, with the exact law.",
        "likelihood": "The log-likelihood of held-out points by quadrature: mean and "
        "range over the seeds.",
    },
)
