import pathlib
import re
import shlex

import pytest
from test_documents import PAGES, README

from equistein.cli._main import COMMANDS as KNOWN, parse
from equistein.runs import UserError
from experiments import experiment, MODULES
from experiments.__main__ import parse as parse_experiment

ROOT = pathlib.Path(__file__).parents[2]
ALWAYS = {"--quiet", "--json"}  # which every command takes


def commands(text):
    """The commands in the blocks of a page, as words."""
    shown = re.findall(r"```(?:bash|text)\n(.*?)```", text, flags=re.DOTALL)
    lines = "".join(shown).replace("\\\n", " ").splitlines()
    begins = ("equistein ", "python -m experiments ")
    found = [line for line in lines if line.startswith(begins)]
    return [shlex.split(line.rstrip("& "), comments=True) for line in found]


COMMANDS = {
    " ".join(words): words
    for text in (README, *(page.read_text() for page in PAGES))
    for words in commands(text)
}


def is_understood(words):
    """Whether the command line takes these words, which are not carried out."""
    words = [word for word in words if word not in ALWAYS]
    if words[0] == "python":
        name, rest = words[3], words[4:]
        if name not in MODULES:
            return False
        command = lambda: parse_experiment(experiment(name), rest)
    elif words[1] in ("--version", "--help"):
        return True
    elif words[1] not in KNOWN:
        return False
    else:
        command = lambda: parse(words[1:])
    try:
        command()
    except (UserError, SystemExit):
        return False
    return True


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_in_the_documents_is_understood(line):
    assert is_understood(COMMANDS[line])


@pytest.mark.parametrize(
    "line",
    [
        "equistein fitt data.csv",
        "equistein fit data.csv --grup cyclic:4",
        "python -m experiments no-such-experiment",
        "python -m experiments dw4 --num-seeds many",
    ],
)
def test_a_command_that_is_not_understood_is_found(line):
    (words,) = commands(f"```bash\npip install equistein\n{line} \\\n  # told\n```")
    assert not is_understood(words)
