"""What training can start from, as the Train panel lists it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bridgetrack.models.choice import Ranked
from bridgetrack.models.model import Model

PRESENT, SHIPPED, MOVIES = "present", "shipped", "movies"
_LIBRARY = "library/"


@dataclass(frozen=True)
class Start:
    """One thing to start from.

    Parameters
    ----------
    key
        ``"present"``, ``"shipped"``, ``"movies"``, or that of a model of the library.
    title
        For the list.
    words
        What it is, and why it may or may not suit.
    usable
        Whether training can start from it.
    name
        In the library; empty for others.
    preview
        A picture, where there is one.
    """

    key: str
    title: str
    words: str
    usable: bool = True
    name: str = ""
    preview: Path | None = None


def key_of(name: str) -> str:
    """Key of a model of the library."""
    return f"{_LIBRARY}{name}"


def list_starts(
    model: Model, start: Model, ranked: tuple[Ranked, ...], movies: tuple[Path, ...]
) -> tuple[Start, ...]:
    """Everything that can be chosen, in the order of the list.

    Parameters
    ----------
    model, start
        The model in use, and what it began with in this movie.
    ranked
        Models of the library.
    movies
        Project files of earlier movies.
    """
    starts = []
    if model.loss:
        words = "Training goes on from the model in use."
        if start is not model:
            where = "the shipped model" if start.name == SHIPPED else f"the model {start.name!r}"
            words = f"Training starts again from {where}, and learns from all your answers anew."
        starts.append(Start(PRESENT, f"the model in use ({model.name})", words))
    words = "Works on movies of many kinds without any answer; training adapts it to yours."
    starts.append(Start(SHIPPED, "the shipped model", words))
    starts += [_of_library(each) for each in ranked]
    starts.append(Start(MOVIES, "my earlier movies…", _movies_words(movies), bool(movies)))
    return tuple(starts)


def _of_library(ranked: Ranked) -> Start:
    entry, similarity = ranked.entry, ranked.similarity
    key = key_of(entry.name)
    if entry.damaged or entry.record is None:
        words = f"This model is damaged: {entry.problem}. Remove it, or put its files back."
        return Start(key, f"{entry.name} (damaged)", words, False, entry.name, entry.preview)
    record = entry.record
    said = [_sentence(similarity.words)]
    if ranked.same_movie:
        said.append("It seems to have learned from this movie: those answers would count twice.")
    more = [d.words for d in similarity.differences[1:3] if d.words]
    if similarity.level in ("similar", "different") and more:
        said.append(f"Also, {' and '.join(more)}.")
    learned = sum(record.counts.values())
    facts = [
        f"kept on {record.created[:10]}" if record.created else "",
        f"{learned} answers" if learned else "",
        f"about {100 * record.accuracy[0]:.0f} % right" if record.accuracy else "",
    ]
    described = [f"“{record.description}”."] if record.description else []
    words = " ".join([*described, *said, _sentence(", ".join(f for f in facts if f))]).strip()
    level = "" if similarity.level == "unknown" else f" – {similarity.level}"
    return Start(key, f"{entry.name}{level}", words, True, entry.name, entry.preview)


def _movies_words(movies: tuple[Path, ...]) -> str:
    if not movies:
        return (
            "Add project files of movies that you answered questions about earlier; their "
            "answers help here."
        )
    names = ", ".join(path.name for path in movies)
    return (
        f"Learns from the answers in {names} and from those of this movie. What is learned is "
        "checked with this movie's answers."
    )


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}." if words else ""
