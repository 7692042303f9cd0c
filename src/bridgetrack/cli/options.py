"""How functions become commands, and the options that several of them have."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from bridgetrack.annotations.files import is_mask_file
from bridgetrack.cli.console import Answer
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import EventKinds
from bridgetrack.io.columns import parse_columns
from bridgetrack.io.results import FORMATS
from bridgetrack.option import Option, options_of
from bridgetrack.pipeline.inputs import Reading
from bridgetrack.pipeline.windows import parse_memory
from bridgetrack.spread import connect, worth_it


def command(function: Callable[..., Answer | None]) -> Callable[..., None]:
    """A function as a command of the program.

    A parameter whose type is a dataclass of settings becomes one option for each field; with
    ``Annotated[Settings, "one", "two"]``, for these fields. An `Answer` that it returns is printed,
    and the command gets the option ``--json``.
    """
    own = inspect.signature(function, eval_str=True)
    parameters, settings = list[inspect.Parameter](), dict[str, tuple[type[Any], list[str]]]()
    for each in own.parameters.values():
        kind, *names = get_args(each.annotation) or (each.annotation,)
        if isinstance(kind, type) and is_dataclass(kind):
            fields = _options(kind, *names)
            settings[each.name] = kind, [field.name for field in fields]
            parameters += fields
        else:
            parameters.append(each.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    answers = own.return_annotation is Answer
    if answers:
        parameters.append(_keyword("json", False, Json))

    @wraps(function)
    def run(**given: Any) -> None:
        as_json = given.pop("json", False)
        for name, (kind, fields) in settings.items():
            values = {field: given.pop(field) for field in fields}
            try:
                given[name] = kind(**values)
            except InputError as error:
                raise typer.BadParameter(str(error)) from error
        found = function(**given)
        if found is not None:
            found.show(as_json)

    made: Any = run
    made.__signature__ = inspect.Signature(parameters)
    made.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _options(settings: type[Any], *names: str) -> list[inspect.Parameter]:
    """An option for each field of a dataclass."""
    if settings is Reading:
        return [_keyword(name, None, _READING[name]) for name in names or _READING]
    return [_option(each) for each in options_of(settings, *names)]


def _option(each: Option) -> inspect.Parameter:
    word, text = each.name.strip("_").replace("_", "-"), each.help
    if each.choices and each.kind is str:
        text = f"{text.rstrip('.')}: {', '.join(each.choices)}."
    if each.kind is bool:
        shown = typer.Option(f"--{word}/--no-{word}", help=text)
    else:
        metavar = {int: "N", float: "X", str: "WORD"}[each.kind]
        shown = typer.Option(f"--{word}", help=text, metavar=metavar)
    kind = each.kind | None if each.may_be_none else each.kind
    return _keyword(each.name, each.default, Annotated[kind, shown])


def _keyword(name: str, default: Any, kind: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


# ------------------------------------------------------------------ values of options


def a_name(text: str) -> Path:
    """The name of a file or folder; an empty one would mean the current folder."""
    if not text:
        raise typer.BadParameter(
            "the name is empty (was a variable in a script not set?); use '.' for the current "
            "folder"
        )
    return Path(text)


def parse_scale(text: str) -> tuple[float, ...]:
    """Two or three positive numbers separated by commas."""
    try:
        numbers = tuple(float(part) for part in text.replace(";", ",").split(","))
    except ValueError:
        numbers = ()
    if len(numbers) not in (2, 3) or not all(math.isfinite(n) and n > 0 for n in numbers):
        raise typer.BadParameter(
            f"{text!r} must be two or three positive numbers, e.g. 0.65,0.65 (Y,X) or "
            "1,0.09,0.09 (Z,Y,X)"
        )
    return numbers


def parse_channel(text: str | None) -> int | str:
    """The number or the name of a channel; the first one where none is named."""
    if text is None:
        return 0
    return int(text) if text.isdecimal() else text


def parse_formats(text: str) -> tuple[str, ...]:
    """Formats of results from a list, separated by commas, each once."""
    words = tuple(dict.fromkeys(w for w in (p.strip().lower() for p in text.split(",")) if w))
    wrong = [w for w in words if w not in FORMATS] or ([] if words else [text])
    if wrong:
        raise typer.BadParameter(
            f"--format {wrong[0]!r} is unknown; choose from {','.join(FORMATS)}"
        )
    return words


def parse_kinds(text: str) -> EventKinds:
    """The events that can occur, from a list of those that cannot, separated by commas."""
    try:
        return EventKinds.without(w for w in (p.strip().lower() for p in text.split(",")) if w)
    except InputError as error:
        raise typer.BadParameter(f"--without: {error}") from error


def _parse_columns(text: str) -> dict[str, str]:
    try:
        return parse_columns(text)
    except InputError as error:
        raise typer.BadParameter(str(error)) from error


def _parse_memory(text: str) -> str:
    parse_memory(text)  # refused before the work
    return text


# ------------------------------------------------------------------ options


def path_argument(metavar: str, text: str) -> Any:
    """The name of a file or folder that a command needs."""
    return typer.Argument(metavar=metavar, help=text, show_default=False, parser=a_name)


def path_option(name: str, metavar: str, text: str) -> Any:
    """An option that names a file or folder."""
    return typer.Option(name, metavar=metavar, help=text, show_default=False, parser=a_name)


def word_option(name: str, metavar: str, text: str, **more: Any) -> Any:
    """An option with a word or a number."""
    return typer.Option(name, metavar=metavar, help=text, **more)


Labels = Annotated[
    Path,
    path_argument(
        "LABELS",
        "Label movie (TIFF stack, folder of TIFFs, OME-TIFF, zarr, .npy) or a CSV table of "
        "detections.",
    ),
]
Image = Annotated[
    Path | None, path_option("--image", "IMAGE", "The movie that the labels were made from.")
]
OutFolder = Annotated[Path, path_option("--out", "DIR", "Folder for the results.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]
Weights = Annotated[
    Path | None,
    path_option(
        "--model",
        "MODEL",
        "Model file, or its name in the model library; by default the shipped model.",
    ),
]
GroundTruth = Annotated[
    Path,
    path_option(
        "--ground-truth",
        "CTC_DIR",
        "Ground truth in the format of the Cell Tracking Challenge: a folder with masks and "
        "man_track.txt, or an NN_GT folder.",
    ),
]
LinkScoresFile = Annotated[
    Path | None,
    path_option(
        "--link-scores",
        "FILE",
        "Scores, 0 to 1, that another program gave to links: a table of frame, source, target "
        "(labels) and score, or a GEFF store with scored edges.",
    ),
]
Without = Annotated[
    str,
    word_option(
        "--without",
        "LIST",
        "Kinds of events that do not occur in the movie: divisions, appearances, "
        "disappearances, gaps, splits, merges, specks (masks that are not cells).",
        show_default=False,
    ),
]
Formats = Annotated[
    str,
    word_option(
        "--format",
        "LIST",
        f"Formats to write: {', '.join(f'{name} ({words})' for name, words in FORMATS.items())}.",
    ),
]
Channel = Annotated[
    str | None,
    word_option(
        "--channel",
        "C",
        "Number (from 0) or name of the channel with the cells; by default the first one.",
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
Memory = Annotated[
    str | None,
    word_option(
        "--memory",
        "SIZE",
        "Memory limit, such as 4GB: a movie that needs more is tracked in windows of frames. "
        "By default the free memory of the computer.",
        parser=_parse_memory,
    ),
]
Scheduler = Annotated[
    str | None,
    word_option(
        "--scheduler",
        "ADDRESS",
        "Run on a dask cluster: the address or the file of its scheduler, 'local' for "
        "processes on this computer, 'here' for no cluster. The result is the same.",
    ),
]

_READING: dict[str, Any] = {
    "axes": Annotated[
        str | None,
        word_option("--axes", "ORDER", "Axis order of the file, letters from TCZYX, e.g. TZYX."),
    ],
    "scale": Annotated[
        Any,
        word_option(
            "--scale",
            "[Z,]Y,X",
            "Size of a pixel along each axis, in micrometres; by default read from the file.",
            parser=parse_scale,
        ),
    ],
    "unit": Annotated[
        Literal["micrometer", "pixel"] | None,
        word_option("--unit", "UNIT", "Unit of the scale: micrometer or pixel."),
    ],
    "frame_interval": Annotated[
        float | None, word_option("--frame-interval", "MINUTES", "Minutes between two frames.")
    ],
    "image_axes": Annotated[
        str | None, word_option("--image-axes", "ORDER", "Axis order of the image.")
    ],
    "columns": Annotated[
        Any,
        word_option(
            "--columns",
            "LIST",
            "Column names of a table of detections if they are not recognised, e.g. "
            "y=Row,x=Col,t=Image; the others are z, id, track, parent, label, area, radius.",
            parser=_parse_columns,
        ),
    ],
}
"""Options for the fields of a `Reading`."""


# ------------------------------------------------------------------ what options name


def refuse_masks_alone(answers: Path | None, flag: str, given: bool) -> None:
    """Refuse a file of mask annotations without the option that uses them."""
    if answers is not None and is_mask_file(answers) and not given:
        raise typer.BadParameter(
            f"--annotations {answers}: these annotations are about masks and need {flag}"
        )


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
