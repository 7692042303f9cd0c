"""Earlier movies to learn from: their project files, and how their answers are used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bridgetrack.pipeline.progress import Progress, Steps
from bridgetrack.pipeline.project_file import is_project
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.outcome import Training
from bridgetrack.training.sources import Source, open_source
from bridgetrack.training.strategies import Strategy, strategy_steps

STRATEGIES: dict[Strategy, str] = {
    "transfer": "the movies may differ",
    "union": "the movies are alike",
}
"""How earlier movies are used, in plain words."""


def without_others(paths: Sequence[Path]) -> tuple[tuple[Path, ...], str]:
    """The project files among some files, and what is wrong with the others (else empty)."""
    wrong = [path.name for path in paths if not is_project(path)]
    right = tuple(path for path in paths if path.name not in wrong)
    problem = (
        f"{', '.join(wrong)}: this is no project file. Save a project in the step Track "
        "of the earlier movie, and choose that file."
    )
    return right, problem if wrong else ""


def training_with(
    movies: tuple[Path, ...], strategy: Strategy, options: TrainingOptions | None
) -> Callable[[Scene], Steps[Training]]:
    """Training on a movie together with earlier ones."""

    def steps(scene: Scene) -> Steps[Training]:
        sources: list[Source] = []
        for path in movies:
            yield Progress(f"Opening {path.name}", 0.0)
            sources.append((yield from open_source(path)))
        return (yield from strategy_steps(strategy, scene, sources, None, options))

    return steps
