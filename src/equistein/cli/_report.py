"""`equistein report`: reports written anew, and runs compared."""

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Annotated, Any

import tyro

from equistein.cli._output import answer, say
from equistein.cli._words import words_of
from equistein.runs import (
    check_comparison,
    RunFolder,
    SPREAD,
    UserError,
    write_comparison,
    write_report,
)

_COMPARED = "compared.html"


@dataclasses.dataclass(frozen=True)
class Report:
    """Write the reports of runs anew, and a page that compares several.

    Attributes:
        runs: Run folders.
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
            if not (folder.path / "metrics.json").is_file():
                raise UserError(
                    f"{folder.path} has no results yet; `equistein resume "
                    f"{folder.path}`."
                )
        page = self.out
        if page is None and len(folders) > 1:
            page = folders[0].path.absolute().parent / _COMPARED
        if page is not None:
            check_comparison(page)
        self._write(folders)
        if page is not None:
            told = [words_of(folder.read_config()) for folder in folders]
            try:
                write_comparison(folders, told, page)
            except OSError as error:
                raise UserError(
                    f"Cannot write {page}: {error.strerror}. Choose another --out."
                ) from None
            if self.out is None:
                for folder in folders:
                    _print_metrics(folder)
            answer(str(page), comparison=page)
        return 0

    def _write(self, folders: Sequence[RunFolder]) -> None:
        """Write the report of each run."""
        written: dict[str, Any] = {}
        for folder in folders:
            try:
                report = write_report(folder, words_of(folder.read_config()))
            except (
                AttributeError, KeyError, OverflowError, RecursionError, TypeError,
                ValueError,
            ) as error:  # fmt: skip
                message = f"A file in {folder.path} is damaged: {error}."
                raise UserError(message) from None
            written[str(folder.path)] = {
                "report": report,
                "metrics": folder.read_json("metrics.json"),
            }
            answer(str(report), runs=written)


def _print_metrics(folder: RunFolder) -> None:
    metrics = folder.read_json("metrics.json")
    say(f"\n{folder.path}")
    for name, numbers in metrics.items():
        if name in ("seeds", "num_samples"):
            continue
        spreads = {f"{key}{of}" for key in numbers for of in SPREAD}
        shown = {
            key: "–" if value is None else f"{value:.4g}"
            for key, value in numbers.items()
            if key not in spreads
        }
        say(f"  {name:<22}" + "  ".join(f"{k} {v}" for k, v in shown.items()))
