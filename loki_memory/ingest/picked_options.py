"""Options that a user picks by letter or number: "A.", "2", "I like Option 1".

The reply says nothing by itself. What was chosen stands in the agent's message before it, as an
item of a list that begins with the letter. A letter that names nothing, that names two things, or
only what to do next, resolves to nothing.
"""

from __future__ import annotations

import re

from loki_memory.ingest.sentences import sentences

_LONGEST_REPLY = 60  # characters
_FEWEST = 2  # options among which somebody picks
_PICK = re.compile(
    r"(?:(?:yes|yeah|ok(?:ay)?|so|i(?:'d)? (?:like|prefer|choose|pick|vote for|go with|think)"
    r"|let'?s (?:do|go with|use|try|take|pick)|go (?:with|for)|do|use|take|pick|choose)[\s,:]+)*"
    r"(?:(?:the )?(?:option|choice|variant|approach|number)\s*#?)?(?P<name>[a-d]|[1-9])"
    r"[\s.)!,:;-]*(?:(?:it )?(?:is|sounds|looks|seems) (?:fine|good|great|best|better|ok(?:ay)?)"
    r"|please|works|then|it is|thanks|\s|[.!,])*",
    re.IGNORECASE,
)
_OPTION = re.compile(
    r"^[ \t]*(?:[-*+\u2022][ \t]+|#+[ \t]*|>[ \t]*)?(?:\*\*|__)?"
    r"(?:option|choice|variant|approach)?[ \t]*(?P<name>[A-Da-d]|[1-9])"
    r"(?:\*\*|__)?[ \t]*[.):\u2014\u2013-]+(?:\*\*|__)?[ \t]+(?P<text>\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)

_WORK = re.compile(  # an option that says what to do next, and decides nothing about the project
    r"(?:run|apply|done|fix|quick fix|continue|resolve|proceed|commit|start|stop|skip|dismiss"
    r"|review|both|all|none|yes|no|end|merge|push|wait)\b"
    r"|.*(?:\bthis session\b|`/|\byour call\b|\bas-is\b)",
    re.IGNORECASE,
)


def chosen(reply: str, said: str) -> str:
    """The text of the option that a reply picks from a message; empty if it picks none.

    >>> chosen("I like option 2", "1. Keep the old path\\n2. Write to a new file. It is slower.")
    'Write to a new file.'
    """
    picked = _PICK.fullmatch(reply.strip()) if len(reply) <= _LONGEST_REPLY else None
    options = _options(said) if picked else {}
    found = options.get(picked["name"].lower(), set()) if picked else set()
    return found.pop() if len(options) >= _FEWEST and len(found) == 1 else ""


def _options(said: str) -> dict[str, set[str]]:
    """The texts of options by their letters; a list that begins anew may give one letter two."""
    found: dict[str, set[str]] = {}
    for option in _OPTION.finditer(said):
        text = option["text"].replace("**", "").replace("__", "").strip(" *_")
        first = next(sentences(text), "")
        if first and not _WORK.match(first):
            found.setdefault(option["name"].lower(), set()).add(first)
    return found
