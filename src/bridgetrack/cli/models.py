"""``bridgetrack models``: the library of models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridgetrack.cli.console import answer, emit, note_lines, note_texts, say, show
from bridgetrack.cli.options import Image, Json, MovieOptions, check_file, out_option, reads_movie
from bridgetrack.cli.sources import collecting_warnings, open_sources
from bridgetrack.errors import ModelError
from bridgetrack.export.may_write import signed
from bridgetrack.notes import Note, plural

if TYPE_CHECKING:
    from bridgetrack.models.entry import ModelEntry
    from bridgetrack.models.model import Model
    from bridgetrack.models.similarity import Ranked
    from bridgetrack.models.statistics import FeatureStatistics

models = typer.Typer(
    name="models",
    help="Keep models, and see which of them learned from movies like yours.",
    no_args_is_help=False,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of a model.", show_default=False)]


@models.command(name="list")
@reads_movie
def list_(
    *,
    labels: Annotated[
        Path | None,
        typer.Option("--for", metavar="LABELS", help="Movie to compare with.", show_default=False),
    ] = None,
    image: Image = None,
    reading: MovieOptions,
    json: Json = False,
) -> None:
    """List the models, the most similar to a movie first."""
    from bridgetrack.models.library import Library
    from bridgetrack.models.similarity import most_suitable, rank

    if labels is None and image is not None:
        raise typer.BadParameter("--image goes with --for LABELS; give the labels too")
    library, notes = Library(), list[Note]()
    entries = library.entries()
    yours = None
    if labels is not None:
        with collecting_warnings(notes):
            yours, _ = _look_at(labels, image, reading, None, notes)
    ranked = rank(entries, yours)
    best = most_suitable(ranked) if yours is not None else None
    start = None if best is None else best.entry.name
    record = {
        "folder": str(library.folder),
        "models": [described(r, yours is not None) for r in ranked],
        "most_suitable": None if yours is None else start or "shipped",
        "notes": note_texts(notes),
    }
    lines = model_lines(ranked, yours is not None)
    if not ranked:
        lines.append(f"there are no models in {library.folder}; see bridgetrack models save --help")
    if yours is not None:
        lines.append(f"start from: {start or 'the shipped model'}")
    answer(json, record, lambda: [*lines, *note_lines(notes)])


@models.command(name="show")
def show_(name: Name, json: Json = False) -> None:
    """Say what is known of a model."""
    from bridgetrack.models.library import Library
    from bridgetrack.models.similarity import UNKNOWN, Ranked

    entry = Library().entry(name)
    found = described(Ranked(entry, UNKNOWN), False)
    model = entry.model
    found["preview"] = None if entry.preview is None else str(entry.preview)
    found["weights"] = (
        None if model is None else dict(zip(model.keys, model.weights.tolist(), strict=True))
    )
    if json:
        emit(found)
    elif not entry.damaged:
        say(*shown_lines(entry))
    if entry.damaged:
        raise ModelError(
            f"the model {entry.name!r} of the library is damaged: {entry.problem}; put its files "
            f"back, or remove it: bridgetrack models remove '{entry.name}'"
        )


@models.command()
@reads_movie
def save(
    file: Annotated[
        Path, typer.Argument(metavar="MODEL.json", help="Model file.", show_default=False)
    ],
    *,
    name: Annotated[
        str | None,
        typer.Option(
            "--name", metavar="NAME", help="Its name; without it the file's.", show_default=False
        ),
    ] = None,
    description: Annotated[
        str | None,
        typer.Option(
            "--description", metavar="TEXT", help="What to remember of it.", show_default=False
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            metavar="LABELS",
            help="Movie that it learned from, so that others can be compared with it.",
            show_default=False,
        ),
    ] = None,
    image: Image = None,
    reading: MovieOptions,
    json: Json = False,
) -> None:
    """Keep a model in the library."""
    from bridgetrack.models.entry import new_card, read_model_file
    from bridgetrack.models.library import Library, check_name
    from bridgetrack.models.model import check_usable
    from bridgetrack.models.preview import preview_png

    if labels is None and image is not None:
        raise typer.BadParameter("--image goes with --labels LABELS; give the labels too")
    library, notes = Library(), list[Note]()
    with collecting_warnings(notes):
        model, card = read_model_file(file)
        check_usable(model, file)
        name = library.free_name(file.stem) if name is None else check_name(name)
        card = card or new_card(model)
        if description is not None:
            card = replace(card, description=description.strip())
        picture = None
        if labels is not None:
            statistics, picture = _look_at(labels, image, reading, model, notes)
            card = replace(card, statistics=statistics)
        entry = library.save(name, model, card, preview_png(card, picture))
    record = {"name": entry.name, "folder": str(entry.folder), "notes": note_texts(notes)}
    lines = [f"kept as {entry.name}; use it with --model '{entry.name}' or --prior '{entry.name}'"]
    if card.statistics is None:
        lines.append("note: without --labels other movies cannot be compared with it")
    answer(json, record, lambda: [*lines, *note_lines(notes)])


def _look_at(
    labels: Path, image: Path | None, reading: MovieOptions, model: Model | None, notes: list[Note]
) -> tuple[FeatureStatistics, Any]:
    """Statistics of a movie and, where it is tracked with a model, a picture of it."""
    from bridgetrack.pipeline.movie_record import preview_picture, statistics_steps
    from bridgetrack.pipeline.scene import prepare
    from bridgetrack.pipeline.tracking import track_scene

    cells, pixels = open_sources(labels, image, reading, notes)
    scene = show(prepare(cells, pixels))
    picture = None
    if model is not None:
        picture = preview_picture(show(track_scene(scene, model)), pixels)
    return show(statistics_steps(scene)), picture


@models.command()
def remove(name: Name, json: Json = False) -> None:
    """Take a model off the list; restore brings it back."""
    from bridgetrack.models.library import Library

    removed = Library().remove(name)
    answer(
        json,
        {"removed": removed.name},
        lambda: [
            f"removed {removed.name}; bridgetrack models restore '{removed.name}' brings it back"
        ],
    )


@models.command()
def restore(name: Name, json: Json = False) -> None:
    """Bring back the model of this name that was removed last."""
    from bridgetrack.models.library import Library, same_name

    library = Library()
    known = library.removed()
    found = next((r for r in known if same_name(r.name, name)), None)
    if found is None:
        names = ", ".join(dict.fromkeys(r.name for r in known)) or "none"
        raise ModelError(f"no model {name!r} was removed lately (removed ones: {names})")
    entry = library.restore(found)
    answer(json, {"name": entry.name}, lambda: [f"{entry.name} is back"])


@models.command()
def export(
    name: Name,
    out: Annotated[Path, out_option("FILE", "File to write.")],
    json: Json = False,
) -> None:
    """Write a model with its description and statistics into one file, to share it."""
    from bridgetrack.models.library import Library

    library = Library()
    check_file(out, library.file(name))
    with signed(out) as spare:
        library.export_file(name, spare)
    answer(
        json,
        {"model": str(out)},
        lambda: [f"wrote {out}; bridgetrack models save {out} takes it into a library"],
    )


def described(ranked: Ranked, compared: bool) -> dict[str, Any]:
    """A model as JSON values."""
    from bridgetrack.models.entry import card_to_json

    entry, similarity = ranked.entry, ranked.similarity
    found: dict[str, Any] = {"name": entry.name, "damaged": entry.problem or None}
    if entry.card is not None:
        known = card_to_json(entry.card)
        found |= {key: known[key] for key in ("description", "created", "counts", "accuracy")}
    if compared and not entry.damaged:
        finite = similarity.level != "unknown"
        found["similarity"] = {
            "level": similarity.level,
            "distance": round(similarity.distance, 4) if finite else None,
            "words": similarity.words,
            "differences": [d.words for d in similarity.differences[:3] if d.words],
        }
    return found


def model_lines(ranked: tuple[Ranked, ...], compared: bool) -> list[str]:
    """One or two lines per model."""
    lines = []
    for each in ranked:
        entry = each.entry
        if entry.card is None:
            lines.append(f"{entry.name}: damaged: {entry.problem}")
            continue
        parts = [entry.card.created[:10], *_learned_from(entry), entry.card.description]
        lines.append(f"{entry.name}: {'; '.join(p for p in parts if p)}".rstrip(": "))
        if compared:
            lines.append(f"    {each.similarity.words}")
    return lines


def _learned_from(entry: ModelEntry) -> list[str]:
    assert entry.card is not None
    parts = []
    if entry.card.counts:
        parts.append(plural(sum(entry.card.counts.values()), "answer"))
    if entry.card.accuracy is not None:
        parts.append(f"about {100 * entry.card.accuracy[0]:.1f} % of the events right")
    return parts


def shown_lines(entry: ModelEntry) -> list[str]:
    """All that is known of a model that is not damaged."""
    assert entry.card is not None
    card = entry.card
    lines = [f"{entry.name}{f': {card.description}' if card.description else ''}"]
    lines += [f"made: {card.created}"] if card.created else []
    if card.counts:
        counts = ", ".join(f"{key} {n}" for key, n in card.counts.items())
        lines.append(f"answers: {counts}")
    if card.accuracy is not None:
        a, low, high = (100 * v for v in card.accuracy)
        lines.append(f"estimated accuracy: {a:.1f} % (95 % interval {low:.1f} to {high:.1f} %)")
    known = card.statistics
    lines.append(
        f"learned from a {known.ndim}D movie with {known.n_cells:,} cells in all frames"
        if known is not None
        else "nobody knows how similar other movies are to its own"
    )
    lines += [f"picture: {entry.preview}"] if entry.preview is not None else []
    return [*lines, f"files: {entry.folder}"]
