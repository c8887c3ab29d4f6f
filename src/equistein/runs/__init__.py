"""The folder of a run: settings, results, figures, and a report of them."""

from equistein.runs._folder import (
    check_settings as check_settings,
    RunFolder as RunFolder,
    settings_from_json as settings_from_json,
    settings_to_json as settings_to_json,
    UserError as UserError,
    write_environment as write_environment,
)
from equistein.runs._report import (
    ReportText as ReportText,
    write_report as write_report,
)
from equistein.runs._results import (
    FLOOR as FLOOR,
    load_part as load_part,
    Metric as Metric,
    Outcome as Outcome,
    save_part as save_part,
    seed_outcome as seed_outcome,
    summarize as summarize,
    WARNING as WARNING,
    write_figures as write_figures,
    write_history as write_history,
    write_results as write_results,
)
