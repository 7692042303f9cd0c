"""How many true cells have a candidate region, and how many candidates there are.

    python benchmarks/candidates.py [NAME ...]

For movies with images and true masks and for simulated ones: recall of true cells at an
intersection over union above 0.5 and 0.7 and candidates per cell, before and after pruning by the
starting score; seconds of processor time per frame of proposing and of describing and scoring.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from bridgetrack.regions.describe import Described, describe_frame, described
from bridgetrack.regions.propose import propose_frame
from bridgetrack.regions.score import prune, starting_score
from region_data import REAL, Film, matched, real_film, settings_of, simulated_films

BLOCKS = {
    "HeLa": ((10, 12), (45, 47), (80, 82)),
    "PSC": ((5, 7), (25, 27), (45, 47)),  # the first half is for development
    "DIC": ((10, 12), (50, 52)),
    "U373": ((10, 14), (40, 44)),
    "HL60": ((10, 14), (50, 54)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help=f"{', '.join(REAL)} or simulated; all by default")
    names = parser.parse_args().names or [*REAL, "simulated"]
    films = [f for n in names if n in REAL for f in [real_film(n, BLOCKS[n])] if f is not None]
    if "simulated" in names:
        films += simulated_films(seed=5)
    print("| movie | cells | recall .5 / .7 | per cell | pruned .5 / .7 | per cell | seconds |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for film in films:
        print(row(film), flush=True)
    for name in set(names) & (set(REAL) - {f.name for f in films}):
        print(f"{name}: this movie is not beside the project")


def row(film: Film) -> str:
    """A line of the table."""
    settings, score = settings_of(film), starting_score()
    before, after = [], []
    n_before = n_after = n_frames = 0
    seconds = np.zeros(2)
    for first, last in film.blocks:
        frames = []
        for t in range(first, last + 1):
            image = film.image[t]
            start = time.process_time()
            regions = propose_frame(image, settings, scale=film.scale, t=t)
            middle = time.process_time()
            known = describe_frame(regions, image, settings, scale=film.scale)
            frames.append(Described(regions, known))
            seconds += middle - start, time.process_time() - middle
        start = time.process_time()
        pruned = []
        for regions, known in described(iter(frames)):
            pruned.append((regions, prune(regions, score.log_odds(known))))
        seconds[1] += time.process_time() - start
        for t, (regions, kept) in zip(range(first, last + 1), pruned, strict=True):
            truth = np.asarray(film.truth[t])
            before.append(matched(regions, t, truth)[2])
            after.append(matched(regions.select(kept), t, truth)[2])
            n_before, n_after, n_frames = n_before + len(regions), n_after + len(kept), n_frames + 1
    best, left = np.concatenate(before), np.concatenate(after)
    cells = len(best)
    proposing, describing = seconds / n_frames
    return (
        f"| {film.name} | {cells:,} | {share(best)} | {n_before / cells:.1f} | {share(left)} "
        f"| {n_after / cells:.1f} | {proposing:.2f} + {describing:.2f} |"
    )


def share(best: np.ndarray) -> str:
    """Recall at both overlaps."""
    return f"{np.mean(best > 0.5):.3f} / {np.mean(best > 0.7):.3f}"


if __name__ == "__main__":
    main()
