"""What looks at a fit after each epoch."""

from equistein.training.callbacks._base import AbstractCallback as AbstractCallback
from equistein.training.callbacks._early_stopping import (
    EarlyStopping as EarlyStopping,
)
from equistein.training.callbacks._monitor import Monitor as Monitor
from equistein.training.callbacks._on_epoch import OnEpoch as OnEpoch
