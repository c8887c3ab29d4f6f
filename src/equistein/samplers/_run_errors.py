"""How a run ends before its last step."""

from equistein.samplers._samples import Samples


class NonFiniteError(FloatingPointError):
    """A run met a particle that is not finite.

    Attributes:
        step: The number of the step that gave it.
        samples: The run up to the last finite particles.
    """

    def __init__(self, message: str, step: int, samples: Samples):
        super().__init__(message)
        self.step = step
        self.samples = samples


class RunInterrupted(KeyboardInterrupt):
    """A run was stopped with Ctrl-C.

    Attributes:
        samples: The run up to then; give `samples.state` to `run` to continue.
    """

    def __init__(self, samples: Samples):
        super().__init__(f"stopped after {samples.num_steps} steps")
        self.samples = samples


class EvaluationFailed(RuntimeError):
    """A log density that calls Python raised an error in the midst of a run.

    Attributes:
        samples: The run up to then; give `samples.state` to `run` to continue.
    """

    def __init__(self, reason: str, samples: Samples):
        super().__init__(
            f"The log density raised after {samples.num_steps} steps: {reason} The "
            "error's `samples` hold the run up to then; `run` continues from their "
            "`state`."
        )
        self.samples = samples
