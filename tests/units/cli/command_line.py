"""What tests of the command line share."""

import contextlib
import json

import jax

from equistein.cli import main

COMMON = "--num-epochs 2 --batch-size 8 --sample-steps 10 --num-samples 6".split()
COMMON += "--ais-steps 10".split()
TINY = [*COMMON, *"--num-particles 6 --num-steps 2 --bandwidth 1 --widths 4".split()]
TINY_GRAPH = [*COMMON, *"--epoch-batches 3 --width 4 --depth 1".split()]


@contextlib.contextmanager
def as_users_run_it():
    """The command line runs in the default precision and promotion."""
    with (
        jax.enable_x64(False),
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
    ):
        yield


def status(*arguments):
    with as_users_run_it():
        try:
            return main([str(argument) for argument in arguments])
        except SystemExit as stop:
            return stop.code


def lines_of(run):
    text = (run / "history.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]
