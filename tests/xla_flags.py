"""Prints flags with which XLA compiles faster and optimizes less.

Tests compile more than they compute. A flag that this version does not know would end
every process, so that those are left out.
"""

import mmap
import pathlib
import sys

import jaxlib

FLAGS = {
    "xla_backend_optimization_level": "0",
    "xla_cpu_use_fusion_emitters": "false",
    "xla_cpu_parallel_codegen_split_count": "1",  # each worker has a core of its own
}


def known(name):
    """Whether a library of jaxlib has the name of a flag in it."""
    for path in sorted(pathlib.Path(jaxlib.__file__).parent.rglob("*.so*")):
        with open(path, "rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            if content.find(name.encode()) >= 0:
                return True
    return False


if __name__ == "__main__":
    flags = (f"--{name}={value}" for name, value in FLAGS.items() if known(name))
    sys.stdout.write(" ".join(flags) + "\n")
