"""Beliefs that nobody can use: platitudes, records without substance or evidence, planted ones."""

from __future__ import annotations

import re

from loki_memory.consolidation.similarity import GAP, LEFT_OUT, content, names
from loki_memory.models import AntiPattern, Belief, Episode, Memory, Pattern, Skill
from loki_memory.models.prompt_injection import gives_instructions, pipes_download
from loki_memory.models.text import stem

LONGEST = 600  # characters: a belief is a statement, not a report
_MOST_CONDITIONS = 3
_SPECIFIC = 2  # words that not every project could say of itself
# `Pattern for implement tasks (3 instances)`, `Avoid: IterationError`: a bucket is not a lesson.
_BUCKET = re.compile(
    r"(?:common |general |recurring )?(?:pattern|approach|workflow|lesson)s? (?:for|of|in|from) "
    r".*(?:tasks?|episodes?|instances?|sessions?)\b"
    r"|.*\(\d+ (?:instances?|episodes?|occurrences?)\)$",
    re.IGNORECASE,
)
_BARE_ERROR = re.compile(
    r"(?:avoid|beware|watch out)(?: of| for)?:? *\w*(?:error|exception)?\W*$", re.IGNORECASE
)
# `run_test`, `read_file`, `edit_file`: what every agent does all day.
_BARE_TOOL = re.compile(r"`?[a-z]+_[a-z]+`?(?:, `?[a-z]+_[a-z]+`?)*")
_PATH = re.compile(r"[\w.-]+/[\w./-]+|\w+\.[a-z]{1,5}\b|\d")
# What could be said of any work, as stems.
_GENERIC = frozenset(
    stem(word)
    for word in re.findall(
        r"\w+",
        "able about accomplish accurate achieve action activity add address agent apply "
        "approach appropriate aspect attention avoid aware bad basic best better bug build "
        "careful carefully case catch change check clean clear code codebase commit common "
        "complete completed concern consider consistent correct correctly create deal debug "
        "deliver detail develop developer development diligent document done double easy edge "
        "effective efficient encounter engineer ensure episode error every everything "
        "exception execute expect fail failed failure feature file find finish first fix "
        "follow function general generic get goal good great guideline handle happen hard "
        "help helpful high implement implementation important improve improvement instance "
        "issue item job keep know learn lesson look make manage matter method mistake modify "
        "new next old operation order outcome output part past pattern perform phase plan "
        "possible practice previous problem process program project proper properly quality "
        "quick ready really refactor remember repeat require requirement resolve resolved "
        "result review right robust run save sequence session similar simple software "
        "solution solve solved something standard start state step strategy succeed success "
        "successful successfully sure system take task team test testing thing think thorough "
        "thoroughly time try understand unexpected update useful user various verify way well "
        "work workflow write wrong",
    )
)


def is_platitude(text: str) -> str:
    """Why a statement says nothing specific; empty if it does say something."""
    bare = text.replace(GAP, " ").replace(LEFT_OUT, " ").strip()
    if not re.search(r"\w", bare):
        return "has no words"
    if _BUCKET.fullmatch(bare):
        return "counts what happened and says nothing about it"
    if _BARE_ERROR.match(bare):
        return "names an error and not what to do about it"
    specific = {entry for entry in content(bare) if entry not in _GENERIC}
    if len(specific) + len(names(bare)) + len(set(_PATH.findall(bare))) < _SPECIFIC:
        return "could be said of any project"
    return ""


def lint(record: Memory) -> list[str]:
    """Return what is wrong with a produced record, in words; empty if it is worth keeping."""
    found = vacuous(record)
    if len(record.title()) > LONGEST:
        found.append(f"is longer than {LONGEST} characters")
    if isinstance(record, Belief) and is_unfounded(record):
        found.append("names no episode that it was learned from")
    return found + _planted(record)


def vacuous(record: Memory) -> list[str]:
    """Return why a record tells its reader nothing to act on; empty if it does."""
    found = [reason] if (reason := is_platitude(record.title())) else []
    if GAP in record.title() and not isinstance(record, AntiPattern | Episode):
        found.append(f"has {GAP} where a reader expects words")  # only errors are quoted masked
    if isinstance(record, Pattern):
        found += _unusable(record)
    if isinstance(record, AntiPattern) and any(
        not resolution.do.strip() for resolution in record.resolutions
    ):
        found.append("has an empty resolution")
    return found


def _planted(record: Memory) -> list[str]:
    """Return what somebody may have had a command print, so that it is learned."""
    found: list[str] = []
    if isinstance(record, AntiPattern) and gives_instructions(record.what_fails):
        found.append("repeats what an output says to its reader")
    passage = record.passage()
    said = record.body if isinstance(record, Skill) else f"{passage.title}\n{passage.text}"
    if pipes_download(said):
        found.append("pipes a download into a shell")
    return found


def is_unfounded(belief: Belief) -> bool:
    """Check whether a belief names no episode; a topic rests on its members."""
    key = (belief.model_extra or {}).get("key")
    if isinstance(key, dict) and "topic" in key:
        return False
    return not (belief.episodes_for() or belief.episodes_against())


def _unusable(pattern: Pattern) -> list[str]:
    found: list[str] = []
    if not (pattern.correct_approach or pattern.incorrect_approach):
        found.append("says neither what to do nor what to avoid")
    elif pattern.correct_approach == pattern.incorrect_approach:
        found.append("advises what it warns of")
    if _BARE_TOOL.fullmatch(pattern.correct_approach or ""):
        found.append("advises to use a tool and not what for")
    if len(pattern.conditions) > _MOST_CONDITIONS:
        found.append(f"has more than {_MOST_CONDITIONS} conditions")
    return found
