"""Project files for tests."""

from __future__ import annotations

from pathlib import Path

from bridgetrack.pipeline.project import Project, project_text


def write_project(project: Project, path: Path) -> Path:
    """Write a project and give its path back."""
    path.write_text(project_text(project, path), encoding="utf-8")
    return path
