"""Learn to track dividing cells from a few clicks.

``__init__.pyi`` lists the public names; what they need is imported when they are first used.
"""

from __future__ import annotations

from typing import Any

import lazy_loader

_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from bridgetrack.files import program_version

        return program_version()
    return _public(name)
