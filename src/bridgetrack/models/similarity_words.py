"""Differences between movies in plain words, from the point of view of the user's movie."""

from __future__ import annotations

from bridgetrack.hypotheses.events import Event

_TIMES = {
    "move.raw_distance": "your cells move {times} as far per frame, in cell diameters",
    "move.distance": "your cells are {times} as far from where their motion lets expect them",
    "move.size_change": "your cells change their size {times} as much from frame to frame",
    "move.shape_change": "your cells change their shape {times} as much from frame to frame",
    "move.rotation": "your cells turn {times} as much from frame to frame",
    "move.level_change": "your cells change their brightness {times} as much from frame to frame",
    "divide.separation": "your daughter cells lie {times} as far apart, in cell diameters",
    "divide.middle": "your daughter cells lie {times} as far off their mother's place",
    "divide.size_asymmetry": "your daughter cells differ {times} as much in size",
    "divide.mother_elongation": "your dividing cells are {times} as elongated",
    "divide.brightness_asymmetry": "your daughter cells differ {times} as much in brightness",
}
_SIDES = {
    "move.overlap": "your cells overlap {more} with themselves from frame to frame",
    "move.covered": "your cells overlap {more} with themselves from frame to frame",
    "move.growth": "your cells grow {more} from frame to frame",
    "move.rank_forward": "your cells have {many} neighbours to be mistaken for",
    "move.rank_backward": "your cells have {many} neighbours to be mistaken for",
    "move.mutual": "your cells are {more} often each other's nearest from frame to frame",
    "divide.angle": "your daughter cells lie {less} on opposite sides of their mother",
    "divide.growth": "your cells gain {more} area when they divide",
    "divide.daughter_size": "your daughter cells are {larger} for your cells",
    "divide.mother_size": "your dividing cells are {larger} for your cells",
    "divide.mother_roundness": "your dividing cells are {more} round",
    "divide.mother_brightness": "your dividing cells are {brighter} than the others",
    "divide.daughter_brightness": "your daughter cells are {brighter} than the others",
    "divide.brightness_gain": "your cells gain {more} brightness when they divide",
    "divide.orphans": "your daughter cells are {more} often without a cell before them",
    "appear.border": "your cells appear {nearer} the edge",
    "disappear.border": "your cells disappear {nearer} the edge",
    "appear.size": "cells that appear in your movie are {larger}",
    "disappear.size": "cells that disappear in your movie are {larger}",
    "appear.brightness": "cells that appear in your movie are {brighter}",
    "disappear.brightness": "cells that disappear in your movie are {brighter}",
}
_WORDS = (
    ("more", "more", "less"),
    ("less", "less", "more"),
    ("many", "more", "fewer"),
    ("larger", "larger", "smaller"),
    ("brighter", "brighter", "dimmer"),
    ("nearer", "nearer to", "farther from"),
)
"""Place in a sentence, word where the user's movie has more, word where it has less."""
_RATES = {
    Event.MOVE: "your cells go on without an event {times} as often",
    Event.DIVIDE: "your cells divide {times} as often",
    Event.SPLIT: "your segmentation splits cells {times} as often",
    Event.MERGE: "your segmentation merges cells {times} as often",
    Event.APPEAR: "your cells appear {times} as often",
    Event.DISAPPEAR: "your cells disappear {times} as often",
    Event.SKIP: "your segmentation misses cells for some frames {times} as often",
    Event.FALSE: "your segmentation has {times} as many false cells",
}
_NAMED = ((0.5, "half"), (1 / 3, "a third"), (0.25, "a quarter"), (2.0, "twice"))


def words_of(key: str, yours: float, theirs: float) -> str:
    """A difference of a feature's mean as a sentence without its end; empty where none is known."""
    if key in _TIMES and min(yours, theirs) > 1e-6:
        return _TIMES[key].format(times=times(yours / theirs))
    if key in _SIDES:
        more = yours > theirs
        return _SIDES[key].format(**{place: a if more else b for place, a, b in _WORDS})
    return ""


def rate_words(event: Event, ratio: float) -> str:
    """How much more often an event happens, as a sentence without its end."""
    return _RATES[event].format(times=times(ratio))


def times(ratio: float) -> str:
    """A ratio for ``... as far``."""
    for value, name in _NAMED:
        if abs(ratio / value - 1) < 0.1:
            return name
    if ratio >= 10:
        return "more than ten times"
    if ratio < 0.1:
        return "less than a tenth"
    return f"{ratio:.1f} times"
