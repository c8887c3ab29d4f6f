"""What a report says beside numbers and figures."""

import dataclasses
from collections.abc import Mapping, Sequence


@dataclasses.dataclass(frozen=True, kw_only=True)
class Words:
    """What a report says beside the numbers and the figures.

    Attributes:
        title: The headline.
        lead: What was run, in a sentence or two.
        notes: For a sampler or model, a sentence that its numbers need.
        labels: What figures call samplers and models, where that is not their name.
        captions: For a figure, by its name, what it shows.
        floor: What the row of the floor is of.
        floor_note: What the floor is.
        headlines: The metrics that it begins with; if none, some of those there are.
        command: The words of the command that makes the same run; if none, those that
            the process was started with.
    """

    title: str
    lead: str = ""
    notes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    captions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    floor: str = "exact samples"
    floor_note: str = (
        "The floor is what as many exact samples score against exact samples."
    )
    headlines: Sequence[str] = ()
    command: Sequence[str] = ()
