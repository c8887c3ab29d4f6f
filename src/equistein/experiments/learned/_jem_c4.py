"""A joint energy model of two classes with C4 symmetry (paper, section 4, D.1)."""

import dataclasses
import pathlib
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int

from equistein._types import Key, Particles, Point, Scalar
from equistein.energies import energy_for, JointEnergy
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
from equistein.groups import Cyclic, Trivial
from equistein.metrics import (
    accuracy,
    energy_distance,
    expected_calibration_error,
    mode_weights,
)
from equistein.plotting import curves, planar_energies
from equistein.runs import FLOOR, Outcome, SEED
from equistein.targets import RotatedGaussians
from equistein.training import fit, FitConfig

_GROUP = Cyclic(4)
_NUM_EXACT = 4_000
_DRAWN = 120
_SHOWN = 256


@dataclasses.dataclass(frozen=True, kw_only=True)
class JemC4Config:
    """Settings of `jem-c4`.

    Attributes:
        num_seeds: The number of seeds, counted up from the run's seed; each has data of
            its own.
        num_data: Training points, half of each class.
        num_test: Held-out points, half of each class.
        num_samples: Samples drawn of all, and of each class.
        radii: The distance of each class's four modes from the origin.
        widths: The units of the network's hidden layers.
        monitor_every: The epochs between two looks at the held-out likelihood.
        fit: How it is trained; `negatives` is set by the model.
    """

    num_seeds: int = 5
    num_data: int = 128
    num_test: int = 2_000
    num_samples: int = 512
    radii: tuple[float, float] = (7.0, 15.0)
    widths: tuple[int, ...] = (64, 64, 64)
    monitor_every: int = 10
    fit: FitConfig = FitConfig()  # noqa: RUF009


@dataclasses.dataclass(frozen=True)
class Classes:
    """The target: four Gaussians a class, all eight of equal weight.

    Attributes:
        targets: The density of each class.
    """

    targets: tuple[RotatedGaussians, ...]

    def log_density(self, point: Point) -> Scalar:
        values = self.log_densities(point)
        return logsumexp(values) - jnp.log(float(len(self.targets)))

    def log_densities(self, point: Point) -> Float[Array, " class"]:
        """Return the log density of each class."""
        return jnp.stack([t.log_density(point) for t in self.targets])

    def sample(self, key: Key, num: int) -> tuple[Particles, Int[Array, " n"]]:
        """Draw points and their classes, the same number of each."""
        each = num // len(self.targets)
        points = [
            target.sample(jr.fold_in(key, label), each)
            for label, target in enumerate(self.targets)
        ]
        return jnp.concatenate(points), jnp.repeat(
            jnp.arange(len(points)), each, total_repeat_length=each * len(points)
        )

    @property
    def modes(self) -> Particles:
        means = [_GROUP.orbit(target.mean) for target in self.targets]
        return jnp.concatenate(means)


def stages(
    config: JemC4Config, seed: int, kept: pathlib.Path | None = None
) -> dict[str, Stage]:
    check_temperature(config.fit)
    target = Classes(
        tuple(RotatedGaussians(_GROUP, (radius, 0.0)) for radius in config.radii)
    )
    plane = _plane(config)

    def learned(name: str, index: int) -> Outcome:
        keys = jr.split(jr.fold_in(jr.key(seed + index), 0), 6)
        data, labels = target.sample(keys[0], config.num_data)
        points, classes = target.sample(keys[1], config.num_test)
        # The classes do not change when points are turned.
        turned = jax.vmap(_GROUP.act)(_GROUP.sample(keys[2], len(points)), points)
        group = Trivial() if name == "plain" else _GROUP
        energy = energy_for(
            keys[3], group, data, num_classes=len(config.radii), widths=config.widths
        )
        negatives = "esvgd" if name == "equivariant" else "svgd"
        fitted = fit(
            keys[4], energy, data,
            dataclasses.replace(config.fit, negatives=negatives), labels=labels,
            monitor=likelihood_monitor(plane, turned),
            monitor_every=config.monitor_every, progress=True,
            checkpoint=kept and kept / f"{name}{SEED}{index}.eqx",
        )  # fmt: skip
        assert isinstance(fitted.energy, JointEnergy)
        sample_key, normalizer_key, exact_key = jr.split(keys[5], 3)
        samples = _draw_samples(sample_key, config, fitted.sample)
        normalizer = fitted.log_normalizer(
            normalizer_key, num_particles=256, num_steps=1_000
        )
        logits = jax.vmap(fitted.energy.logits)(turned)
        numbers = {
            "log_likelihood": fitted.history["log_likelihood"][-1],
            "log_likelihood_by_ais": jnp.mean(
                fitted.log_likelihood(turned, normalizer)
            ),
            "ais_error_bound": normalizer.error,
            "rollbacks": len(fitted.events),
            "true_log_likelihood": jnp.mean(jax.vmap(target.log_density)(turned)),
            "accuracy": accuracy(logits, classes),
            "calibration_error": expected_calibration_error(logits, classes),
        } | _of_samples(exact_key, target, samples)
        energies = [fitted.energy, *map(fitted.energy.given, range(len(config.radii)))]
        return Outcome(
            metrics=metrics_of(numbers),
            samples=samples[0],
            history=history_of(fitted),
            arrays={
                "by_class": samples[None, 1:],
                "log_density": plane.draw([e.log_density for e in energies], _DRAWN)[
                    None
                ],
                "decision": plane.label(fitted.energy.logits, _DRAWN)[None],
            },
            events=fitted.events,
        )

    def exact() -> Outcome:
        keys = jr.split(jr.fold_in(jr.key(seed), 1), config.num_seeds)
        densities = [t.log_density for t in (target, *target.targets)]
        drawn = plane.draw(densities, _DRAWN)[None]
        decided = plane.label(target.log_densities, _DRAWN)[None]
        rows, sets = [], []
        for key in keys:
            sample_key, exact_key, held_key = jr.split(key, 3)
            samples = _exact_samples(sample_key, config, target)
            points, _ = target.sample(held_key, config.num_test)
            likelihood = jnp.mean(jax.vmap(target.log_density)(points))
            rows.append(
                metrics_of({"log_likelihood": likelihood, "accuracy": 1.0}
                           | _of_samples(exact_key, target, samples))
            )  # fmt: skip
            sets.append(samples)
        return Outcome(
            metrics={k: np.concatenate([row[k] for row in rows]) for k in rows[0]},
            samples=np.concatenate([samples[0] for samples in sets]),
            arrays={
                "by_class": np.stack([samples[1:] for samples in sets]),
                "log_density": np.repeat(drawn, len(keys), axis=0),
                "decision": np.repeat(decided, len(keys), axis=0),
            },
        )

    return seeded(learned, config.num_seeds) | {FLOOR: exact}


def draw(config: JemC4Config, outcomes: Mapping[str, Outcome]) -> dict:
    columns = labelled(outcomes)
    reach = max(config.radii) + 5.0
    panels = {}
    for name, outcome in columns.items():
        log_density = outcome.arrays["log_density"][0]
        drawn = [outcome.samples[: config.num_samples], *outcome.arrays["by_class"][0]]
        samples = [points[:_SHOWN] for points in drawn]
        panels[name] = [
            (outcome.arrays["decision"][0], None, "boundary"),
            *(
                (np.exp(d), x, "density")
                for d, x in zip(log_density, samples, strict=True)
            ),
        ]
    titles = ["decision boundary", "p(x)", "p(x | y = 0)", "p(x | y = 1)"]
    figures = {"energies": planar_energies(panels, titles, _plane(config).reach, reach)}
    series = likelihood_curves(outcomes)
    if series:
        exact = [o.metrics["true_log_likelihood"].mean() for n, o in outcomes.items()
                 if n != FLOOR]  # fmt: skip
        figures["likelihood"] = curves(
            series,
            "held-out log-likelihood (nats)",
            exact=float(exact[0]),
            x_label="epoch",
            limits=(float(exact[0]) - 6.0, float(exact[0]) + 0.3),
        )
    return figures


def compare(config: JemC4Config, outcomes: Mapping[str, Outcome]) -> dict[str, dict]:
    return epochs_to_svgd(outcomes)


def _plane(config: JemC4Config) -> Plane:
    """Return a square that holds all mass, resolved well below a mode's width."""
    return Plane(2.5 * max(config.radii), 320)


def _draw_samples(key: Key, config: JemC4Config, sample) -> np.ndarray:
    """Return samples of all, then of each class."""
    keys = jr.split(key, 1 + len(config.radii))
    labels = [None, *range(len(config.radii))]
    return np.stack(
        [
            np.asarray(sample(key, config.num_samples, label=label))
            for key, label in zip(keys, labels, strict=True)
        ]
    )


def _exact_samples(key: Key, config: JemC4Config, target: Classes) -> np.ndarray:
    keys = jr.split(key, 1 + len(target.targets))
    mixed, _ = target.sample(keys[0], 2 * config.num_samples)
    order = jr.permutation(jr.fold_in(keys[0], 1), len(mixed))[: config.num_samples]
    of_class = [
        t.sample(key, config.num_samples)
        for t, key in zip(target.targets, keys[1:], strict=True)
    ]
    return np.stack([np.asarray(x) for x in (mixed[order], *of_class)])


def _of_samples(key: Key, target: Classes, samples: np.ndarray) -> dict:
    """Measure samples of all, then of each class, against exact ones."""
    sets = [jnp.asarray(points) for points in samples]
    exact, _ = target.sample(key, _NUM_EXACT)
    held = mode_weights(sets[0], target.modes)
    numbers = {
        "modes_found": jnp.sum(held > 0.25 / len(held)),
        "smallest_mode_share": jnp.min(held),
        "energy_distance": energy_distance(sets[0], exact),
    }
    each = zip(sets[1:], jnp.split(exact, len(target.targets)), strict=True)
    for label, (points, those) in enumerate(each):
        numbers[f"energy_distance_class_{label}"] = energy_distance(points, those)
    of_classes = [numbers[f"energy_distance_class_{k}"] for k in range(len(sets) - 1)]
    numbers["energy_distance_of_classes"] = jnp.mean(jnp.stack(of_classes))
    return numbers


_QUICK = FitConfig(
    num_epochs=160,
    batch_size=32,
    num_particles=64,
    num_steps=50,
    langevin=0.02,
    stein_step=0.3,
    reset_probability=0.2,
    reset_to_data=0.9,
    learning_rate=4e-3,
    regularization=3e-2,
    data_noise=0.25,
    ema=0.998,
    sample_steps=1_000,
    sample_at_once=256,
)

JEM_C4 = Experiment(
    name="jem-c4",
    figure="figures cond-ebm and cond-ebm-cont, section 4 and appendix D.1",
    summary="learn two classes with C4 symmetry as one energy: classifier and sampler",
    presets={
        "smoke": smoke(JemC4Config(fit=_QUICK)),
        "quick": JemC4Config(fit=_QUICK),
        "paper": JemC4Config(
            widths=PAPER_WIDTHS,
            fit=dataclasses.replace(
                PAPER,
                bandwidth=0.1,
                # A constant rate, where the default decays.
                learning_rate_epochs=(1,),
                learning_rate_factors=(1.0,),
            ),
        ),
    },
    stages=stages,
    compare=compare,
    trains=True,
    draw=draw,
    notes={
        "plain": "The network sees coordinates, and learns each of the eight modes "
        "from its sixteen points.",
        "equivariant-svgd": "The network is averaged over quarter turns; the particles "
        "feel one another within a mode only.",
        "equivariant": "The same network, and particles that feel one another across "
        "orbits. epochs_ratio: the epochs until its held-out likelihood is that of "
        "equivariant-svgd at the end, over the epochs that one needs for it.",
    },
    captions={
        "energies": "The first seed. Above, the class the model takes for likelier; "
        "below, the density, normalized by quadrature, with samples from fresh starts.",
        "likelihood": "The log-likelihood of held-out points by quadrature: mean and "
        "range over the seeds.",
    },
)
