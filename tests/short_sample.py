"""The first frames of the sample movie as a sample of its own, for tests of the whole way."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

from bridgetrack.files import sample_folder


def short_sample(folder: Path, frames: int = 12) -> Path:
    """Copy images, truth and clicks of the first frames into a folder.

    Returns
    -------
    Path
        The folder, laid out as `sample_folder`.
    """
    whole, truth = sample_folder(), Path("01_GT") / "TRA"
    (folder / truth).mkdir(parents=True)
    (folder / "01").mkdir()
    for t in range(frames):
        for name in (Path("01") / f"t{t:03d}.tif", truth / f"man_track{t:03d}.tif"):
            shutil.copy(whole / name, folder / name)
    tracks = [
        [int(n) for n in line.split()]
        for line in (whole / truth / "man_track.txt").read_text().splitlines()
    ]
    kept = [(k, a, min(b, frames - 1), p) for k, a, b, p in tracks if a < frames]
    (folder / truth / "man_track.txt").write_text(
        "".join(" ".join(map(str, row)) + "\n" for row in kept)
    )
    clicks = json.loads((whole / "annotations.json").read_text())
    clicks["movie"]["n_frames"] = frames
    clicks["annotations"] = [a for a in clicks["annotations"] if _last_frame(a) < frames]
    (folder / "annotations.json").write_text(json.dumps(clicks))
    return folder


def busy_part(folder: Path) -> Path:
    """Write a small part of five frames, with many clicks, into a folder laid out as the sample."""
    whole, truth, first, corner, side = sample_folder(), Path("01_GT") / "TRA", 17, (144, 72), 200
    part = tuple(slice(c, c + side) for c in corner)
    calibrated = {"resolution": (1 / 0.645,) * 2, "metadata": {"unit": "um", "finterval": 600.0}}
    (folder / truth).mkdir(parents=True)
    (folder / "01").mkdir()
    seen: dict[int, list[int]] = {}
    for t in range(5):
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
    clicks["movie"] |= {"n_frames": 5, "shape": [side, side]}
    clicks["annotations"] = [a for a in clicks["annotations"] if _moved(a, first, corner, side)]
    (folder / "annotations.json").write_text(json.dumps(clicks))
    return folder


def _moved(annotation: Any, first: int, corner: tuple[int, int], side: int) -> bool:
    """Count frames and positions from those of a part; whether all cells lie well within."""
    cells = [c for e in annotation["events"] for ends in ("sources", "targets") for c in e[ends]]
    for cell in cells:
        cell["frame"] -= first
        cell["position"] = [x - c for x, c in zip(cell["position"], corner, strict=True)]
    return all(0 <= c["frame"] < 5 and all(6 < x < side - 6 for x in c["position"]) for c in cells)


def _last_frame(annotation: dict[str, list[dict[str, list[dict[str, int]]]]]) -> int:
    return max(
        cell["frame"]
        for event in annotation["events"]
        for side in ("sources", "targets")
        for cell in event.get(side, [])
    )
