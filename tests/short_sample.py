"""A part of the sample movie as a sample of its own, for tests of the whole way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

from bridgetrack.files import sample_folder


def busy_part(
    folder: Path,
    frames: int = 5,
    first: int = 17,
    corner: tuple[int, int] = (144, 72),
    side: int = 200,
) -> Path:
    """Write a small part of some frames, with many clicks, into a folder laid out as the sample."""
    whole, truth = sample_folder(), Path("01_GT") / "TRA"
    part = tuple(slice(c, c + side) for c in corner)
    calibrated = {"resolution": (1 / 0.645,) * 2, "metadata": {"unit": "um", "finterval": 600.0}}
    (folder / truth).mkdir(parents=True)
    (folder / "01").mkdir()
    seen: dict[int, list[int]] = {}
    for t in range(frames):
        for name in ("01/t{:03d}.tif", f"{truth}/man_track{{:03d}}.tif"):
            pixels = tifffile.imread(whole / name.format(first + t))[part]
            tifffile.imwrite(folder / name.format(t), pixels, imagej=True, **calibrated)
        for label in np.unique(pixels[pixels > 0]).tolist():
            seen.setdefault(label, []).append(t)
    rows = np.loadtxt(whole / truth / "man_track.txt", dtype=int).tolist()
    kept = [
        (k, seen[k][0], seen[k][-1], p * (seen.get(p, [-9])[-1] == seen[k][0] - 1))
        for k, _, _, p in rows
        if k in seen
    ]
    np.savetxt(folder / truth / "man_track.txt", kept, "%d")
    clicks = json.loads((whole / "annotations.json").read_text())
    clicks["movie"] |= {"n_frames": frames, "shape": [side, side]}
    listed = clicks["annotations"]
    clicks["annotations"] = [a for a in listed if _moved(a, first, frames, corner, side)]
    (folder / "annotations.json").write_text(json.dumps(clicks))
    return folder


def _moved(annotation: Any, first: int, frames: int, corner: tuple[int, int], side: int) -> bool:
    """Count frames and positions from those of a part; whether all cells lie well within."""
    cells = [c for e in annotation["events"] for ends in ("sources", "targets") for c in e[ends]]
    for cell in cells:
        cell["frame"] -= first
        cell["position"] = [x - c for x, c in zip(cell["position"], corner, strict=True)]
    return all(
        0 <= c["frame"] < frames and all(6 < x < side - 6 for x in c["position"]) for c in cells
    )
