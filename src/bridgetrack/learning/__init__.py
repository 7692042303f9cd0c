"""Learning from partial annotations: structured max-margin training for any structured model.

Notation of the papers (001 is Lou and Hamprecht 2012; docs/method.md has all):

=========  ==================================================================================
x, y*      structured input and its partial annotation
Y          all outputs of x; Y* those compatible with y*, Y° the others
phi(x, y)  joint feature, shape (d,); the score is ``f(x, y; w) = <w, phi(x, y)>``, maximised
Delta      task loss, zero exactly on Y*
P, R       penalty and reward: the risk is ``P(w) - R(w)``, both convex, per annotation
a_k, b_k   slope and offset of a lower bound ``P(w) >= <a_k, w> + b_k``
v_t, c_t   ``<v_t, w> + c_t >= -R(w)``, equal at w_t
lambda     weight of the regulariser; w0 or prior: where it is zero; M: its metric
alpha      multipliers of the bounds; gap: objective minus a certified lower bound
epsilon    wanted gap of one convex problem; rho: its rate; eta: smallest gain worth going on
w^d, D     weights of domain d of D, tied to shared weights w by (another) rho: see `transfer`
=========  ==================================================================================

Nothing here knows what x and y are: see `StructuredModel`.
"""

from bridgetrack.learning.bundle import Bundle
from bridgetrack.learning.online import train_perceptron
from bridgetrack.learning.options import (
    ALGORITHM_1,
    CRITERIA,
    LEARNERS,
    LOSSES,
    LearningOptions,
    Loss,
    Treatment,
)
from bridgetrack.learning.regularizers import L1, L2, Regularizer
from bridgetrack.learning.result import Stage, TrainingResult, TrainingStep
from bridgetrack.learning.structured_model import Inferred, Sample, StructuredModel
from bridgetrack.learning.trainer import fit, train
from bridgetrack.learning.transfer import Domain, Stacked

__all__ = [
    "ALGORITHM_1",
    "CRITERIA",
    "L1",
    "L2",
    "LEARNERS",
    "LOSSES",
    "Bundle",
    "Domain",
    "Inferred",
    "LearningOptions",
    "Loss",
    "Regularizer",
    "Sample",
    "Stacked",
    "Stage",
    "StructuredModel",
    "TrainingResult",
    "TrainingStep",
    "Treatment",
    "fit",
    "train",
    "train_perceptron",
]
