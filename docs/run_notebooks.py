"""Run the notebooks from their first cell to their last: ``python docs/run_notebooks.py``.

The results are not kept: notebooks stand in the repository without outputs.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

NOTEBOOKS = sorted((Path(__file__).parent / "notebooks").glob("*.ipynb"))


def main() -> None:
    """Execute every notebook by a kernel of its own, as whoever opens it would."""
    import nbformat
    from nbclient import NotebookClient

    for path in NOTEBOOKS:
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            notebook = nbformat.read(path, as_version=4)
            where = {"metadata": {"path": folder}}
            NotebookClient(notebook, timeout=300, resources=where).execute()
        sys.stdout.write(f"{path.name}: {time.perf_counter() - began:.1f} s\n")


if __name__ == "__main__":
    main()
