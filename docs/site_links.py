"""On the site, links to files of the repository that are no pages lead to the repository."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?://|#|mailto:)([^)\s#]+)(#[^)]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Give links that lead out of the folder of pages, or to a folder, their whole address."""
    pages = {file.src_uri for file in files}
    here = posixpath.dirname(page.file.src_uri)

    def whole(match: re.Match[str]) -> str:
        words, target, anchor = match.group(1), match.group(2), match.group(3) or ""
        path = posixpath.normpath(posixpath.join(here, target))
        if path in pages:
            return match.group(0)
        if f"{path}/README.md" in pages:
            return f"[{words}]({target.rstrip('/')}/README.md{anchor})"
        inside = posixpath.normpath(posixpath.join("docs", here, target))
        return f"[{words}]({config.repo_url.rstrip('/')}/blob/main/{inside}{anchor})"

    return _LINK.sub(whole, markdown)
