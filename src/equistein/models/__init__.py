"""Ready-made models for a group and data; reading, judging and reporting them."""

from equistein.models._contrastive import contrastive_model as contrastive_model
from equistein.models._dataset import Dataset as Dataset, read_dataset as read_dataset
from equistein.models._denoising import (
    denoising_model as denoising_model,
    formulas_of as formulas_of,
    image_model as image_model,
    of_formula as of_formula,
)
from equistein.models._energies import (
    energy_for as energy_for,
    kernel_for as kernel_for,
)
from equistein.models._for_data import (
    for_data as for_data,
    for_dataset as for_dataset,
    network_of as network_of,
)
from equistein.models._judge import image_bits as image_bits, judge as judge
from equistein.models._load import load as load, pretrained as pretrained
from equistein.models._model import Model as Model
from equistein.models._molecules import (
    molecule_numbers as molecule_numbers,
    shape_numbers as shape_numbers,
    shape_panels as shape_panels,
    Shapes as Shapes,
    shapes_of as shapes_of,
)
from equistein.models._report import (
    FIT_METRICS as FIT_METRICS,
    fit_text as fit_text,
    write_fit_report as write_fit_report,
)
from equistein.models._settings import (
    AbstractSettings as AbstractSettings,
    ContrastiveSettings as ContrastiveSettings,
    DenoisingSettings as DenoisingSettings,
    ImageSettings as ImageSettings,
    Problem as Problem,
)
