"""What may be replaced: nothing that we did not write ourselves, or that was changed since.

Whatever we write is kept in a manifest: the files, each with the digest of its content. For a
folder of results it stands in ``run.json``, or, where they were exported from the window or from
Python, in ``.bridgetrack/results.manifest``; for a single file or a folder of masks it stands
beside, as ``.bridgetrack/NAME.json``. What is in a manifest and still has its digest may be
replaced later. While one file takes the place of another, the manifest has the digests of both, so
that it holds wherever the program is ended.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bridgetrack.errors import OutputError
from bridgetrack.files import (
    RECORD,
    SHARED,
    every_file,
    refuse_inputs,
    staged,
    write_text,
    writing,
)

RUN_FILE = RECORD
EXPORTED = f"{SHARED}/results.manifest"  # no NAME.json, so no file of ours has it beside itself
_INSIDE = {
    "ctc": re.compile(r"mask\d+\.tif|res_track\.txt"),
    "tracks.geff": re.compile(r"\.z(array|attrs|group|metadata)|zarr\.json|[\d.]+"),
}
"""Names of the files that we write into a folder of a format."""
_BY_DEMO = ("labels.tif", "model.json", "overlay.png")


def refuse_others(folder: Path, names: Iterable[str]) -> None:
    """Refuse to replace results in a folder that are not ours, or that were changed since.

    Parameters
    ----------
    folder
        Where to write.
    names
        Files and folders in it that are to be replaced or removed.

    Raises
    ------
    OutputError
        Where one of them is not ours; the message names the file.
    """
    run, exported = _run(folder), _exported(folder)
    for name in names:
        path = folder / name
        if name != RUN_FILE:
            _refuse(path, _foreign(path, run, exported))
        elif run is None:
            _refuse(path, (path, "is not the record of a run"))
        elif "manifest" in run and not _intact(run):
            _refuse(path, (path, _CHANGED))


def refuse_other(path: Path) -> None:
    """Refuse to replace a single file, or a folder of masks, that is not ours or was changed.

    Raises
    ------
    OutputError
        As above; the message names the file.
    """
    run = _run(path.parent) or {}
    if path.name in _BY_DEMO and run.get("command") == "demo" and "manifest" not in run:
        return  # demo left no manifest in earlier versions
    _refuse(path, _not_of(path, _dict(_json(_beside(path)), "files")))


def check_file(out: Path, *inputs: Path | None) -> None:
    """Complain before the work begins about a file that must not, or cannot, be written.

    Raises
    ------
    OutputError
        Where it is one of the inputs, a folder, not ours, or in a place that cannot be written.
    """
    if out.is_dir():
        raise OutputError(f"{out}: this is a folder; give the name of a file in it")
    place = next((p for p in out.absolute().parents if p.exists()), None)
    if place is not None and not place.is_dir():
        raise OutputError(f"{out}: {place} is a file, not a folder; give another name")
    refuse_inputs([out], inputs)
    if place is not None and not os.access(place, os.W_OK):
        raise OutputError(
            f"{out}: there is no permission to write in {place}; choose another folder"
        )
    refuse_other(out)


def manifest(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Digests of the files under these names, by their path in the folder."""
    return {
        path.relative_to(folder).as_posix(): _digest(path)
        for name in names
        for path in sorted(every_file(folder / name))
    }


def sign(path: Path) -> None:
    """Keep beside a file, or a folder of masks, that we have just written it.

    Raises
    ------
    OutputError
        Where that cannot be written.
    """
    _write_manifest(_beside(path), manifest(path.parent, [path.name]))


@contextmanager
def signed(path: Path) -> Iterator[Path]:
    """Where to write a file, or a folder of masks, that takes the place of `path`, and is signed.

    What is written there is known as ours before it takes its place.

    Raises
    ------
    OutputError
        Where it cannot be written; what was there stays as it was.
    """
    with staged(path, same_name=True) as spare:
        try:
            yield spare
        except OutputError as error:
            if error.__cause__ is None:
                raise
            with writing(path):  # told of the file itself, not of the spare one
                raise error.__cause__ from None
        known = _dict(_json(_beside(path)), "files")
        new = manifest(spare.parent, [spare.name])
        both = {n: [*_digests(known, n), *_digests(new, n)] for n in {**known, **new}}
        _write_manifest(_beside(path), both)
    with suppress(OutputError):  # no room any more, and what is kept holds for the file, too
        sign(path)


def outdated_run(folder: Path, names: Iterable[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """``run.json``, where it tells of results that are about to be replaced, so that it must go.

    With the manifest of what else that run left.
    """
    run, names = _run(folder), set(names)
    told = _listed(run)
    if run is None or names.isdisjoint(told):
        return (), {}
    stay = [n for n in told if n not in names and not _foreign(folder / n, run, {})]
    return (RUN_FILE,), manifest(folder, stay)


def sign_exported(
    staging: Path, folder: Path, names: Iterable[str], others: dict[str, str]
) -> None:
    """Keep with results about to be put into a folder that we wrote them, without a run's record.

    Raises
    ------
    OutputError
        Where that cannot be written.
    """
    names = list(names)
    kept = {n: d for n, d in _exported(folder).items() if n.split("/")[0] not in names}
    files = {**kept, **others, **manifest(staging, names)}
    _write_manifest(staging / EXPORTED, files)


def sealed(record: dict[str, Any], files: dict[str, str]) -> dict[str, Any]:
    """A record of a run with the manifest of its files, in which it vouches for itself, too."""
    record = {**record, "manifest": files}
    return {**record, "manifest": {**files, RUN_FILE: _seal(record)}}


def earlier(folder: Path) -> tuple[str, ...]:
    """Names that runs and exports left in a folder of results, without ``run.json``."""
    names = [*_listed(_run(folder)), *(n.split("/")[0] for n in _exported(folder))]
    return tuple(n for n in dict.fromkeys(names) if n != RUN_FILE and _plain(n))


_FOREIGN = "was not written by Bridgetrack"
_CHANGED = "was changed since Bridgetrack wrote it"


def _refuse(path: Path, found: tuple[Path, str] | None) -> None:
    if found is not None and os.path.lexists(path):
        file, cause = found
        raise OutputError(
            f"{file} {cause}, so it is not replaced; move it away, or write elsewhere"
        )


def _foreign(
    path: Path, run: dict[str, Any] | None, exported: dict[str, Any]
) -> tuple[Path, str] | None:
    """The first file under a name that neither a run nor an export wrote; None for none."""
    if run is None or "manifest" in run:
        return _not_of(path, _dict(run, "manifest"), exported)
    found = _not_of_an_old_run(path, run)
    return None if found is None or _not_of(path, exported) is None else found


def _not_of(path: Path, *manifests: dict[str, Any]) -> tuple[Path, str] | None:
    """The first file under a name that is in no manifest, or not as it was; None for none."""
    for file in every_file(path):
        name = file.relative_to(path.parent).as_posix()
        digests = [digest for known in manifests for digest in _digests(known, name)]
        if not digests:
            return file, _FOREIGN
        if file.is_symlink() or not file.is_file() or _digest(file) not in digests:
            return file, _CHANGED
    return None


def _digests(known: dict[str, Any], name: str) -> list[Any]:
    """The digests that a file may have: several where it was about to be replaced."""
    found = known.get(name, [])
    return found if isinstance(found, list) else [found]


def _not_of_an_old_run(path: Path, run: dict[str, Any]) -> tuple[Path, str] | None:
    """The same for results of versions without manifests: by the names that we write."""
    named = path.name in (run.get("files") or ())
    for file in every_file(path):
        form = _INSIDE.get(path.name) if path.is_dir() else re.compile(re.escape(path.name))
        if not named or form is None or not form.fullmatch(file.name):
            return file, _FOREIGN
        if file.is_symlink() or not file.is_file():
            return file, _CHANGED
    return None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def _seal(record: dict[str, Any]) -> str:
    files = {key: value for key, value in record["manifest"].items() if key != RUN_FILE}
    rest = {**record, "manifest": files}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()[:32]


def _intact(run: dict[str, Any]) -> bool:
    files = _dict(run, "manifest")
    return files.get(RUN_FILE) == _seal({**run, "manifest": files})


def _beside(path: Path) -> Path:
    return path.parent / SHARED / f"{path.name}.json"


def _listed(run: dict[str, Any] | None) -> list[str]:
    """Names that a run says it left in its folder."""
    named = () if run is None else run.get("manifest", run.get("files")) or ()
    names = (n.split("/")[0] for n in named if isinstance(n, str))
    return [n for n in dict.fromkeys(names) if n != RUN_FILE and _plain(n)]


def _exported(folder: Path) -> dict[str, Any]:
    """The manifest of what was exported to a folder."""
    return _dict(_json(folder / EXPORTED), "files")


def _write_manifest(path: Path, files: dict[str, Any]) -> None:
    content = {"format": "bridgetrack-manifest", "files": files}
    write_text(path, json.dumps(content, indent=1) + "\n", "the manifest")


def _run(folder: Path) -> dict[str, Any] | None:
    """The record of the last run in a folder; None where there is none, or something else."""
    found = _json(folder / RUN_FILE)
    return found if found is not None and found.get("format") == "bridgetrack-run" else None


def _json(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _dict(content: dict[str, Any] | None, key: str) -> dict[str, Any]:
    found = None if content is None else content.get(key)
    return found if isinstance(found, dict) else {}


def _plain(name: str) -> bool:
    """Whether a name stays in its folder, whatever a file says."""
    return name not in ("", ".", "..") and Path(name).name == name
