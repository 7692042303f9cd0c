"""The sample movie that comes with the package."""

from __future__ import annotations

from pathlib import Path

from bridgetrack.errors import InputError

SAMPLE_SEQUENCE = "01"


def sample_folder() -> Path:
    """Folder of the sample: images in ``01``, truth in ``01_GT/TRA``, annotations beside them.

    In an installed package it lies inside the package, in a working copy at the top level.

    Raises
    ------
    InputError
        Where the sample did not come with the package.
    """
    here = Path(__file__).resolve()
    packaged, working_copy = here.parent / "_sample", here.parents[2] / "sample_data"
    for folder in (packaged, working_copy):
        if (folder / SAMPLE_SEQUENCE).is_dir():
            return folder
    raise InputError(
        f"the sample movie is missing (looked in {packaged} and {working_copy}); reinstall "
        "bridgetrack"
    )
