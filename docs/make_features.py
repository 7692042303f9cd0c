"""Write docs/features.md, the table of all features: ``python docs/make_features.py``."""

from __future__ import annotations

from pathlib import Path

from bridgetrack.features.default import default_features
from bridgetrack.features.feature import Feature
from bridgetrack.hypotheses.events import Event

PAGE = Path(__file__).parent / "features.md"

HEAD = """# Features

An event's score is the sum of its features times the model's weights. There are {count} features in
one block per event; a model names them `event.feature`. Lengths are in cell diameters (the movie's
median), sizes are logarithms of areas, and intensities are compared with those of the same movie,
so that weights carry over between movies. *Predicted* means after the drift of the frame and the
motion of the neighbours. Features that need masks or an image are 0 where there is none.

This page is made from the code by `docs/make_features.py`.
"""

NEEDS = {"": "positions, areas", "mask": "masks", "image": "an image"}


def page() -> str:
    """The whole page."""
    features = default_features()
    parts = [HEAD.format(count=len(features))]
    for event in Event:
        rows = [_row(feature) for feature in features.of(event)]
        head = "| feature | formula | unit | needs |\n| --- | --- | --- | --- |\n"
        parts.append(f"\n## {event.key.capitalize()} ({len(rows)})\n\n{head}{''.join(rows)}")
    return "".join(parts)


def _row(feature: Feature) -> str:
    formula = feature.formula.replace("|", r"\|")
    return f"| `{feature.key}` | {formula} | {feature.unit} | {NEEDS[feature.needs]} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
