"""Figures that are a part of a page."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Page:
    """A part of a page, in HTML.

    Attributes:
        html: The part.
    """

    html: str
