"""Networks: functions of a point with a symmetry."""

from equistein.networks._base import (
    AbstractNetwork as AbstractNetwork,
    AbstractNoiseNetwork as AbstractNoiseNetwork,
)
from equistein.networks._egnn import EGNN as EGNN
from equistein.networks._feature_network import (
    FeatureNetwork as FeatureNetwork,
    Symmetrized as Symmetrized,
)
from equistein.networks._mlp import MLP as MLP, NoiseMLP as NoiseMLP
from equistein.networks._steerable_cnn import (
    plain_twin as plain_twin,
    SteerableCNN as SteerableCNN,
)
from equistein.networks._steerable_conv import SteerableConv as SteerableConv
from equistein.networks._steerable_unet import SteerableUNet as SteerableUNet
