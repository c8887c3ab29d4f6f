"""Run the benchmarks: python -m benchmarks [NAME ...], from the repository's root."""

import platform
import sys

import jax

from benchmarks._blocks import blocks
from benchmarks._clusters import clusters
from benchmarks._draws import draws
from benchmarks._epochs import epochs
from benchmarks._first_calls import first_calls
from benchmarks._force_fields import force_fields
from benchmarks._growth import growth
from benchmarks._images import images
from benchmarks._kernel_cost import kernel_cost
from benchmarks._labels import labels
from benchmarks._molecules import molecules
from benchmarks._page import section, write_page
from benchmarks._programs import programs
from benchmarks._rates import print_rates
from benchmarks._sampling import many_steps
from benchmarks._tempering import tempering
from benchmarks._training import training
from benchmarks._updates import updates

BENCHMARKS = {
    "first-calls": first_calls,
    "programs": programs,
    "draws": draws,
    "growth": growth,
    "many-steps": many_steps,
    "updates": updates,
    "blocks": blocks,
    "training": training,
    "epochs": epochs,
    "molecules": molecules,
    "images": images,
    "tempering": tempering,
    "clusters": clusters,
    "force-fields": force_fields,
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
    with section("the machine"):
        print(f"JAX {jax.__version__} on {jax.devices()[0]}, {platform.processor()}")
        print_rates()
    for name in names or BENCHMARKS:
        with section(name):
            BENCHMARKS[name]()
        write_page()  # after each, for they take long
    print(f"All of it, with figures: {write_page()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
