"""Sample and learn probability densities that have a symmetry.

Public names are listed in `__init__.pyi` and imported when they are first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
