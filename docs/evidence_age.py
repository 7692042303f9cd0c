"""On the site, a page of evidence says so where it is older than the code that it reports on."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def pages() -> Any:
    """The module that measures pages; benchmarks is no package."""
    spec = importlib.util.spec_from_file_location("pages", ROOT / "benchmarks" / "pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Put the remark below the title."""
    path = Path(page.file.src_uri)
    if path.parent.name != "evidence":
        return markdown
    words = pages().remark(markdown, path.stem)
    if not words:
        return markdown
    title, rest = markdown.split("\n", 1)
    return f'{title}\n\n!!! warning "Older than the code"\n    {words}\n{rest}'
