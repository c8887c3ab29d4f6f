"""Figures from arrays. The only importer of matplotlib."""

from equistein.plotting._bars import bars as bars
from equistein.plotting._boxes import boxes as boxes
from equistein.plotting._configurations import configurations as configurations
from equistein.plotting._curves import curves as curves
from equistein.plotting._histograms import histograms as histograms
from equistein.plotting._image_rows import image_rows as image_rows
from equistein.plotting._molecule_viewer import (
    molecule_viewer as molecule_viewer,
    Page as Page,
)
from equistein.plotting._molecules import molecules as molecules
from equistein.plotting._picture import picture as picture
from equistein.plotting._planar_energies import planar_energies as planar_energies
from equistein.plotting._planar_samples import planar_samples as planar_samples
from equistein.plotting._reliability_diagram import (
    reliability_diagram as reliability_diagram,
)
from equistein.plotting._spatial_samples import spatial_samples as spatial_samples
