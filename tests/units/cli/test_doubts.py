"""What samplers warn of is printed once, on the standard error."""

import warnings

import pytest

from equistein.cli._doubts import doubts_printed
from equistein.cli._output import set_output, warn
from equistein.samplers import SamplingWarning


def test_a_warning_of_a_sampler_is_printed_once_and_others_go_on(capsys):
    set_output(quiet=True, json=False)
    with doubts_printed():
        for _ in range(2):
            warnings.warn("MALA: it stood still.", SamplingWarning, stacklevel=1)
        warn("MALA: it stood still.")
        with pytest.raises(UserWarning, match="another"):  # an error in tests
            warnings.warn("another", stacklevel=1)
    printed = capsys.readouterr()
    assert printed.err == "equistein: warning: MALA: it stood still.\n"
    assert printed.out == ""
