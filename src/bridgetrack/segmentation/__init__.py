"""Segmentation: built in, or by Cellpose.

``__init__.pyi`` lists the public names; what they need is imported when they are first used, as
tracking knows settings of the segmentation and does none.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
