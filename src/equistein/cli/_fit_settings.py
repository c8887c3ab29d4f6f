"""The settings that a fit has by default."""

from collections.abc import Mapping

from equistein.models import (
    AbstractSettings,
    ContrastiveSettings,
    DenoisingSettings,
    ImageSettings,
)

FIT_SETTINGS: Mapping[str, AbstractSettings] = {
    "features": ContrastiveSettings(),
    "graph": DenoisingSettings(),
    "unet": ImageSettings(),
}
"""Those of each network."""
