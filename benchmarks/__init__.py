"""The library's speed, side by side with what one would write or take instead."""
