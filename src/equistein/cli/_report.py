"""`equistein report`: reports written anew, and runs compared."""

import dataclasses
import pathlib
from typing import Annotated

import tyro

from equistein.cli._words import words_of
from equistein.runs import RunFolder, UserError, write_report


@dataclasses.dataclass(frozen=True)
class Report:
    """Write the reports of runs anew, and compare the numbers of several.

    Attributes:
        runs: Run folders.
    """

    runs: Annotated[tuple[pathlib.Path, ...], tyro.conf.Positional]

    def execute(self) -> int:
        """Write the reports; nothing is written if a folder is not a run's."""
        if not self.runs:
            raise UserError("Give a run folder: equistein report RUN_DIR [RUN_DIR ...]")
        folders = [RunFolder.open(path) for path in self.runs]
        for folder in folders:
            if not (folder.path / "metrics.json").is_file():
                raise UserError(
                    f"{folder.path} has no results yet; `equistein resume "
                    f"{folder.path}`."
                )
        for folder in folders:
            try:
                print(write_report(folder, words_of(folder.read_config())))
            except (AttributeError, KeyError, TypeError) as error:
                message = f"A file in {folder.path} is damaged: {error}."
                raise UserError(message) from None
        if len(folders) > 1:
            for folder in folders:
                _print_metrics(folder)
        return 0


def _print_metrics(folder: RunFolder) -> None:
    metrics = folder.read_json("metrics.json")
    print(f"\n{folder.path}")
    for name, numbers in metrics.items():
        if name in ("seeds", "num_samples"):
            continue
        shown = {
            key: "–" if value is None else f"{value:.4g}"
            for key, value in numbers.items()
            if not key.endswith(("_sd", "_min", "_max"))
        }
        print(f"  {name:<22}" + "  ".join(f"{k} {v}" for k, v in shown.items()))
