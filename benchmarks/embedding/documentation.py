"""Paragraphs of documentation out of sdists whose licence lets a model learn from them.

Markup is taken off as far as it hides words; code blocks, tables and lists of names are left out,
because a teacher of sentences has little to say about them.
"""

from __future__ import annotations

import ast
import random
import re
import tarfile
from collections.abc import Iterator, Sequence
from email.parser import Parser
from pathlib import Path
from typing import NamedTuple

_PERMISSIVE = re.compile(
    r"\b(?:MIT|BSD|0BSD|Apache|ISC|Unlicense|PSF|Python Software Foundation)\b", re.IGNORECASE
)
_COPYLEFT = re.compile(r"GPL|General Public|Mozilla|MPL|CC-BY|Commons", re.IGNORECASE)
_DOCUMENT = re.compile(
    r"(?:readme|contributing|faq)[^/]*$|/docs?/.*\.(?:rst|md|txt)$", re.IGNORECASE
)
_TESTS = re.compile(r"/(?:tests?|vendor|_vendor|vendored)/")
_LARGEST = 500_000  # bytes of a file that are read
_ROLE = re.compile(r":[a-z:]+:`~?([^`<]*?)(?:\s*<[^`]*>)?`|`([^`<]*?)\s*<[^`]*>`_+")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|https?://\S+")
_MARKS = re.compile(r"[`*]+|(?<=\w)_(?=\s|$)|^[\s>#|.-]+|\s+")
_WORD = re.compile(r"[A-Za-z]{2,}")
_SHORTEST, _LONGEST = 40, 360  # characters of a text: a sentence to a short paragraph
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


class Package(NamedTuple):
    """The texts of one sdist."""

    name: str
    licence: str
    texts: list[str]


def packages(folder: Path) -> Iterator[Package]:
    """The sdists in a folder with a permissive licence, in the order of their names."""
    for path in sorted(folder.glob("*.tar.gz")):
        with tarfile.open(path) as sdist:
            files = [member for member in sdist.getmembers() if member.isfile()]
            name, licence = _about(sdist, files)
            if _PERMISSIVE.search(licence) and not _COPYLEFT.search(licence):
                yield Package(name, licence, list(dict.fromkeys(_texts(sdist, files))))


def sample(found: Sequence[Package], most: int, seed: int) -> list[str]:
    """So many texts, no package with more than a twentieth of them."""
    chosen = list[str]()
    dice = random.Random(seed)
    for package in found:
        texts = package.texts
        chosen += texts if len(texts) <= most // 20 else dice.sample(texts, most // 20)
    chosen = list(dict.fromkeys(chosen))
    dice.shuffle(chosen)
    return chosen[:most]


def _about(sdist: tarfile.TarFile, files: Sequence[tarfile.TarInfo]) -> tuple[str, str]:
    """Name and version, and what the package says of its licence."""
    paths = [file for file in files if re.fullmatch(r"[^/]+/PKG-INFO", file.name)]
    if not paths:
        return "", ""
    head = Parser().parsestr(_read(sdist, paths[0]), headersonly=True)
    classifiers = [line for line in head.get_all("Classifier", []) if line.startswith("License")]
    said = [head.get("License-Expression", ""), *classifiers]
    said = said if any(said) else [head.get("License", "").split("\n")[0][:60]]
    return f"{head['Name']} {head['Version']}", "; ".join(filter(None, said))


def _texts(sdist: tarfile.TarFile, files: Sequence[tarfile.TarInfo]) -> Iterator[str]:
    for file in files:
        if _TESTS.search(file.name) or file.size > _LARGEST:
            continue
        if _DOCUMENT.search(file.name):
            yield from paragraphs(_read(sdist, file))
        elif file.name.endswith(".py"):
            for docstring in _docstrings(_read(sdist, file)):
                yield from paragraphs(docstring)


def _read(sdist: tarfile.TarFile, file: tarfile.TarInfo) -> str:
    data = sdist.extractfile(file)
    return data.read().decode("utf-8", "replace") if data else ""


def _docstrings(source: str) -> Iterator[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def paragraphs(document: str) -> Iterator[str]:
    """The paragraphs of prose in a document, long ones cut between sentences."""
    for block in re.split(r"\n\s*\n", document):
        if block.startswith(("    ", "\t", "..", "```", ">>>", "|", "+-")) or ">>>" in block:
            continue
        text = _LINK.sub(r"\1", _ROLE.sub(r"\1\2", block))
        text = _MARKS.sub(" ", text).strip()
        for part in _cut(" ".join(text.split())):
            if _is_prose(part):
                yield part


def _cut(text: str) -> Iterator[str]:
    part = ""
    for sentence in _SENTENCE.split(text):
        if part and len(part) + len(sentence) > _LONGEST:
            yield part
            part = ""
        part = f"{part} {sentence}".strip()
    yield part


def _is_prose(text: str) -> bool:
    words = sum(map(len, _WORD.findall(text)))
    return _SHORTEST <= len(text) <= _LONGEST and words > 0.7 * len(text.replace(" ", ""))
