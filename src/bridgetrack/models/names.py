"""Names of models in the library: they are names of folders on every system."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from bridgetrack.errors import InputError

LONGEST = 40
SHIPPED = "shipped"
"""The name of the model that comes with the program."""

_FORBIDDEN = '/\\:*?"<>|'
_DEVICES = {"con", "prn", "aux", "nul", *(f"{d}{k}" for d in ("com", "lpt") for k in range(1, 10))}


def check_name(name: str) -> str:
    """A name as it is kept: without blanks around it, in composed characters.

    Raises
    ------
    InputError
        Where it cannot be the name of a model; the message says why.
    """
    clean = unicodedata.normalize("NFC", name).strip()
    problem = _problem(clean)
    if problem:
        raise InputError(f"a model cannot be called {name!r}: {problem}; choose another name")
    return clean


def _problem(name: str) -> str:
    if not name:
        return "the name is empty"
    if len(name) > LONGEST:
        return f"the name has more than {LONGEST} characters"
    if not name.isprintable():
        return "the name holds characters that cannot be shown"
    bad = sorted(set(name) & set(_FORBIDDEN))
    if bad:
        return f"the name holds {' '.join(bad)}"
    if name[0] in ".~" or name[-1] == ".":
        return "the name begins or ends with a dot, or begins with ~"
    if name.casefold().endswith(".json"):
        return "names that end in .json are for files"
    if name.casefold() == SHIPPED:
        return "that is the name of the model that comes with the program"
    if name.casefold().split(".")[0].strip() in _DEVICES:
        return "some systems keep that name for themselves"
    return ""


def same_name(one: str, two: str) -> bool:
    """Whether some system would take two names for one."""
    return _folded(one) == _folded(two)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip().casefold()


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """A name like the wanted one that can be used and is not taken."""
    plain = "".join(c if c.isprintable() and c not in _FORBIDDEN else " " for c in wanted)
    plain = unicodedata.normalize("NFC", " ".join(plain.split()).lstrip(".~ "))
    while plain.casefold().endswith(".json"):
        plain = plain[: -len(".json")].rstrip(". ")
    plain = plain[: LONGEST - 6].rstrip(". ") or "model"
    if _problem(plain):
        plain = "model"
    known = {_folded(name) for name in taken}
    if _folded(plain) not in known:
        return plain
    k = 2
    while _folded(f"{plain} {k}") in known:
        k += 1
    return f"{plain} {k}"
