"""Ready-made models for a group and data; reading, judging and reporting them."""

from equistein.models._contrastive import (
    contrastive_model as contrastive_model,
    energy_for as energy_for,
    kernel_for as kernel_for,
)
from equistein.models._dataset import read_dataset as read_dataset
from equistein.models._denoising import (
    denoising_model as denoising_model,
    image_model as image_model,
)
from equistein.models._for_data import (
    default_network as default_network,
    for_data as for_data,
    for_dataset as for_dataset,
    SETTINGS as SETTINGS,
)
from equistein.models._judge import (
    FIT_METRICS as FIT_METRICS,
    judge as judge,
    write_fit_report as write_fit_report,
)
from equistein.models._linear import (
    ComparedModel as ComparedModel,
    LinearModel as LinearModel,
)
from equistein.models._model import (
    load as load,
    Model as Model,
    pretrained as pretrained,
)
from equistein.models._settings import (
    AbstractSettings as AbstractSettings,
    ComparedSettings as ComparedSettings,
    ContrastiveSettings as ContrastiveSettings,
    DenoisingSettings as DenoisingSettings,
    ImageSettings as ImageSettings,
    LinearSettings as LinearSettings,
    Problem as Problem,
)
