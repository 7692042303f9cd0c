"""Find in another frame the change of masks that was made in one."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from bridgetrack.errors import InputError
from bridgetrack.regions.acts import cut, grow, join, remove
from bridgetrack.regions.mend import Mend, MendKind, MendSite, Place
from bridgetrack.regions.regions import Index, likeness

_THERE = 0.4  # overlap above which a cell of another frame is the same
_BOTH = 0.3  # of each piece of a cut that one mask of another frame must cover


def same_mend(site: MendSite, mend: Mend) -> Mend | None:
    """What was said of the masks of one frame, said of another frame nearby.

    Parameters
    ----------
    site
        The other frame.
    mend
        The change made in the first.

    Returns
    -------
    Mend or None
        The same cut of the same pair, the same join and so on; None where the masks of this
        frame do not show the same.
    """
    try:
        if mend.kind == MendKind.CUT:
            return _same_cut(site, mend)
        if mend.kind == MendKind.JOIN:
            return _same_join(site, mend)
        if mend.kind == MendKind.REMOVE:
            label = _lying_on(site, mend.wrong[0], _THERE)
            return remove(site, _inside(site, mend.wrong[0], label)) if label else None
        if mend.kind == MendKind.GROW and not _lying_on(site, mend.right[0], 0.0):
            found = grow(site, _inside(site, mend.right[0], 0))
            return found if likeness(found.right[0], mend.right[0]) > _THERE else None
    except InputError:
        return None
    return None


def _same_cut(site: MendSite, mend: Mend) -> Mend | None:
    first, second = mend.right
    both = np.union1d(first, second)
    label = _lying_on(site, both, _THERE)
    if not label:
        return None
    flat = site.labels.reshape(-1)
    if min(float((flat[p] == label).mean()) for p in (first, second)) < _BOTH:
        return None
    places = tuple(_inside(site, p, label) for p in (first, second))
    found = cut(site, *places)
    with suppress(InputError):  # a mask without a valley can be cut by two places alone
        by_tree = cut(site, places[0])
        if _matches(by_tree, mend) > _matches(found, mend) - 0.1:
            found = by_tree
    return found if _matches(found, mend) > _THERE else None


def _matches(found: Mend, mend: Mend) -> float:
    """The lesser overlap of two pieces with those of another frame."""
    a, b = found.right
    c, d = mend.right
    return max(min(likeness(a, c), likeness(b, d)), min(likeness(a, d), likeness(b, c)))


def _same_join(site: MendSite, mend: Mend) -> Mend | None:
    labels = [_lying_on(site, p, _THERE) for p in mend.wrong]
    if not all(labels) or labels[0] == labels[1]:
        return None
    places = [_inside(site, p, k) for p, k in zip(mend.wrong, labels, strict=True)]
    return join(site, *places)


def _lying_on(site: MendSite, pixels: Index, least: float) -> int:
    """The label that overlaps some pixels most, by more than a share of their union; or 0."""
    flat = site.labels.reshape(-1)
    met, counts = np.unique(flat[pixels], return_counts=True)
    counts, met = counts[met > 0], met[met > 0]
    if not len(met):
        return 0
    best = int(np.argmax(counts))
    union = int((flat == met[best]).sum()) + len(pixels) - int(counts[best])
    return int(met[best]) if counts[best] > least * union else 0


def _inside(site: MendSite, pixels: Index, label: int) -> Place:
    """Of some pixels with a label, the one nearest to their middle."""
    mine = pixels[site.labels.reshape(-1)[pixels] == label]
    if not len(mine):
        raise InputError(f"frame {site.frame}: no pixel of {label} lies there")
    index = np.stack(np.unravel_index(mine, site.labels.shape), axis=1)
    away = np.linalg.norm(index - index.mean(axis=0), axis=1)
    return tuple(float(k) for k in index[int(np.argmin(away))])
