"""`equistein list`: the experiments."""

import dataclasses

from equistein.experiments import EXPERIMENTS


@dataclasses.dataclass(frozen=True)
class List:
    """List the experiments, with the paper's figures."""

    def execute(self) -> int:
        """Print them."""
        width = max(map(len, EXPERIMENTS))
        for name, experiment in EXPERIMENTS.items():
            print(f"{name:<{width}}  {experiment.summary}  [{experiment.figure}]")
        print("\nRun one:  equistein run NAME --preset smoke|quick|paper")
        print("Its settings:  equistein run NAME --help")
        return 0
