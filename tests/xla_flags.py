"""Prints flags with which XLA compiles faster and optimizes less.

Tests compile more than they compute. A flag that this version does not know would end
every process, so that those are left out: a process of its own tells.
"""

import os
import subprocess
import sys

FLAGS = (
    "--xla_backend_optimization_level=0",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_cpu_parallel_codegen_split_count=1",  # each worker has a core of its own
)
START = "import jax; jax.devices()"


def known(*flags):
    """Whether XLA starts with some flags."""
    environment = os.environ | {"XLA_FLAGS": " ".join(flags), "JAX_PLATFORMS": "cpu"}
    ran = subprocess.run(
        [sys.executable, "-c", START], env=environment, capture_output=True
    )
    return ran.returncode == 0


if __name__ == "__main__":
    flags = FLAGS if known(*FLAGS) else [flag for flag in FLAGS if known(flag)]
    sys.stdout.write(" ".join(flags) + "\n")
