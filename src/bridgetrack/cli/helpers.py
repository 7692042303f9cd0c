"""Options of ``bridgetrack train`` for earlier movies and models, and how they are opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bridgetrack.cli.console import Stopwatch, show

if TYPE_CHECKING:
    from bridgetrack.models.model import Model
    from bridgetrack.pipeline.scene import Scene
    from bridgetrack.progress import Steps
    from bridgetrack.training.options import TrainingOptions
    from bridgetrack.training.outcome import Training
    from bridgetrack.training.sources import Source, Strategy

PANEL = "Earlier movies and models"

SourceFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--source",
        metavar="MODEL|PROJECT",
        rich_help_panel=PANEL,
        help="A model (a file, or a name in the library), or a project file saved from the plugin "
        "(its movie with its answers); may be given several times.",
        show_default=False,
    ),
]
StrategyName = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        metavar="NAME",
        rich_help_panel=PANEL,
        help="What to do with the sources: transfer (without a word, for projects), union or "
        "source; prior (without a word, for a model) or delta.",
        show_default=False,
    ),
]
Rho = Annotated[
    str,
    typer.Option(
        "--rho",
        metavar="auto|X",
        rich_help_panel=PANEL,
        help="How tightly transfer ties the movies; auto chooses by cross-validation.",
    ),
]


@dataclass(frozen=True)
class Help:
    """What a training may use besides the annotations of its movie.

    Parameters
    ----------
    strategy
        See `training.strategies`.
    sources
        Opened.
    tie
        rho, or None to choose it.
    """

    strategy: Strategy
    sources: tuple[Source, ...]
    tie: float | None

    def steps(self, scene: Scene, prior: Model | None, options: TrainingOptions) -> Steps[Training]:
        """The training."""
        from bridgetrack.training.train import strategy_steps

        return strategy_steps(self.strategy, scene, self.sources, prior, options, tie=self.tie)


def open_help(
    files: list[Path] | None, strategy: str | None, rho: str, prior: Model | None, watch: Stopwatch
) -> Help | None:
    """Open the sources; None where there are none.

    Raises
    ------
    typer.BadParameter
        Where the options do not go together; nothing has been opened at length then.
    BridgetrackError
        Where a source cannot be used.
    """
    from bridgetrack.training.sources import STRATEGIES

    tie = _number(rho)
    if strategy is not None and strategy not in STRATEGIES:
        raise typer.BadParameter(
            f"there is no strategy {strategy!r}; choose from {', '.join(STRATEGIES)}"
        )
    if not files:
        if strategy not in (None, "target"):
            raise typer.BadParameter(f"--strategy {strategy} needs a --source")
        if tie is not None:
            raise typer.BadParameter("--rho needs a --source that is a project file")
        return None
    from bridgetrack.models.model import Model, check_usable
    from bridgetrack.pipeline.project import is_project

    projects = [is_project(path) for path in files]
    name = strategy or ("transfer" if any(projects) else "prior")
    _check(name, files, projects, tie, prior)
    found = tuple(show(_opener()(path), watch) for path in files)
    if name == "prior" and isinstance(found[0], Model):
        check_usable(found[0], files[0])
    return Help(name, found, tie)


def _check(
    name: str, files: list[Path], projects: list[bool], tie: float | None, prior: Model | None
) -> None:
    """Refuse what can be seen to be wrong before movies are opened."""
    model = next((path for path, project in zip(files, projects, strict=True) if not project), None)
    movie = next((path for path, project in zip(files, projects, strict=True) if project), None)
    if name == "target":
        raise typer.BadParameter("--strategy target uses no --source; leave one of them out")
    if name in ("source", "union", "transfer") and model is not None:
        raise typer.BadParameter(
            f"--strategy {name} learns from annotated movies, and {model} is not a project file; "
            "a model goes with --strategy prior or delta"
        )
    if name in ("prior", "delta") and (movie is not None or len(files) > 1):
        what = f"{movie} is a project file" if movie is not None else f"{len(files)} were given"
        raise typer.BadParameter(
            f"--strategy {name} starts from one model file, and {what}; projects go with "
            "--strategy transfer or union"
        )
    if name == "prior" and prior is not None:
        raise typer.BadParameter(
            "--prior and --strategy prior with a --source both say where to start; give one"
        )
    if tie is not None and name != "transfer":
        raise typer.BadParameter(f"--rho goes with --strategy transfer, not with {name}")


def _opener() -> Callable[[Path], Steps[Source]]:
    from bridgetrack.training.sources import open_source

    return open_source


def _number(rho: str) -> float | None:
    if rho == "auto":
        return None
    try:
        number = float(rho)
    except ValueError:
        number = -1.0
    if not number > 0:
        raise typer.BadParameter(f"--rho {rho!r} must be auto or a positive number")
    return number


def needs_annotations(files: list[Path] | None, strategy: str | None) -> None:
    """Refuse a training without annotations that has nothing else to learn from.

    Raises
    ------
    typer.BadParameter
        Unless annotated movies stand in.
    """
    if not files or strategy in ("target", "prior", "delta"):
        raise typer.BadParameter(
            "--annotations is missing; only with --source PROJECT can a movie do without"
        )
