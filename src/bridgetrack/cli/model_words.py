"""Models of the library in words and as JSON values, for ``bridgetrack models``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bridgetrack.cli.console import plural

if TYPE_CHECKING:
    from bridgetrack.models.entry import Entry
    from bridgetrack.models.similarity import Ranked


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


def _learned_from(entry: Entry) -> list[str]:
    assert entry.card is not None
    parts = []
    if entry.card.counts:
        parts.append(plural(sum(entry.card.counts.values()), "answer"))
    if entry.card.accuracy is not None:
        parts.append(f"about {100 * entry.card.accuracy[0]:.1f} % of the events right")
    return parts


def shown_lines(entry: Entry) -> list[str]:
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
