"""The figures and words of the experiments on particle systems."""

from collections.abc import Mapping

import numpy as np

from equistein.experiments._systems import System, SystemConfig
from equistein.plotting import bars, configurations, curves, histograms
from equistein.runs import FLOOR, Outcome


def draw(
    config: SystemConfig,
    outcomes: Mapping[str, Outcome],
    system: System,
    energies: tuple[float, float],
) -> dict:
    """Return the figures."""
    runs = {name: out for name, out in outcomes.items() if name != FLOOR}
    floor = outcomes.get(FLOOR)
    quality = {
        "energy_w2": "Wasserstein-2 of the energies",
        "distance_tv": "total variation of the distances",
    }
    figures = {}
    for name, label in quality.items():
        level = float(floor.metrics[name].mean()) if floor else None
        figures[name.replace("_", "-")] = curves(
            {run: (out.history["step"][0], out.history[name])
             for run, out in runs.items()},
            label, exact=level, exact_label="as many exact samples",
            log_x=True, log_y=True, x_label="score evaluations a particle",
            limits=(0.5 * level, 100 * level) if level else None,
        )  # fmt: skip
    order = ([FLOOR] if floor else []) + list(runs)
    shown = {name: outcomes[name] for name in order}
    figures["energies"] = histograms(
        {name: out.arrays["energies"] for name, out in shown.items()},
        _density(floor.arrays["energies"], energies) if floor else None,
        "energy", limits=energies, bins=64,
    )  # fmt: skip
    figures["distances"] = histograms(
        {name: out.arrays["distances"] for name, out in shown.items()},
        _density(floor.arrays["distances"], system.limits) if floor else None,
        "distance of two particles", limits=system.limits, bins=80,
    )  # fmt: skip
    reach = float(np.quantile(np.abs(next(iter(shown.values())).samples), 0.999))
    figures["configurations"] = configurations(
        {name: out.samples[:8] for name, out in shown.items()}, 1.2 * reach
    )
    if system.minima is not None:
        names = [name for name in shown[order[0]].metrics if name.startswith("state_")]
        figures["states"] = bars(
            {
                name: np.array([out.metrics[state].mean() for state in names])
                for name, out in shown.items()
            },
            [name.replace("_", " ") for name in names],
            "share of the samples",
        )
    return figures


def _density(
    values: np.ndarray, limits: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    heights, edges = np.histogram(values, np.linspace(*limits, 65))
    width = edges[1] - edges[0]
    return (edges[1:] + edges[:-1]) / 2, heights / (values.size * width)


NOTES = {
    "equivariant": "E-SVGD with the `Moments` kernel on a smooth histogram of "
    "distances and Langevin noise, annealed; the last quarter of the evaluations is "
    "MALA, which takes the step's bias away. Its particles end as good as independent "
    "ones.",
    "thinned": "The same, and then the particles are chosen from sixteen snapshots of "
    "the last chains, so that they represent them: better than independent samples in "
    "what is measured here, and no longer independent.",
    "quiet": "E-SVGD without noise: the kernel pulled back along sorted distances, "
    "annealed. Under-dispersed, and biased where distances tie.",
    "vanilla": "SVGD with the median rule, annealed: under-dispersed.",
    "langevin": "The noise of `equivariant` alone, cooled at the end.",
    "mala": "Annealed Metropolis-adjusted Langevin chains with an adapted step: the "
    "baseline to beat.",
    "nuts": "BlackJAX's NUTS with a fixed step, from where MALA is after 100 "
    "evaluations; it is not annealed. Present where BlackJAX is installed.",
}


CAPTIONS = {
    "energy-w2": "Wasserstein-2 distance of the energies from those of the reference, "
    "against the evaluations of the score that each particle took: mean and range over "
    "the seeds. The line is what as many independent exact samples reach.",
    "distance-tv": "Total variation of the histograms of pair distances (200 bins).",
    "energies": "The law of the energy; the line is that of exact samples.",
    "distances": "The law of the pair distances.",
    "configurations": "The first samples of each sampler, not aligned.",
    "states": "The share of each minimum among the samples, after relaxation.",
}
