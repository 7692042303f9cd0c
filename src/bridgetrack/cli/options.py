"""Options that several commands share, how they are parsed, and the files they name."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer

from bridgetrack.annotations.files import is_mask_file
from bridgetrack.api import check_link_scores, open_link_scores
from bridgetrack.cli.console import show
from bridgetrack.errors import InputError, ModelError
from bridgetrack.features.link_scores import with_link_scores
from bridgetrack.hypotheses.events import EVERYTHING, EventKinds
from bridgetrack.io.columns import parse_columns
from bridgetrack.io.results import FORMATS
from bridgetrack.models.library import find_model_file
from bridgetrack.notes import Note
from bridgetrack.option import Option, options_of
from bridgetrack.pipeline.inputs import Reading, check_belonging, open_answers, open_files
from bridgetrack.pipeline.project import is_project, load_project
from bridgetrack.pipeline.scene import Scene, prepare
from bridgetrack.spread import connect, worth_it

Command = TypeVar("Command", bound=Callable[..., None])
Made = TypeVar("Made")


def a_name(text: str) -> Path:
    """The name of a file or folder; an empty one would mean the current folder."""
    if not text:
        raise typer.BadParameter(
            "the name is empty (was a variable in a script not set?); use '.' for the current "
            "folder"
        )
    return Path(text)


Without = Annotated[
    str,
    typer.Option(
        "--without",
        metavar="LIST",
        help="Kinds of events that do not occur in the movie: divisions, appearances, "
        "disappearances, gaps, splits, merges, specks (masks that are not cells).",
        show_default=False,
    ),
]
Labels = Annotated[
    Path,
    typer.Argument(
        metavar="LABELS",
        help="Label movie (TIFF stack, folder of TIFFs, OME-TIFF, zarr, .npy) or a CSV table of "
        "detections.",
        show_default=False,
        parser=a_name,
    ),
]
Image = Annotated[
    Path | None,
    typer.Option(
        "--image",
        metavar="IMAGE",
        help="The movie that the labels were made from.",
        parser=a_name,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Run on a dask cluster: the address or the file of its scheduler, 'local' for "
        "processes on this computer, 'here' for no cluster. The result is the same.",
    ),
]
Formats = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="LIST",
        help="Formats to write: "
        + ", ".join(f"{name} ({words})" for name, words in FORMATS.items())
        + ".",
    ),
]
GroundTruth = Annotated[
    Path,
    typer.Option(
        "--ground-truth",
        metavar="CTC_DIR",
        help="Ground truth in the format of the Cell Tracking Challenge: a folder with masks and "
        "man_track.txt, or an NN_GT folder.",
        show_default=False,
        parser=a_name,
    ),
]


Weights = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="Model file, or its name in the model library; by default the shipped model.",
        parser=a_name,
    ),
]


LinkScoresFile = Annotated[
    Path | None,
    typer.Option(
        "--link-scores",
        metavar="FILE",
        help="Scores, 0 to 1, that another program gave to links: a table of frame, source, target "
        "(labels) and score, or a GEFF store with scored edges.",
        parser=a_name,
    ),
]


Repair = Annotated[
    bool,
    typer.Option(
        "--repair",
        help="First repair labels where the image and the neighbouring frames show that cells "
        "were joined, cut, missed or are not cells; the repaired labels and a list of all changes "
        "are part of the result.",
    ),
]


def out_option(metavar: str, text: str) -> Any:
    """``--out``, which a command needs."""
    return typer.Option("--out", metavar=metavar, help=text, show_default=False, parser=a_name)


OutFolder = Annotated[Path, out_option("DIR", "Folder for the results.")]


def answers_option(text: str) -> Any:
    """``--annotations``, with its help."""
    return typer.Option("--annotations", metavar="A.json", help=text, parser=a_name)


def channel_option(what: str = "") -> Any:
    """``--channel``: the one that shows the cells; `what` for is added to the help."""
    text = f"Number (from 0) or name of the channel with the cells{what}; by default the first one."
    return typer.Option("--channel", metavar="C", help=text)


def parse_scale(text: str | None) -> tuple[float, ...] | None:
    """Two or three positive numbers separated by commas."""
    if text is None:
        return None
    try:
        numbers = tuple(float(part) for part in text.replace(";", ",").split(","))
    except ValueError:
        numbers = ()
    if len(numbers) not in (2, 3) or not all(math.isfinite(n) and n > 0 for n in numbers):
        raise typer.BadParameter(
            f"--scale {text!r} must be two or three positive numbers, e.g. 0.65,0.65 (Y,X) or "
            "1,0.09,0.09 (Z,Y,X)"
        )
    return numbers


def parse_channel(text: str | None) -> int | str:
    """The number or the name of a channel; the first one where none is named."""
    if text is None:
        return 0
    return int(text) if text.isdecimal() else text


def parse_choices(text: str, known: Collection[str], option: str) -> tuple[str, ...]:
    """Words from a list, separated by commas, each once."""
    words = tuple(dict.fromkeys(w for w in (p.strip().lower() for p in text.split(",")) if w))
    unknown = [w for w in words if w not in known]
    if unknown or not words:
        wrong = unknown[0] if unknown else text
        raise typer.BadParameter(f"{option} {wrong!r} is unknown; choose from {','.join(known)}")
    return words


def parse_kinds(text: str) -> EventKinds:
    """The events that can occur, from a list of those that cannot, separated by commas."""
    try:
        return EventKinds.without(w for w in (p.strip().lower() for p in text.split(",")) if w)
    except InputError as error:
        raise typer.BadParameter(f"--without: {error}") from error


Scale = Annotated[
    str | None,
    typer.Option(
        "--scale",
        metavar="[Z,]Y,X",
        help="Size of a pixel along each axis, in micrometres; by default read from the file.",
    ),
]
Unit = Annotated[
    Literal["micrometer", "pixel"] | None,
    typer.Option("--unit", metavar="UNIT", help="Unit of the scale: micrometer or pixel."),
]
FrameInterval = Annotated[
    float | None,
    typer.Option("--frame-interval", metavar="MINUTES", help="Minutes between two frames."),
]
Axes = Annotated[
    str | None,
    typer.Option(
        "--axes", metavar="ORDER", help="Axis order of the file, letters from TCZYX, e.g. TZYX."
    ),
]
ImageAxes = Annotated[
    str | None, typer.Option("--image-axes", metavar="ORDER", help="Axis order of the image.")
]

Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="LIST",
        help="Column names of a table of detections if they are not recognised, e.g. "
        "y=Row,x=Col,t=Image; the others are z, id, track, parent, label, area, radius.",
    ),
]


def reads_movie(command: Command) -> Command:
    """Give a command that takes ``reading`` the options of a `Reading` in its place."""
    kinds: dict[str, Any] = {
        "axes": Axes, "scale": Scale, "unit": Unit, "frame_interval": FrameInterval,
        "image_axes": ImageAxes, "columns": Columns,
    }  # fmt: skip
    options = {name: _keyword(name, None, kind) for name, kind in kinds.items()}

    @wraps(command)
    def with_reading(**given: Any) -> None:
        known = {name: given.pop(name) for name in options}
        known["scale"] = parse_scale(known["scale"])
        known["columns"] = _columns(known["columns"])
        command(**given, reading=Reading(**known))

    own = inspect.signature(command, eval_str=True).parameters
    found = [q for p in own.values() for q in (options.values() if p.name == "reading" else [p])]
    return _with_parameters(with_reading, found)


def _columns(text: str | None) -> dict[str, str] | None:
    try:
        return None if text is None else parse_columns(text)
    except InputError as error:
        raise typer.BadParameter(f"--{error}") from error


def one_option_each(
    settings: type[Any], *names: str, panel: str | None = None
) -> Callable[[Command], Command]:
    """Give a command that takes ``**settings`` an option for every field (or those of `names`).

    `panel` is the heading of the options in the help.
    """

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters.values()
        added = [_parameter(each, panel) for each in options_of(settings, *names)]
        return _with_parameters(command, [p for p in own if p.kind is not p.VAR_KEYWORD] + added)

    return decorate


def make(settings: Callable[..., Made], **values: Any) -> Made:
    """Settings from what was given on the command line."""
    try:
        return settings(**values)
    except InputError as error:
        raise typer.BadParameter(str(error)) from error


def _parameter(each: Option, panel: str | None) -> inspect.Parameter:
    flag, text = f"--{each.name.replace('_', '-')}", each.help
    if each.choices and each.kind is str:
        text = f"{text.rstrip('.')}: {', '.join(each.choices)}."
    if each.kind is bool:
        shown = typer.Option(f"{flag}/--no-{flag[2:]}", help=text, rich_help_panel=panel)
    else:
        metavar = {int: "N", float: "X", str: "WORD"}[each.kind]
        shown = typer.Option(flag, help=text, metavar=metavar, rich_help_panel=panel)
    kind = each.kind | None if each.may_be_none else each.kind
    return _keyword(each.name, each.default, Annotated[kind, shown])


def _keyword(name: str, default: Any, kind: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _with_parameters(command: Any, parameters: Sequence[inspect.Parameter]) -> Any:
    command.__signature__ = inspect.Signature(parameters)
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


# ---------------------------------------------------------------- what options name


def refuse_masks_alone(answers: Path | None, flag: str, given: bool) -> None:
    """Refuse a file of mask annotations without the option that uses them."""
    if answers is not None and is_mask_file(answers) and not given:
        raise typer.BadParameter(
            f"--annotations {answers}: these annotations are about masks and need {flag}"
        )


def files_behind(given: Path | None) -> tuple[Path, ...]:
    """The files that a model (also by its name in the library) or a project is read from."""
    if given is None:
        return ()
    if is_project(given):
        project = load_project(given)
        movies = (project.labels, project.image)
        return (given, *(movie.path for movie in movies if movie is not None))
    with suppress(ModelError):  # told when it is opened
        file = find_model_file(given)
        return () if file is None else (file,)
    return (given,)


def open_scene(
    labels: Path,
    image: Path | None,
    annotations: Path | None,
    reading: Reading,
    notes: list[Note],
    *,
    kinds: EventKinds = EVERYTHING,
    link_scores: Path | None = None,
) -> Scene:
    """Open and prepare a movie with its answers; adds to `notes`."""
    answers, scores = open_answers(annotations), open_link_scores(link_scores)
    features = None if scores is None else with_link_scores(scores)
    cells, pixels = open_files(labels, image, reading, notes)
    scene = show(prepare(cells, pixels, answers, features, kinds))
    check_link_scores(scores, scene)
    if answers is not None and annotations is not None:
        check_belonging(scene, labels, annotations, notes)
    return scene


@contextmanager
def cluster_at(scheduler: str | None, pixels: int = 0) -> Iterator[Any]:
    """A dask client, or processes on this computer, while they are used; or None.

    Without a scheduler, local processes are used if it is worth it for this number of ``pixels``
    to segment; ``here`` always means None.
    """
    if scheduler is None and worth_it(pixels):
        scheduler = "local"
    if scheduler in (None, "here"):
        yield None
        return
    with connect(scheduler) as client:
        yield client
