"""Several files take their places together, whatever ends the program meanwhile.

They are made in a spare folder. Where the folder that they belong to is new, or everything in it is
to be replaced, the two are exchanged in one step. Where it holds other things, too, a plan is
written first; then the record of the earlier files goes, then these files, then the new ones come,
and their record last. So at no moment do files of two runs stand side by side, and a record stands
beside its own files only. What a killed program left undone is carried out by the next that looks
there.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bridgetrack.errors import OutputError
from bridgetrack.leftovers import exchange, flush, is_dead, locked, spare_name, spare_names
from bridgetrack.readable import resolved

RECORD = "run.json"
"""What speaks of the others: the first to go and the last to come."""
SHARED = ".bridgetrack"
"""A folder that others share with us, so that only single files in it are replaced."""
NEW, _OLD, _PLAN = "new", "old", "bridgetrack.plan"
_WITHIN = "bridgetrack"
"""What spare names in a folder are made for, so that they hold when it gets another name."""


@dataclass(frozen=True)
class _Plan:
    """What is about to happen to a folder; paths are relative to it."""

    names: list[str]  # come into the folder
    gone: list[str]  # stand in it and go
    swap: bool  # in one step, and not one by one
    before: dict[str, Any] = field(default_factory=dict)  # marks of what stands there, by name


def spare_for(folder: Path) -> Path:
    """A spare name for files that belong to `folder`: within it where it cannot be replaced."""
    free = all(os.access(place, os.W_OK) for place in (folder, folder.parent))
    within = folder.is_dir() and not (free and _movable(folder))
    return spare_name(folder / _WITHIN if within else folder)


def place(spare: Path, folder: Path, removed: Callable[[], Sequence[str]]) -> None:
    """Put everything in `spare` / `NEW` into `folder`, all or nothing.

    Parameters
    ----------
    spare
        A name of `spare_for`; gone in the end.
    folder
        Where to; made where it is missing. Files and folders of the same names are replaced.
    removed
        Says which others go at the same time. Called when no other process can write there any
        more, so that it may refuse, too.

    Raises
    ------
    OSError
        Where it fails; `folder` is as it was, or `recover` will make it so.
    """
    flush(spare / NEW)
    with locked(folder.parent):
        gone, names = list(removed()), list(_entries(spare / NEW))
        if not folder.exists():
            (spare / NEW).rename(folder)
        elif not _swapped(spare, folder, names, gone):
            _one_by_one(spare, folder, names, gone)


def recover(folder: Path) -> None:
    """Finish what a killed program began to do to a file or folder; remove what it left.

    Raises
    ------
    OutputError
        Where somebody put other files there since.
    """
    folder = resolved(folder)
    within = folder / _WITHIN
    if not (spare_names(folder) or spare_names(within)):
        return
    with locked(folder.parent) as alone:
        for spare in [*spare_names(folder), *spare_names(within)]:
            plan = _plan(spare)
            if plan is not None and (alone or is_dead(spare)):
                _finish(plan, spare, folder)
            elif not is_dead(spare):
                continue
            elif spare.suffix == ".old" and not os.path.lexists(folder):
                spare.rename(folder)
            remove(spare)


def remove(path: Path) -> None:
    """Remove a file or a folder, as far as that is possible, unless something is planned there."""
    if _plan(path) is not None:
        return
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _swapped(spare: Path, folder: Path, names: list[str], gone: list[str]) -> bool:
    """Exchange a folder with the new one, in one step; False where that is not possible."""
    whole = spare.parent == folder.parent and set(_entries(folder)) <= {*names, *gone}
    if not (whole and _movable(folder) and _alike(folder, spare / NEW)):
        return False
    plan = _Plan(names, gone, swap=True)
    _write(plan, spare)
    if exchange(spare / NEW, folder):
        _finish(plan, spare, folder)
        return True
    (spare / _PLAN).unlink()
    return False


def _one_by_one(spare: Path, folder: Path, names: list[str], gone: list[str]) -> None:
    if spare.parent != folder:  # so that the plan goes along when somebody moves the folder
        spare = spare.rename(spare_name(folder / _WITHIN))
    every = dict.fromkeys([*names, *gone])
    before = {n: _mark(folder / n) for n in every if os.path.lexists(folder / n)}
    plan = _Plan(names, gone, swap=False, before=before)
    _write(plan, spare)
    try:
        _finish(plan, spare, folder)
    except BaseException:
        _undo(plan, spare, folder)
        (spare / _PLAN).unlink(missing_ok=True)
        raise
    finally:
        remove(spare)


def _finish(plan: _Plan, spare: Path, folder: Path) -> None:
    """Carry out a plan, or what is left of it."""
    if plan.swap:
        _give_back(plan, spare / NEW, folder)
    else:
        _take_away(plan, spare, folder)
        _bring(plan, spare, folder)
    (spare / _PLAN).unlink()


def _give_back(plan: _Plan, old: Path, folder: Path) -> None:
    """What somebody put into a folder at the very moment of the exchange stays there."""
    known = {*plan.names, *plan.gone}
    for name in [n for n in _entries(old) if n not in known]:
        place = folder / name
        while os.path.lexists(place):
            place = place.with_name(f"{place.name}~")
        _move(old / name, place)


def _take_away(plan: _Plan, spare: Path, folder: Path) -> None:
    for name in _ordered([*plan.gone, *plan.names]):
        come = name in plan.names and not os.path.lexists(spare / NEW / name)
        if come or not os.path.lexists(folder / name):
            continue
        if os.path.lexists(spare / _OLD / name) or _mark(folder / name) != plan.before.get(name):
            raise _stranger(folder / name)
        _move(folder / name, spare / _OLD / name)


def _bring(plan: _Plan, spare: Path, folder: Path) -> None:
    for name in reversed(_ordered(plan.names)):
        if os.path.lexists(spare / NEW / name):
            if os.path.lexists(folder / name):
                raise _stranger(folder / name)
            _move(spare / NEW / name, folder / name)


def _undo(plan: _Plan, spare: Path, folder: Path) -> None:
    for name in _ordered(plan.names):
        if os.path.lexists(folder / name) and not os.path.lexists(spare / NEW / name):
            _move(folder / name, spare / NEW / name)
    for name in reversed(_ordered([*plan.gone, *plan.names])):
        if os.path.lexists(spare / _OLD / name):
            _move(spare / _OLD / name, folder / name)


def _stranger(path: Path) -> OutputError:
    return OutputError(
        f"{path} was put there after a run had been killed that was writing to this folder; move "
        "it away, so that the results of that run can be completed"
    )


def _ordered(names: Sequence[str]) -> list[str]:
    """Each name once, the record first."""
    return sorted(dict.fromkeys(names), key=lambda name: (not name.endswith(RECORD), name))


def _entries(folder: Path) -> Iterator[str]:
    """What is in a folder, each as one name; of the shared folder what is in it."""
    for path in sorted(folder.iterdir()):
        if path.name == SHARED and path.is_dir():
            yield from (f"{SHARED}/{inner.name}" for inner in sorted(path.iterdir()))
        else:
            yield path.name


def _movable(folder: Path) -> bool:
    """Whether another folder may take the place of this one: nobody stands in it."""
    try:
        here = Path.cwd()
    except OSError:
        return False
    return folder not in (here, *here.parents) and not folder.is_mount()


def _alike(old: Path, new: Path) -> bool:
    """Give a new folder the owner and the rights of an old one; False where that is not allowed."""
    one, other = old.stat(), new.stat()
    try:
        if (one.st_uid, one.st_gid) != (other.st_uid, other.st_gid):
            shutil.chown(new, one.st_uid, one.st_gid)
        shutil.copystat(old, new)
        os.utime(new)
    except (OSError, LookupError):
        return False
    return True


def _mark(path: Path) -> list[list[Any]]:
    """Sizes and times of a file, or of all that is in a folder."""
    every = [path, *sorted(path.rglob("*"))] if path.is_dir() else [path]
    found = [(p.relative_to(path).as_posix(), p.lstat()) for p in every]
    return [[name, stat.st_size, stat.st_mtime_ns] for name, stat in found]


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    source.rename(target)


def _write(plan: _Plan, spare: Path) -> None:
    """Write a plan in one step."""
    path = spare / f"{_PLAN}.new"
    path.write_text(json.dumps(asdict(plan)), encoding="utf-8")
    flush(path)
    path.rename(spare / _PLAN)


def _plan(spare: Path) -> _Plan | None:
    try:
        return _Plan(**json.loads((spare / _PLAN).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
