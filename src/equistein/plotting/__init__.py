"""Figures from arrays. The only importer of matplotlib."""

from equistein.plotting._clusters import bars as bars, configurations as configurations
from equistein.plotting._energies import planar_energies as planar_energies
from equistein.plotting._images import (
    image_rows as image_rows,
    reliability_diagram as reliability_diagram,
)
from equistein.plotting._interactive import (
    molecule_viewer as molecule_viewer,
    Page as Page,
)
from equistein.plotting._lines import (
    boxes as boxes,
    costs as costs,
    curves as curves,
    histograms as histograms,
)
from equistein.plotting._molecules import molecules as molecules, picture as picture
from equistein.plotting._planar import (
    planar_samples as planar_samples,
    spatial_samples as spatial_samples,
)
