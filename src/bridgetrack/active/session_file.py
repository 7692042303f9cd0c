"""Stop and resume: the state of an active session as a file beside its annotations."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bridgetrack.active.accuracy import Judged
from bridgetrack.active.options import LearnOptions, SessionOptions, SuggestOptions
from bridgetrack.active.records import Answers, Point, Record
from bridgetrack.active.session import ActiveSession
from bridgetrack.annotations.annotation import Kind, Slot
from bridgetrack.errors import InputError, ModelError
from bridgetrack.files import program_version, write_text
from bridgetrack.models.model import from_json, to_json
from bridgetrack.pipeline.scene import Scene

FORMAT = "bridgetrack-active-session"
VERSION = 1


def session_to_json(session: ActiveSession) -> dict[str, Any]:
    """The state of a session as JSON values: all but the movie and the annotations."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "program": program_version(),
        "options": asdict(session.options),
        "prior": json.loads(to_json(session.prior)),
        "skipped": sorted([what, *cell] for what, cell in session.skipped),
        "records": [r.to_json() for r in session.records],
        "points": [asdict(p) for p in session.points],
        "held_out": dict(sorted(session.judged.unseen.items())),
        "seen": dict(sorted(session.judged.seen.items())),
    }


def session_from_json(
    content: Any, scene: Scene, answers: Answers | None = None, where: str = "the session"
) -> ActiveSession:
    """Resume a session; call `ActiveSession.update` next, which finds the next questions.

    Parameters
    ----------
    content
        From `session_to_json`; it is checked entry by entry.
    scene
        The movie.
    answers
        The annotations that the session made, see `ActiveSession`.
    where
        What to call the session in messages.

    Raises
    ------
    InputError
        Where the content is not valid; the message names the entry.
    """
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f'{where}: this is not an active session (no "format": "{FORMAT}")')
    if content.get("version") != VERSION:
        raise InputError(
            f"{where}: the session has file version {content.get('version')}, this program reads "
            f"{VERSION}; update Bridgetrack or begin a new session"
        )
    try:
        prior = from_json(json.dumps(content.get("prior")), where)
        session = ActiveSession(scene, prior, answers, _options(content.get("options")))
        session.skipped = frozenset(_slot(s) for s in _list(content, "skipped"))
        records = tuple(_record(r) for r in _list(content, "records"))
        # A record that the annotations know nothing of must not speak of a later answer.
        session.records = tuple(r for r in records if session.annotations.given(r.id))
        session.points = tuple(_point(p) for p in _list(content, "points"))
        session.judged = Judged(
            *(
                {str(k): _share(v) for k, v in _object(content.get(name, {})).items()}
                for name in ("held_out", "seen")
            )
        )
    except (ModelError, InputError) as error:
        raise InputError(f"{where}: the session is damaged ({error})") from error
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise InputError(f"{where}: the session is damaged ({error})") from error
    return session


def save_session(session: ActiveSession, path: Path | str) -> Path:
    """Write a session's state in one step; save its annotations as well.

    Raises
    ------
    OutputError
        Where it cannot be written; an older file stays as it was.
    """
    text = json.dumps(session_to_json(session), indent=1, allow_nan=False) + "\n"
    return write_text(Path(path), text, "the session")


def load_session(path: Path | str, scene: Scene, answers: Answers | None = None) -> ActiveSession:
    """Resume a session from its file.

    Raises
    ------
    InputError
        Where the file is missing or damaged.
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except OSError as error:
        raise InputError(f"{path}: the session cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: this is not an active session ({error})") from error
    return session_from_json(content, scene, answers, str(path))


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number")


def _list(content: dict[str, Any], key: str) -> list[Any]:
    value = content.get(key, [])
    if not isinstance(value, list):
        raise TypeError(f'"{key}" must be a list')
    return value


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("an object was expected")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{str(value)[:40]!r} is not a number")
    if not abs(value) <= sys.float_info.max:
        raise ValueError(f"{value} is not a finite number")
    return float(value)


def _share(value: Any) -> float:
    number = _number(value)
    if not 0 <= number <= 1:
        raise ValueError(f"{number} does not lie between 0 and 1")
    return number


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise TypeError(f"{str(value)[:40]!r} is not a whole number of 0 or more")
    return value


def _slot(value: Any) -> Slot:
    what, frame, label = value
    if what not in ("fate", "history"):
        raise ValueError(f"{str(what)[:40]!r} is neither a fate nor a history")
    return what, (_count(frame), _count(label))


def _record(value: Any) -> Record:
    entry = _object(value)
    right, random = entry["right"], entry["random"]
    if not (right is None or isinstance(right, bool)) or not isinstance(random, bool):
        raise TypeError('"right" and "random" must be true or false')
    return Record(
        str(entry["id"]),
        Kind(entry["kind"]),
        tuple(_slot(s) for s in _list(entry, "slots")),
        right,
        random,
        _share(entry["doubt"]),
        max(_number(entry["seconds"]), 0.0),
        max(_count(entry.get("looks", 1)), 1),
    )


def _point(value: Any) -> Point:
    entry = _object(value)
    accuracy, low, high = (
        None if entry[k] is None else _share(entry[k]) for k in ("accuracy", "low", "high")
    )
    clicks, changed = _count(entry["clicks"]), _count(entry["changed"])
    return Point(clicks, _number(entry["seconds"]), accuracy, low, high, changed)


def _options(value: Any) -> SessionOptions:
    entry = dict(_object(value))
    chosen = dict(_object(entry.pop("suggest")))
    if chosen.get("frames") is not None:
        first, last = chosen["frames"]
        chosen["frames"] = _count(first), _count(last)
    suggest = SuggestOptions(**chosen)
    learn = LearnOptions(**_object(entry.pop("learn")))
    looks = entry.pop("second_looks", True)
    if not isinstance(looks, bool):
        raise TypeError('"second_looks" must be true or false')
    counts = {k: _count(v) for k, v in entry.items()}
    return SessionOptions(suggest, learn, second_looks=looks, **counts)
