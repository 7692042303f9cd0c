"""``bridgetrack models``: the folder of models that are known by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridgetrack.cli.console import answer
from bridgetrack.cli.options import Json
from bridgetrack.errors import ModelError

if TYPE_CHECKING:
    from bridgetrack.models.model import Model

models = typer.Typer(
    name="models",
    help="List, add, remove and show the models that are known by name.",
    no_args_is_help=False,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of a model.", show_default=False)]


@models.command(name="list")
def list_(json: Json = False) -> None:
    """List the models of the library, a folder of model files."""
    from bridgetrack.models.library import Library

    library, found, lines = Library(), list[dict[str, Any]](), list[str]()
    for name in library.names():
        try:
            record = _described(name, library.file(name), library.load(name))
            lines.append(f"{name}: {_learned_from(record)}")
        except ModelError as error:
            record = {"name": name, "file": str(library.file(name)), "damaged": str(error)}
            lines.append(f"{name}: damaged: {error}")
        found.append(record)
    lines.append(f"in {library.folder}" if found else f"there are no models in {library.folder}")
    answer(json, {"folder": str(library.folder), "models": found}, lambda: lines)


@models.command()
def add(
    file: Annotated[
        Path, typer.Argument(metavar="MODEL.json", help="Model file.", show_default=False)
    ],
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Its name; without it the file's."),
    ] = None,
    json: Json = False,
) -> None:
    """Copy a model file into the library, so that --model and --prior know it by its name."""
    from bridgetrack.models.library import Library
    from bridgetrack.models.model import check_usable, load_model

    kept = Library().add(check_usable(load_model(file), file), file.stem if name is None else name)
    answer(json, {"name": kept.stem, "file": str(kept)}, lambda: [f"kept as {kept.stem} in {kept}"])


@models.command()
def remove(name: Name, json: Json = False) -> None:
    """Take a model out of the library, into the folder .removed in it."""
    from bridgetrack.models.library import Library

    place = Library().remove(name)
    answer(json, {"removed": name, "file": str(place)}, lambda: [f"moved {name} to {place}"])


@models.command()
def show(name: Name, json: Json = False) -> None:
    """Say what is known of a model: a name in the library, or a file."""
    from bridgetrack.models.library import find_model, find_model_file

    file, model = find_model_file(name), find_model(name)
    record = _described(name, file, model)
    record["weights"] = dict(zip(model.keys, model.weights.tolist(), strict=True))

    def lines() -> list[str]:
        estimate = record["estimate"]
        told = [f"{name}: {_learned_from(record)}"]
        if estimate:
            told.append(
                "estimated accuracy: {accuracy:.1%} (95 % interval {low:.1%} to {high:.1%})".format(
                    **estimate
                )
            )
        return told if file is None else [*told, f"file: {file}"]

    answer(json, record, lines)


def _described(name: str, file: Path | None, model: Model) -> dict[str, Any]:
    """A model as JSON values."""
    known = {key: model.estimate.get(key) for key in ("accuracy", "low", "high")}
    numbers = all(isinstance(value, int | float) for value in known.values())
    return {
        "name": name,
        "file": None if file is None else str(file),
        "loss": model.loss,
        "lambda": model.strength,
        "annotations": model.provenance.get("annotations"),
        "estimate": known if numbers else None,
        "damaged": None,
    }


def _learned_from(record: dict[str, Any]) -> str:
    if record["loss"] is None:
        return "weights set by hand"
    answers = record["annotations"]
    learned = f"learned from {answers} answers" if answers else "learned"
    return f"{learned}, loss {record['loss']}"
