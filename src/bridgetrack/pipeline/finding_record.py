"""How cells were found, kept beside them: the record that ``bridgetrack segment`` leaves."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from bridgetrack.errors import InputError
from bridgetrack.pipeline.finding import Finding
from bridgetrack.schema import FileFormat, OpenEntry, of_dataclass
from bridgetrack.segmentation.settings import Backend, Choose, SegmentationSettings

_Settings = Annotated[SegmentationSettings, of_dataclass(SegmentationSettings)]


class _Content(OpenEntry):
    backend: str
    choose: Literal["jointly", "frame", "plain"] = "plain"
    settings: _Settings | None = None
    network: str | None = None
    candidates: bool = False
    gap: Annotated[float, Field(ge=0)] = 0.0
    repaired: bool = False
    pixel_model: Any = None

    def finding(self) -> Finding | None:
        # What was repaired, or found by what others say, is so again from the masks as they are.
        # Earlier versions knew StarDist, and strokes that taught pixels.
        known = self.backend in get_args(Backend) and self.pixel_model is None
        if self.repaired or not known:
            return None
        # Cells of a network were taken as they are before they could be candidates, whatever way
        # of choosing was written down.
        chosen = self.backend == "builtin" or self.candidates
        choose: Choose = "jointly" if chosen and self.choose != "plain" else "plain"
        return Finding(self.settings, choose, self.backend, self.network, gap=self.gap)


FINDING_FILE = FileFormat(
    "bridgetrack-segmentation",
    1,
    "a record of how cells were found",
    _Content,
    _Content.finding,
    largest=100_000_000,
)
"""Records of how cells were found, as `Finding`; None where others had a part in it."""


def beside_labels(cells: Path, what: str, suffix: str = "json") -> Path:
    """The file beside labels: their record (``"run"``), or how sure they are (``"masks"``)."""
    name = cells.stem if cells.suffix.lower() in (".tif", ".tiff", ".zarr") else cells.name
    return cells.with_name(f"{name.removesuffix('.ome')}.{what}.{suffix}")


def how_found(cells: Path) -> Finding | None:
    """How cells were found, by the record beside them; None where nothing is known."""
    record = beside_labels(cells, "run")
    if not record.exists():
        return None
    try:
        return FINDING_FILE.read(record)
    except InputError:
        return None


def finding_to_json(finding: Finding) -> dict[str, Any]:
    """How cells were found, as the JSON values of its file."""
    return {
        **FINDING_FILE.head,
        "backend": finding.backend,
        "network": finding.network,
        "choose": finding.choose,
        "candidates": finding.chooses,
        "gap": finding.gap,
        "judged_as": finding.kind,
        "settings": None if finding.settings is None else asdict(finding.settings),
        "repaired": finding.brought,
    }
