"""Figures from arrays. The only importer of matplotlib."""

from equistein.plotting._charts import (
    against_exact as against_exact,
    boxes as boxes,
    curves as curves,
    error_bars as error_bars,
    histograms as histograms,
    marginals as marginals,
    parity as parity,
    side_by_side as side_by_side,
)
from equistein.plotting._molecules import (
    molecule_viewer as molecule_viewer,
    molecules as molecules,
    Page as Page,
)
from equistein.plotting._points import (
    configurations as configurations,
    figure_file as figure_file,
    image_rows as image_rows,
    planar_energies as planar_energies,
    planar_samples as planar_samples,
    run_figure as run_figure,
    spatial_samples as spatial_samples,
)
