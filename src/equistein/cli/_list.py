"""`equistein list`: the experiments."""

import dataclasses

from equistein.cli._output import answer, say
from equistein.experiments import EXPERIMENTS


@dataclasses.dataclass(frozen=True)
class List:
    """List the experiments, with the paper's figures."""

    def execute(self) -> int:
        """Print them."""
        width = max(map(len, EXPERIMENTS))
        about = {
            name: {"summary": each.summary, "figure": each.figure}
            for name, each in EXPERIMENTS.items()
        }
        lines = (
            f"{name:<{width}}  {each.summary}  [{each.figure}]"
            for name, each in EXPERIMENTS.items()
        )
        answer("\n".join(lines), experiments=about)
        say("\nRun one:  equistein run NAME --preset smoke|quick|paper")
        say("Its settings:  equistein run NAME --help")
        return 0
