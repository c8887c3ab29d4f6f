"""`equistein report`: reports written anew, and runs compared."""

import pathlib
from collections.abc import Sequence

from equistein.cli._fit import words_of as words_of_fit
from equistein.cli._run import find_experiment
from equistein.runs import config_from_json, RunFolder, UserError, Words, write_report


def report(arguments: Sequence[str]) -> int:
    """Write the reports of the given runs anew, and compare several.

    Raises:
        UserError: If no folder is given, or one is not a run folder.
    """
    if not arguments or arguments[0].startswith("-"):
        raise UserError("usage: equistein report RUN_DIR [RUN_DIR ...]")
    folders = [RunFolder.open(pathlib.Path(argument)) for argument in arguments]
    for folder in folders:
        if not (folder.path / "metrics.json").is_file():
            raise UserError(
                f"{folder.path} has no results yet; `equistein resume {folder.path}`."
            )
    for folder in folders:
        try:
            print(write_report(folder, _words(folder)))
        except (AttributeError, KeyError, TypeError) as error:
            message = f"A file in {folder.path} is damaged: {error}."
            raise UserError(message) from None
    if len(folders) > 1:
        for folder in folders:
            _print_metrics(folder)
    return 0


def _words(folder: RunFolder) -> Words:
    described = folder.read_config()
    if described.get("command") == "fit":
        return words_of_fit(described)
    experiment = find_experiment(str(described.get("experiment")))
    config = experiment.presets["quick"]
    try:
        config = config_from_json(config, described.get("config"))
    except (TypeError, ValueError):
        pass  # settings of another version: the words of this one's defaults
    return experiment.words(config, str(described.get("preset")))


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
