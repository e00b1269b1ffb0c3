"""What ranking knows of every memory: plain arrays, in the order of their sessions.

Documents are the memories that can be recalled, sorted by (session, moment, id); those without a
session come first and have no neighbours. A long document has several passages; a short one is
its own passage. Passages stand in the order of their documents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]
    Floats = NDArray[np.float32]
    Codes = NDArray[np.uint8]

UNKNOWN_DAY = -(2**31)
NEVER = 2**31 - 1


class Corpus(NamedTuple):
    """All documents and their passages."""

    row: Ints  # per document: its row in the index
    session: Ints  # a number per session; -1 for none
    length: Ints  # tokens of the whole document, repeated ones too
    centre: Floats  # its middle, in tokens since the start of its session
    day: Ints  # of the moment it speaks of, since 1970; UNKNOWN_DAY if it does not say
    speaker: Ints  # a number per agent or speaker; -1 for none
    first: Ints  # documents + 1: passages of document d are first[d] … first[d + 1] - 1
    document: Ints  # per passage: its document
    tokens: NDArray[np.uint32]  # distinct token ids of all passages, one after the other
    starts: NDArray[np.int64]  # passages + 1: where each passage's tokens begin
    rarity: Floats  # per token id: ln(1 + (N - n + .5) / (n + .5)) over passages


class Catalogue(NamedTuple):
    """The corpus with what finding candidates needs besides."""

    corpus: Corpus
    kind: Codes  # per document: its place in KINDS
    status: Codes  # … in STATUSES
    scope: Codes  # … in SCOPES
    until: Ints  # … the day from which on it does not hold; a day that never comes if it does
    size: Ints  # … bytes of the whole record
    foreign: Codes  # 1 where the memory was imported or comes from outside
    unproven: Codes  # 1 where it is not told unasked: `gate.PROVEN`
    passage: Ints  # per passage: its row in the index, and in the full text
    entry: Ints  # per passage: its entry among the vectors; -1 for none
    norm: Floats  # per passage: length of its vector less half of the mean
    mean: Floats  # of all vectors
    sessions: list[str]
    speakers: list[str]
