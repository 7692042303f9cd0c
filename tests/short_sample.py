"""The first frames of the sample movie as a sample of its own, for tests of the whole way."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

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


def _last_frame(annotation: dict[str, list[dict[str, list[dict[str, int]]]]]) -> int:
    return max(
        cell["frame"]
        for event in annotation["events"]
        for side in ("sources", "targets")
        for cell in event.get(side, [])
    )
