"""Projects for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.history import AnswerHistory
from bridgetrack.models.model import Model, model_to_json
from bridgetrack.movie import open_labels
from bridgetrack.pipeline.project import MovieFile, Project, save_project


def write_project(
    folder: Path,
    labels: Path,
    answers: AnnotationSet | AnswerHistory | None = None,
    model: Model | None = None,
    **settings: Any,
) -> Path:
    """Write the project of a label movie and give its folder back."""
    geometry = open_labels(labels).geometry
    if not isinstance(answers, AnswerHistory):
        answers = AnswerHistory(AnnotationSet(geometry) if answers is None else answers)
    if model is not None:
        settings["model"] = model_to_json(model)
    history = AnswerHistory(
        answers.annotations, answers.past, answers.future, answers.masks, settings
    )
    save_project(Project(MovieFile(labels), None, geometry, history), folder)
    return folder
