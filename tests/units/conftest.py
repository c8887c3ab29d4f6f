import jaxtyping
import pytest


@pytest.fixture
def unchecked():
    """Turn the type checker off: show what a user sees who has none."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)
