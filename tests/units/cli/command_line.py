"""What tests of the command line share."""

import contextlib
import json

import jax

from equistein.cli import main

TINY = "--num-epochs 2 --batch-size 8 --num-particles 6 --num-steps 2".split()
TINY += "--sample-steps 10 --width 4 --depth 1 --num-samples 6 --bandwidth 1".split()
TINY += ["--ais-steps", "10", "--num-passes", "1"]


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
