"""Sample and learn probability densities that have a symmetry.

What there is stands in `__init__.pyi`; each part is imported when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
