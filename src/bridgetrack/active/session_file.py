"""Stop and resume: the state of an active session as a file beside its annotations."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from bridgetrack.active.accuracy import Judged, Point, Record
from bridgetrack.active.session import ActiveSession
from bridgetrack.active.suggestion import SessionOptions
from bridgetrack.annotations.store import AutosavingStore
from bridgetrack.errors import InputError, ModelError
from bridgetrack.files import program_version, write_text
from bridgetrack.models.model import MODEL_FILE, Model, model_to_json
from bridgetrack.pipeline.scene import Scene
from bridgetrack.schema import (
    FileFormat,
    OpenEntry,
    Share,
    json_text,
    of_dataclass,
)


def _unpacked(content: Any) -> Any:
    """A record whose slots stand as ``[what, frame, label]``, as in the file."""
    if isinstance(content, dict) and isinstance(content.get("slots"), list):
        known = {key: value for key, value in content.items() if key != "looks"}  # of earlier files
        slots = content["slots"]
        return {
            **known,
            "slots": [[s[0], s[1:]] if isinstance(s, list) and s else s for s in slots],
        }
    return content


_RecordField = Annotated[Record, of_dataclass(Record), BeforeValidator(_unpacked)]


class _Content(OpenEntry):
    prior: Annotated[Model, MODEL_FILE.nested]
    records: list[_RecordField] = Field(default_factory=list)
    points: list[Annotated[Point, of_dataclass(Point)]] = Field(default_factory=list)
    held_out: dict[str, Share] = Field(default_factory=dict)
    seen: dict[str, Share] = Field(default_factory=dict)


SESSION_FILE = FileFormat(
    "bridgetrack-active-session",
    1,
    "an active session",
    _Content,
    lambda content: content,
    largest=200_000_000,
)
"""Files of sessions; what they hold becomes a session only beside a movie."""


def session_to_json(session: ActiveSession) -> dict[str, Any]:
    """The state of a session as JSON values: all but the movie and the annotations."""
    return {
        **SESSION_FILE.head,
        "program": program_version(),
        "prior": model_to_json(session.prior),
        "records": [r.to_json() for r in session.records],
        "points": [asdict(p) for p in session.points],
        "held_out": dict(sorted(session.judged.unseen.items())),
        "seen": dict(sorted(session.judged.seen.items())),
    }


def save_session(session: ActiveSession, path: Path | str) -> Path:
    """Write a session's state in one step; save its annotations as well.

    Raises
    ------
    OutputError
        If it cannot be written; an older file stays as it was.
    """
    return write_text(Path(path), json_text(session_to_json(session), "the session"), "the session")


def load_session(
    path: Path | str,
    scene: Scene,
    answers: AutosavingStore | None = None,
    options: SessionOptions | None = None,
) -> ActiveSession:
    """Resume a session; call `ActiveSession.update` next, which finds the next questions.

    Parameters
    ----------
    path
        From `save_session`.
    scene
        The movie.
    answers
        The annotations that the session made, see `ActiveSession`.
    options
        How to work from now on.

    Raises
    ------
    InputError
        If the file is missing or damaged; the message names the entry.
    """
    content = SESSION_FILE.read(path)
    try:
        session = ActiveSession(scene, content.prior, answers, options)
    except ModelError as error:
        raise InputError(f"{path}: the session is of another program ({error})") from error
    session.records = tuple(content.records)
    session.points = tuple(content.points)
    session.judged = Judged(content.held_out, content.seen)
    return session
