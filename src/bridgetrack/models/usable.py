"""Whether a model can be used with the features of this program."""

from __future__ import annotations

from pathlib import Path

from bridgetrack.errors import ModelError
from bridgetrack.features.default import default_features
from bridgetrack.models.model import Model


def check_usable(model: Model, where: Path | str) -> Model:
    """The same model, if it has weights for all features of this program and for no others.

    Parameters
    ----------
    model
        As it was read.
    where
        Its file or name, for the message.

    Raises
    ------
    ModelError
        Otherwise; the message names `where` and the features.
    """
    try:
        model.aligned(default_features())
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from error
    return model
