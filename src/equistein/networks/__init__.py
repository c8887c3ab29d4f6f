"""Networks: scalar functions of a point."""

from equistein.networks._mlp import MLP as MLP
