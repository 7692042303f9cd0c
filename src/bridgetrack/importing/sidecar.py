"""The sidecar that says what the package's own tables hold: units, scale and versions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from bridgetrack.errors import InputError
from bridgetrack.movie.geometry import Geometry
from bridgetrack.movie.geometry_json import geometry_from_json

SIDECAR = "units.json"


@dataclass(frozen=True)
class Sidecar:
    """What ``units.json`` says.

    Parameters
    ----------
    geometry
        Extent, scale and units of the movie.
    units
        Unit per column of ``detections.csv``.
    dtypes
        Type of the columns of ``detections.csv`` that are not among the standard ones.
    notes
        Notes of the tracks.
    """

    geometry: Geometry
    units: dict[str, str]
    dtypes: dict[str, str]
    notes: tuple[str, ...]


def read_sidecar(table: Path) -> Sidecar | None:
    """The sidecar beside a table, None where there is none or it describes other files.

    Raises
    ------
    InputError
        Where it is there but unreadable.
    """
    path = table.parent / SIDECAR
    if not path.is_file():
        return None
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict) or table.name not in data.get("files", []):
            return None
        return Sidecar(
            geometry=geometry_from_json(data["geometry"]),
            units={str(k): str(v) for k, v in data["units"].items()},
            dtypes={str(k): str(v) for k, v in data.get("dtypes", {}).items()},
            notes=tuple(str(n) for n in data.get("notes", [])),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path}: not a sidecar that this program wrote ({error!r}); remove it or export again"
        ) from error
