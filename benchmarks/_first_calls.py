"""The first result in a new process, and later ones, beside loops by hand.

`python -m benchmarks._first_calls NAME ours|by-hand` is one such process.
"""

import json
import os
import subprocess
import sys
import time
from typing import Any

import jax
import jax.random as jr
import numpy as np

from benchmarks._by_hand import HMC_STEPS, LOOPS, NUM_TEMPERATURES, start, two_modes

_REPEATS = 5
_SIZES = {
    "SVGD": (256, 2_000), "Langevin": (256, 2_000), "MALA": (256, 2_000),
    "ParallelTempering": (256, 2_000), "AnnealedSMC": (2_048, 200), "HMC": (1_024, 500),
    "NUTS": (64, 500), "fit of molecules": (200, 2),
}  # fmt: skip
_COMPILED = "/jax/core/compile/backend_compile_duration"


def first_calls() -> None:
    """Print seconds from the start of a process to its first samples, compiled anew.

    Imports count. Beside them are the seconds of a second call and the programs that
    were compiled; ratios are to the loop by hand, of first and later calls.
    """
    print(f"Seconds of a new process, median of {_REPEATS} interleaved ones")
    print(
        f"{'':<20}{'':<9}{'first':>8}{'later':>8}{'programs':>10}{'ratio':>7}{'later':>7}"
    )
    for name, (num, num_steps) in _SIZES.items():
        found: dict[str, list[dict[str, float]]] = {"by-hand": [], "ours": []}
        for _ in range(_REPEATS):
            for which, rows in found.items():
                rows.append(_process(name, which))
        medians = {
            which: {k: float(np.median([row[k] for row in rows])) for k in rows[0]}
            for which, rows in found.items()
        }
        words = ("chains", "steps") if name in LOOPS else ("molecules", "epochs")
        for which, row in medians.items():
            ratios = [row[k] / medians["by-hand"][k] for k in ("first", "later")]
            print(
                f"{name:<20}{which:<9}{row['first']:>8.2f}{row['later']:>8.3f}"
                f"{row['programs']:>10.0f}{ratios[0]:>7.2f}{ratios[1]:>7.2f}"
                f"   {num} {words[0]}, {num_steps} {words[1]}",
                flush=True,
            )


def _process(name: str, which: str) -> dict[str, float]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("JAX_COMPILATION")}
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "benchmarks._first_calls", name, which],
        env=kept, capture_output=True, text=True, check=True,
    )  # fmt: skip
    spent = time.perf_counter() - began
    row = json.loads(done.stdout.splitlines()[-1])
    return row | {"first": spent - row["later"]}


def _once(name: str, which: str) -> None:
    """Run or fit twice in this process, and print what it took as JSON."""
    compiled = []
    note = lambda event, *_, **__: (
        compiled.append(event) if event == _COMPILED else None
    )
    jax.monitoring.register_event_duration_secs_listener(note)
    keys = list(jr.split(jr.key(0), 2))
    call = (_fit if name not in LOOPS else _run)(name, which)
    jax.block_until_ready(jax.tree.leaves(call(keys[0])))
    first, programs = time.perf_counter(), len(compiled)
    jax.block_until_ready(jax.tree.leaves(call(keys[1])))
    later = time.perf_counter() - first
    print(json.dumps({"later": later, "programs": programs}))


def _run(name: str, which: str) -> Any:
    """Return a call of a sampler, from a key."""
    num, num_steps = _SIZES[name]
    x = start(num)
    if which == "ours":
        import equistein as es

        sampler = sampler_named(name, num_steps)
        return lambda key: es.run(key, sampler, two_modes, x, num_steps=num_steps)
    loop = jax.jit(LOOPS[name], static_argnums=2)
    return lambda key: loop(key, x, num_steps)


def _fit(name: str, which: str) -> Any:
    """Return a call of a fit by denoising, from a key."""
    import equistein as es
    from benchmarks._epochs import CHARGES, molecules

    num, num_epochs = _SIZES[name]
    case = molecules(num)
    if which == "ours":
        settings = es.models.DenoisingSettings(
            num_epochs=num_epochs, epoch_batches=case.num_batches
        )
        group, options = es.groups.PointCloud(CHARGES, 3), {"settings": settings}
        model = lambda: es.models.for_data(
            1, group, case.data, atomic_numbers=CHARGES, **options
        )
        return lambda key: model().fit(key, case.data).energy
    by_hand, (_, state, *data) = case.loop()
    epoch = jax.jit(by_hand)

    def fit(key: Any) -> Any:
        trained = state
        for each in jr.split(key, num_epochs):
            trained, _ = epoch(each, trained, *data)
        return trained[1]

    return fit


def sampler_named(name: str, num_steps: int) -> Any:
    """Return the library's sampler of this name, set as the loop by hand is."""
    import equistein as es

    if name == "SVGD":
        import optax

        return es.SVGD(es.kernels.RBF(0.5), optax.sgd(0.1))
    if name == "Langevin":
        return es.Langevin(0.1)
    if name == "AnnealedSMC":
        return es.AnnealedSMC(es.MALA(0.1), num_runs=1, num_moves=5)
    if name == "ParallelTempering":
        return es.ParallelTempering(es.MALA(0.1), num_temperatures=NUM_TEMPERATURES)
    if name == "MALA":
        return es.MALA(0.1)
    import blackjax

    options: dict[str, Any] = {}
    if name == "HMC":
        options["num_integration_steps"] = HMC_STEPS
    family = getattr(blackjax, name.lower())
    return es.from_blackjax(family, num_adapt=num_steps // 2, **options)


if __name__ == "__main__":
    _once(*sys.argv[1:])
