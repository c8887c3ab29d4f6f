"""What a run leaves in its folder: settings, results, figures, and a report of them."""

from equistein.runs._command import flags as flags
from equistein.runs._comparison import (
    check_comparison as check_comparison,
    write_comparison as write_comparison,
)
from equistein.runs._config import (
    config_from_json as config_from_json,
    config_to_json as config_to_json,
)
from equistein.runs._environment import (
    check_settings as check_settings,
    write_environment as write_environment,
)
from equistein.runs._folder import (
    packed as packed,
    RunFolder as RunFolder,
    unpacked as unpacked,
    UserError as UserError,
)
from equistein.runs._headlines import SPREAD as SPREAD
from equistein.runs._outcome import (
    FLOOR as FLOOR,
    joined as joined,
    Outcome as Outcome,
    SEED as SEED,
    seed_outcome as seed_outcome,
    WARNING as WARNING,
)
from equistein.runs._page import (
    Circumstances as Circumstances,
    PageFigure as PageFigure,
    Picture as Picture,
    write_page as write_page,
)
from equistein.runs._parts import write_parts as write_parts
from equistein.runs._report import (
    write_conclusion as write_conclusion,
    write_report as write_report,
)
from equistein.runs._results import (
    arrays_of as arrays_of,
    load_outcome as load_outcome,
    outcome_of as outcome_of,
    save_outcome as save_outcome,
    summarize as summarize,
    write_figures as write_figures,
    write_history as write_history,
    write_results as write_results,
)
from equistein.runs._sweep import (
    Member as Member,
    members as members,
    write_sweep_results as write_sweep_results,
)
from equistein.runs._words import Words as Words
