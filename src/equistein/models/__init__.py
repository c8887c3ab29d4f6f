"""What suits a symmetry and data: energies, their training, generators, judgement."""

from equistein.models._contrastive import (
    contrastive_model as contrastive_model,
    objective_for as objective_for,
)
from equistein.models._dataset import Dataset as Dataset
from equistein.models._denoising import (
    denoising_model as denoising_model,
    diffusion_steps as diffusion_steps,
)
from equistein.models._features import (
    features_of as features_of,
    image_invariants as image_invariants,
)
from equistein.models._for_data import (
    energy_for as energy_for,
    for_data as for_data,
    for_formulas as for_formulas,
)
from equistein.models._for_dataset import (
    for_dataset as for_dataset,
    network_of as network_of,
    usual_network as usual_network,
)
from equistein.models._graph_energy import (
    graph_energy_for as graph_energy_for,
    masked_energy_for as masked_energy_for,
)
from equistein.models._image_bits import image_bits as image_bits
from equistein.models._image_energy import (
    image_energy_for as image_energy_for,
    image_model as image_model,
)
from equistein.models._judge import judge as judge, Judgement as Judgement
from equistein.models._kernel import kernel_for as kernel_for
from equistein.models._load import (
    load as load,
    pretrained as pretrained,
    pretrained_names as pretrained_names,
)
from equistein.models._model import Model as Model
from equistein.models._molecule_shapes import (
    shape_numbers as shape_numbers,
    shape_panels as shape_panels,
    Shapes as Shapes,
    shapes_of as shapes_of,
)
from equistein.models._molecules import (
    known_graphs as known_graphs,
    molecule_numbers as molecule_numbers,
)
from equistein.models._network import network_for as network_for
from equistein.models._of_formula import (
    formulas_of as formulas_of,
    of_formula as of_formula,
)
from equistein.models._problem import Problem as Problem
from equistein.models._read_dataset import read_dataset as read_dataset
from equistein.models._report import (
    FIT_METRICS as FIT_METRICS,
    fit_text as fit_text,
    write_fit_report as write_fit_report,
)
from equistein.models._samplers import (
    CoolingStep as CoolingStep,
    descent as descent,
)
from equistein.models._scores import scores as scores
from equistein.models._settings import (
    AbstractSettings as AbstractSettings,
    ContrastiveSettings as ContrastiveSettings,
    DenoisingSettings as DenoisingSettings,
    ImageSettings as ImageSettings,
)
