"""Run the benchmarks: python -m benchmarks [NAME ...], from the repository's root."""

import platform
import sys

import jax

from benchmarks._blocks import blocks
from benchmarks._clusters import clusters
from benchmarks._images import images
from benchmarks._kernel_cost import kernel_cost
from benchmarks._labels import labels
from benchmarks._molecules import molecules
from benchmarks._sampling import many_steps, one_update
from benchmarks._tempering import tempering
from benchmarks._training import training

BENCHMARKS = {
    "many-steps": many_steps,
    "one-update": one_update,
    "blocks": blocks,
    "training": training,
    "molecules": molecules,
    "images": images,
    "tempering": tempering,
    "clusters": clusters,
    "kernel-cost": kernel_cost,
    "labels": labels,
}


def main(names: list[str]) -> int:
    """Run the benchmarks of these names, all without any."""
    unknown = sorted(set(names) - set(BENCHMARKS))
    if unknown:
        known = ", ".join(BENCHMARKS)
        print(f"There is no benchmark {', '.join(unknown)}, only {known}.")
        return 2
    print(f"JAX {jax.__version__} on {jax.devices()[0]}, {platform.processor()}")
    for name in names or BENCHMARKS:
        BENCHMARKS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
