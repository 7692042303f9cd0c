"""Movies of many kinds, real and simulated, to learn a starting model from and to score it on."""

from __future__ import annotations

import sys
import tempfile
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import bridgetrack as bt
from bridgetrack.annotations.truth import read_events
from bridgetrack.evaluation.truth import match_detections, true_events
from bridgetrack.movie.movie import Movie
from bridgetrack.pipeline.scene import prepare
from bridgetrack.progress import run
from bridgetrack.segmentation.movie import segment_movie
from common import DATA, DataSet, Part, part_of, some_frames
from simulator import SimulationSettings, simulate_to_folder


@dataclass(frozen=True)
class Domain:
    """A movie at a frame rate.

    Parameters
    ----------
    family
        Where it comes from; what is left out together when a starting model is judged.
    folder
        Folder below the data; empty for simulated movies.
    sequence
        Two digits; for tables of centroids the stem of the files.
    shipped
        Whether its licence (MIT, CC-BY) lets a shipped model learn from it.
    scale, interval
        Micrometres per pixel, minutes per frame.
    start, stop, stride
        Which frames are used.
    masks
        ``"truth"``, ``"points"``, ``"built-in"`` (segmented by the program) or the name of a
        folder of masks beside the movie.
    simulated
        Settings of a simulated movie.
    image
        Whether intensities are measured where there are any.
    """

    family: str
    folder: str = ""
    sequence: str = "01"
    shipped: bool = False
    scale: tuple[float, ...] | None = None
    interval: float | None = None
    start: int = 0
    stop: int | None = None
    stride: int = 1
    masks: str = "truth"
    simulated: dict[str, Any] = field(default_factory=dict)
    image: bool = True

    @property
    def name(self) -> str:
        """A name for tables."""
        parts = [self.family]
        if self.folder and self.family in ("iPSC", "Phallusia", "C2C12"):
            parts.append(self.sequence[:8])
        if self.stride > 1:
            parts.append(f"1/{self.stride}")
        if self.masks not in ("truth", "points"):
            parts.append(self.masks)
        if self.folder and not self.image:
            parts.append("no image")
        return " ".join(parts)


def _simulated(name: str, masks: str = "truth", image: bool = True, **settings: Any) -> Domain:
    return Domain(f"simulated {name}", shipped=True, masks=masks, simulated=settings, image=image)


_IPSC = {"01": 40, "03": 30, "04": 40}
SHIPPED = (
    *(
        Domain("iPSC", f"iPSC-{s}-masks", s, True, stop=n * stride, stride=stride)
        for s, n in _IPSC.items()
        for stride in (1, 2)
    ),
    Domain("iPSC", "iPSC-03-masks", "03", True, stride=4, stop=90),
    Domain("bacteria", "bacteria", shipped=True),
    Domain("bacteria", "bacteria", shipped=True, image=False),
    Domain("bacteria", "bacteria", shipped=True, stride=2),
    *(
        Domain("Phallusia", "Phallusia-lineages-csv3D", s, True, None, 2, stop=40, masks="points")
        for s in ("Pm03", "Pm05", "Pm07")
    ),
    _simulated("plain", seed=1),
    _simulated("crowded", seed=2, density=0.4, cells=150, frames=24, division_rate=0.02),
    _simulated("fast", seed=3, speed=5.0, flow=1.5, frames=30, division_rate=0.02),
    _simulated(
        "slow frames",
        seed=4,
        speed=6.0,
        drift=4.0,
        division_rate=0.04,
        frames=24,
        mitosis_frames=1,
        cells=80,
    ),
    _simulated("dividing", seed=5, division_rate=0.05, mitosis_frames=2, frames=24),
    _simulated("no image", seed=6, image=False, speed=3.0, division_rate=0.02),
    _simulated("3D", seed=7, dim=3, cells=40, frames=16, division_rate=0.02),
    _simulated("plain", "built-in", seed=8),
    _simulated(
        "crowded", "built-in", seed=9, density=0.3, cells=120, frames=24, division_rate=0.02
    ),
    _simulated("fast", "built-in", seed=10, speed=4.0, density=0.25, frames=30, division_rate=0.03),
    _simulated("dim", "built-in", seed=11, brightness=18.0, fading_rate=0.01, debris=0.2),
)
"""What the shipped starting model may learn from."""

_HELA = {"scale": (0.645, 0.645), "interval": 30.0}
HELD_OUT = (
    *(Domain("HeLa", "Fluo-N2DL-HeLa-01", **_HELA, stride=k) for k in (1, 2, 4)),
    Domain("HeLa", "Fluo-N2DL-HeLa-01", **_HELA, masks="01_AUTO"),
    Domain("SIM+", "Fluo-N2DH-SIM+-01-masks"),
    Domain("CellMigration", "CellMigration-masks", stop=30),
    Domain("CellMigration", "CellMigration-masks", stride=4),
    Domain("CE 3D", "Fluo-N3DH-CE-masks", scale=(1.0, 0.09, 0.09), interval=1),
    Domain("HL60 3D", "HL60-3D-small"),
    Domain("PSC", "PhC-C2DL-PSC-01", scale=(1.6, 1.6), interval=10, start=60, stop=100),
    Domain("PSC", "PhC-C2DL-PSC-01", scale=(1.6, 1.6), interval=10, stride=4),
    Domain("DIC", "DIC-C2DH-HeLa-01", scale=(0.19, 0.19), interval=10),
    Domain("DIC", "DIC-C2DH-HeLa-01", scale=(0.19, 0.19), interval=10, stride=2),
    Domain("U373", "PhC-C2DH-U373-02", "02", scale=(0.65, 0.65), interval=15),
    Domain("epidermis", "MouseEpidermis-01-masks"),
    Domain("C2C12", "C2C12-csv2D", "090303-C2C12P7_F0002", interval=5, masks="points"),
    Domain("C2C12", "C2C12-csv2D", "090318-C2C12P7_F0018", interval=5, masks="points"),
)
"""What it may be judged on only."""


def load_domain(domain: Domain, root: Path = DATA) -> Part | None:
    """A prepared movie with its true events; None, with a message, where it is absent."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as spare:
        if domain.simulated:
            folder = Path(spare) / "simulated"
            simulate_to_folder(SimulationSettings(**domain.simulated), folder)
        else:
            folder = root / domain.folder
        if not folder.is_dir():
            print(f"{domain.name} is skipped: there is no {folder}", file=sys.stderr)
            return None
        if domain.masks == "points":
            return _points(domain, folder)
        return _masks(domain, folder, Path(spare) / "some")


def _points(domain: Domain, folder: Path) -> Part:
    """A table of centroids."""
    table = folder / f"{domain.sequence}_nodes.csv"
    truth = bt.read_tracks_csv(table, frame_interval=domain.interval)
    scene = run(prepare(bt.read_detections_csv(table, frame_interval=domain.interval)))
    match = match_detections(scene.detections, None, truth, None)
    found = true_events(scene.detections, truth, match)
    events = read_events(found, scene.detections)
    if domain.stop is not None:
        source, target = events.sources[:, 0], events.targets[:, 0]
        frame = scene.detections.frame
        early = np.where(source >= 0, frame[source], frame[target] - 1) < domain.stop
        events = events.take(np.flatnonzero(early))
    return part_of(scene, events)


def _masks(domain: Domain, folder: Path, spare: Path) -> Part:
    """Masks, and the image where there is one."""
    frames = DataSet(
        domain.name,
        domain.folder,
        domain.sequence,
        domain.scale,
        domain.interval,
        domain.stride,
        domain.start,
        domain.stop,
    )
    other = domain.masks not in ("truth", "built-in")
    if not other and (domain.start, domain.stop, domain.stride) != (0, None, 1):
        spare.mkdir()
        folder = some_frames(folder, spare, frames)
    how = {
        "scale": domain.scale,
        "frame_interval": domain.interval and domain.interval * domain.stride,
    }
    truth = bt.read_ctc(folder / f"{domain.sequence}_GT", **how)
    raw = folder / domain.sequence
    image = bt.open_movie(raw, **how) if raw.is_dir() else None
    if domain.masks == "built-in":
        assert image is not None
        made = np.stack([np.asarray(frame.labels) for frame in segment_movie(image)])
        geometry = truth.labels.geometry
        labels: Movie = bt.open_labels(
            made, scale=geometry.scale, frame_interval=geometry.frame_interval
        )
    elif other:
        labels = bt.open_labels(folder / domain.masks, **how)
    else:
        labels = truth.labels
    scene = run(prepare(labels, image if domain.image else None))
    match = match_detections(scene.detections, labels, truth.tracks, truth.labels)
    events = read_events(true_events(scene.detections, truth.tracks, match), scene.detections)
    return part_of(replace(scene, labels=None), events)
