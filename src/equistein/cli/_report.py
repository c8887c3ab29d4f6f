"""`equistein report`: reports written again, and runs compared."""

import dataclasses
import pathlib
from typing import Annotated, Any

import tyro

from equistein.cli._output import answer
from equistein.runs import RunFolder, UserError, write_comparison, write_report

_COMPARED = "compared.html"


@dataclasses.dataclass(frozen=True)
class Report:
    """Write reports again, and a page that compares several runs.

    Attributes:
        runs: Run folders, of fits, sweeps or experiments.
        out: The page that compares runs: their numbers in one table, their figures side
            by side, and the settings in which they differ. By default compared.html
            beside the folder of the first of several runs.
    """

    runs: Annotated[tuple[pathlib.Path, ...], tyro.conf.Positional]
    out: pathlib.Path | None = None

    def execute(self) -> int:
        """Write the reports; nothing is written if a folder is not a run's."""
        if not self.runs:
            raise UserError("Give a run folder: equistein report RUN_DIR [RUN_DIR ...]")
        folders = [RunFolder.open(path) for path in self.runs]
        for folder in folders:
            if not folder.has("metrics.json"):
                raise UserError(f"{folder.path} has no results yet: resume it first.")
        page = self.out
        if page is None and len(folders) > 1:
            page = folders[0].path.absolute().parent / _COMPARED
        if page is not None:
            write_comparison(folders, page)
        written: dict[str, Any] = {}
        for folder in folders:
            report = write_report(folder)
            metrics = folder.read_json("metrics.json")
            written[str(folder.path)] = {"report": report, "metrics": metrics}
            answer(str(report), runs=written)
        if page is not None:
            answer(str(page), comparison=page)
        return 0
