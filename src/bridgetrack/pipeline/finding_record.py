"""How cells were found, kept beside them: the record that ``bridgetrack segment`` leaves."""

from __future__ import annotations

from dataclasses import asdict
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field

from bridgetrack.errors import InputError
from bridgetrack.pipeline.finding import Finding
from bridgetrack.schema import FileFormat, OpenEntry, of_dataclass
from bridgetrack.segmentation.pixels import PIXEL_MODEL_FILE, PixelModel, pixel_model_to_json
from bridgetrack.segmentation.settings import Choose, SegmentationSettings

T = TypeVar("T")
_Settings = Annotated[SegmentationSettings, of_dataclass(SegmentationSettings)]


class _Content(OpenEntry):
    backend: str
    choose: Choose = "plain"
    settings: _Settings | None = None
    network: str | None = None
    candidates: bool = False
    gap: Annotated[float, Field(ge=0)] = 0.0
    repaired: bool = False
    pixel_model: Annotated[PixelModel, PIXEL_MODEL_FILE.nested] | None = None
    channel: int | str = 0

    def finding(self) -> Finding | None:
        # What was repaired, or found by what others say, is so again from the masks as they are.
        if self.repaired:
            return None
        # Cells of a network were taken as they are before they could be candidates, whatever way
        # of choosing was written down.
        choose = self.choose if self.backend == "builtin" or self.candidates else "plain"
        model = self.pixel_model or self.network
        return Finding(self.settings, choose, self.backend, model, gap=self.gap)


FINDING_FILE = FileFormat(
    "bridgetrack-segmentation",
    1,
    "a record of how cells were found",
    _Content,
    _Content.finding,
    largest=100_000_000,
)
"""Records of how cells were found, as `Finding`; None where others had a part in it."""

_CHANNEL_FILE: FileFormat[_Content, int | str] = FileFormat(
    FINDING_FILE.name,
    FINDING_FILE.version,
    FINDING_FILE.what,
    _Content,
    attrgetter("channel"),
    largest=FINDING_FILE.largest,
)
"""The same records, as the number or name of the channel that showed the cells."""


def beside_labels(cells: Path, what: str, suffix: str = "json") -> Path:
    """The file beside labels that holds their record (``"run"``) or pixel model (``"pixels"``)."""
    name = cells.stem if cells.suffix.lower() in (".tif", ".tiff", ".zarr") else cells.name
    return cells.with_name(f"{name.removesuffix('.ome')}.{what}.{suffix}")


def how_found(cells: Path) -> Finding | None:
    """How cells were found, by the record beside them; None where nothing is known."""
    return _read(FINDING_FILE, cells)


def channel_found(cells: Path) -> int | str:
    """The channel that showed cells, by the record beside them; the first where none is known."""
    return _read(_CHANNEL_FILE, cells) or 0


def _read(kind: FileFormat[Any, T], cells: Path) -> T | None:
    record = beside_labels(cells, "run")
    if not record.exists():
        return None
    try:
        return kind.read(record)
    except InputError:
        return None


def finding_to_json(finding: Finding) -> dict[str, Any]:
    """How cells were found, as the JSON values of its file."""
    pixels = finding.model if isinstance(finding.model, PixelModel) else None
    return {
        **FINDING_FILE.head,
        **summary_of(finding),
        "network": finding.model if isinstance(finding.model, str) else None,
        "repaired": finding.brought,
        "pixel_model": None if pixels is None else pixel_model_to_json(pixels),
    }


def summary_of(finding: Finding) -> dict[str, Any]:
    """The same without what strokes taught, of which it says how much there is."""
    pixels = finding.model if isinstance(finding.model, PixelModel) else None
    return {
        "backend": finding.backend,
        "choose": finding.choose,
        "candidates": finding.chooses,
        "gap": finding.gap,
        "judged_as": finding.kind,
        "settings": None if finding.settings is None else asdict(finding.settings),
        "pixels": None if pixels is None else {
            "classes": list(pixels.classes),
            "painted": len(pixels.painted.classes),
            "diameter": pixels.diameter,
        },
    }  # fmt: skip
