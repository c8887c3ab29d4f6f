"""What drives all experiments: entries, their stages over seeds, figures, and runs."""

from equistein.experiments.engine._checks import (
    AbstractConfig as AbstractConfig,
    check_settings as check_settings,
)
from equistein.experiments.engine._experiment import (
    Entry as Entry,
    Experiment as Experiment,
    Stage as Stage,
    Trial as Trial,
)
from equistein.experiments.engine._figures import (
    AbstractFigure as AbstractFigure,
    Bars as Bars,
    Boxes as Boxes,
    Configurations as Configurations,
    Curves as Curves,
    density_of_floor as density_of_floor,
    Histograms as Histograms,
    level_of_floor as level_of_floor,
    level_of_models as level_of_models,
    Own as Own,
    Shown as Shown,
)
from equistein.experiments.engine._outcomes import seed_outcome as seed_outcome
from equistein.experiments.engine._run import perform as perform
