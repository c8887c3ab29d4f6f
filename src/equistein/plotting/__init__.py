"""Figures from arrays. The only importer of matplotlib."""

from equistein.plotting._against_exact import against_exact as against_exact
from equistein.plotting._charts import (
    bars as bars,
    boxes as boxes,
    curves as curves,
    error_bars as error_bars,
    histograms as histograms,
)
from equistein.plotting._configurations import configurations as configurations
from equistein.plotting._figure_file import figure_file as figure_file
from equistein.plotting._images import image_rows as image_rows, picture as picture
from equistein.plotting._marginals import marginals as marginals
from equistein.plotting._molecule_viewer import molecule_viewer as molecule_viewer
from equistein.plotting._molecules import molecules as molecules
from equistein.plotting._page import Page as Page
from equistein.plotting._particle_slider import particle_slider as particle_slider
from equistein.plotting._planar import (
    planar_energies as planar_energies,
    planar_samples as planar_samples,
)
from equistein.plotting._reliability_diagram import (
    reliability_diagram as reliability_diagram,
)
from equistein.plotting._run import (
    run_animation as run_animation,
    run_figure as run_figure,
)
from equistein.plotting._side_by_side import side_by_side as side_by_side
from equistein.plotting._spatial_samples import spatial_samples as spatial_samples
from equistein.plotting._thumbnail import thumbnail as thumbnail
