"""Pictures made smaller."""

import io

from PIL import Image


def thumbnail(png: bytes, width: int = 1_000) -> bytes:
    """Return a picture at most so wide, in 256 colors, as a .png file.

    Args:
        png: The content of a file.
        width: The number of pixels.

    Raises:
        ValueError: If it is no picture, or too large a one.
    """
    try:
        with Image.open(io.BytesIO(png), formats=["PNG"]) as opened:
            picture = opened.convert("RGB")
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"it is no picture that can be read: {error}") from None
    if picture.width > width:
        height = max(1, round(picture.height * width / picture.width))
        picture = picture.resize((width, height), Image.Resampling.LANCZOS)
    small = io.BytesIO()
    picture.quantize(256).save(small, format="PNG", optimize=True)
    return small.getvalue()
