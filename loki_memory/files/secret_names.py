"""Credentials that a name announces: `password = …`, `--token …`, "the API key is …".

Only a value that reads like a credential counts. Left alone by choice: plain words (`summer-2024`,
`token1`; in quotes after "password" they count), several words, references (variables, calls,
paths, URLs) and values that say they are placeholders ("<key>", "xxxx", "your-key-1").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple


class Secret(NamedTuple):
    """The position of a secret in a text, and its kind."""

    kind: str
    start: int
    end: int


class Rule(NamedTuple):
    """A format: every match of `pattern` contains one of `marks` and has to be `accepted`.

    Group 1 is the secret if there is a group, else the whole match. The pattern stays a string
    that `re` compiles once its mark occurs: most never do, and the import stays cheap.
    """

    kind: str
    marks: tuple[str, ...]
    pattern: str
    accepted: Callable[[str], bool] = bool


def matches(rules: Iterable[Rule], searched: str, text: str) -> Iterator[Secret]:
    for rule in rules:
        if any(mark in searched for mark in rule.marks):
            for match in re.finditer(rule.pattern, searched, re.ASCII):
                start, end = match.span(match.lastindex or 0)
                if rule.accepted(text[start:end]):
                    yield Secret(rule.kind, start, end)


def lowered(text: str) -> str:
    """The text in lower case with every character in its place; a dotted capital I would grow."""
    return text.replace("\u0130", "I").lower()


# Placeholders for a secret: <key>, [REDACTED:…], {key}, ***, $KEY, ${{ secrets.KEY }}.
STAND_IN = r"[<\[({*]|\$[A-Za-z_{(]|%\w+%|%\(|xxx|\.\.\.|…|(?i:your[_-])"


def _name(kind: str, stem: str, pattern: str) -> Rule:
    variant = r"(?:[_-]?\d|[_-](?:prod|dev|test|staging|live|old|new|value|confirmation))?"
    return Rule(kind, (stem,), rf"{pattern}{variant}(?![a-z0-9_])")


# Names that announce a secret, in lower case; "token_count" and "passwords" are other names.
NAMES = (
    _name("password", "pass", r"passw(?:or[dt]|d)"),
    _name("password", "pass", r"pass(?:phrase|code)"),
    # Not as a value: "result": "pass".
    _name("password", "pass", r"pass(?<=[\"'_]pass)(?<!:\"pass)(?<!: \"pass)"),
    _name("password", "pwd", r"pwd"),
    # In German (beside "Passwort"), Dutch, French, Spanish and Italian.
    *(
        _name("password", word[:8], word)
        for word in (
            r"kennwort",
            r"wachtwoord",
            r"mot de passe",
            r"contrase\S{1,6}a",
            r"parola d'ordine",
        )
    ),
    _name("aws_secret_key", "secret", r"secret[ _]?access[ _]?key"),
    _name("secret", "secret", r"secret(?:[ _-]?key(?:_base)?)?"),
    _name("azure_key", "key", r"shared_?access_?key"),
    _name("azure_key", "key", r"account_?key"),
    _name("private_key", "key", r"private[ _-]?key"),
    _name("private_key", "key", r"signing[ _-]?key"),
    _name("private_key", "key", r"encryption[ _-]?key"),
    _name("private_key", "key", r"client-key-data"),
    _name("api_key", "key", r"api[ _-]?key"),
    _name("api_key", "key", r"access[ _-]?key"),
    _name("token", "token", r"token"),
    _name("credentials", "credential", r"credentials?"),
    # Names of many things, of which only a random value is a secret.
    _name("key", "key", r"key(?<=[a-z0-9_-]key)"),
    _name("auth", "auth", r"auth(?:orization)?(?:[ _-]?code)?"),
    _name("auth", "access", r"access[ _-]code"),
    _name("cookie", "cookie", r"cookie"),
    _name("salt", "salt", r"salt(?<=[_-]salt)"),
)
_VAGUE = frozenset({"key", "auth", "cookie", "salt"})
STEMS = {
    stem.encode(): [rule.pattern.encode() for rule in NAMES if stem in rule.marks]
    for stem in dict.fromkeys(mark for rule in NAMES for mark in rule.marks)
}
# Tokens that are positions, versions, markers or colours; a type; a user in a URL; a secret's ARN.
_HARMLESS = (
    r"(?:page|pagination|next\w*|cont\w*|cursor|start\w*|sync|lock|change|idempotency|cancel\w*"
    r"|pad|[eb]os|unk|sep|mask|cls|stop|special|design|css|colou?r|public_?key)[ _-]?token"
    r"|::\w*$|://[^\s/?#@;]*$|secretsmanager:\S{0,40}secret$"
    r"|(?:primary|foreign|public|cache|partition|sort|index|idempotency|unique|object|dict|map|lookup"
    r"|row|range|hash|query|config|group|item|translation|dedup\w*|record|memory|content|commit|file"
    r"|json|field|column|event|message|job|task|node|routing|shard|blob|version|etag|checksum|digest"
    r"|fingerprint|sha\d*|md5|lesson|pattern|episode|belief)s?[ _-]?key$"
)
# The joint between a name and its value in code, configuration, markup, commands and sentences.
_JOINT = r"""(?xai)
    :[ ]?[>|][+-]?[ \t]{0,8}\r?\n[ \t]{1,40}                    # a block of YAML
  | (?:[ ](?:for|of|on)(?:[ ][\w.@-]{1,30}){1,3}?)?            # password for admin: …
    (?: ["'`*\\\])]{0,6}[ \t]{0,8}
        (?: :[ ]?[a-z][\w.\[\]|]{0,40}[ ]= | [:!]?={1,3}>? | :(?!:) )  # key: str = …, key => …
        \*{0,2}[ \t]{0,8}
      | [ ](?:is|was|are|ist|war|lautet|es|est|é|è)(?:[ ]now)?:?[ ]{1,4}\*{0,2} )
  | ["'`*]{0,6}[ \t]{0,40}\|[ \t]{0,40}\*{0,2}                  # cells of a table
  | (?:\s[\w:-]{1,30}=["'][^"'<>]{0,60}["']){0,4}>(?=[^\s<>]{6,8192}</)  # <password>…</password>
  | ["']\s{0,4}\{(?:[^{}]{0,300}?\s)?default\s{0,8}=\s{0,8}    # a variable of Terraform
  | ["'\\]{0,4},?\s{1,40}["'\\]{0,4}value["'\\]{0,4}\s{0,4}[:=]\s{0,4}  # name: …, value: …
  | (?P<call>["'\\]{1,4},[ ]{0,2}(?=["'\\]))                   # getenv("…", "…")
  | (?P<gap>[ \t]{1,4}(?:to[ ]{1,4})?)                         # --token …, password …
    """
_VALUE = r"""(?x)
    (?:[bruBRU@]{1,2}|(?:SecretStr|String::from|Some)\()?
    (?P<quote>\\{0,3}["'`])(?P<quoted>(?:(?!(?P=quote))(?:\\.|\S)){6,8192})(?:(?P=quote)|\Z)
  | (?P<bare>[^\s"'`,;<>|\\=&]{6,128})"""
# Belongs to the sentence, after an unquoted value.
_PUNCTUATION = ".:!?)*]}"
# Matched only once the value is accepted: a bound on the judged part keeps the search linear.
_REST_OF_BARE = r"[^\s\"'`,;&<>|\\]*+"

_REFERENCE = (
    rf"(?a){STAND_IN}"
    # A path or a URL; base64 may start with a slash too.
    r"|(?:\.{1,2}|~|[A-Za-z]:)[/\\]|/(?:[a-z][a-z0-9._-]*|Users)(?:/|$)|[A-Za-z][\w+.:-]*://"
    r"|[^@\s]+@[\w-]+\.[\w.-]+$"  # an e-mail address
    r"|(?:arn|env|file|ssm|vault):|0x(?:[0-9a-fA-F]{1,8}|[0-9a-fA-F]{40})$"  # a place, an address
    r"|\d{4}-\d\d-\d\d|#[0-9a-fA-F]{3,8}$"  # a date, a colour
    r"|.*\.(?:json|ya?ml|toml|txt|env|pem|key|crt|py|[jt]sx?|md|go|rs|sh|cfg|ini|conf)(?::\d+)?$"
)
_PLACEHOLDER = (
    r"\s|[^\x00-\u024f]|xxxx|\*\*\*|\.\.\.|\$\{|\{\{|\{\w*\}|<\w|^your|redacted|placeholder"
)
# Without quotes: a call, a lookup, an attribute, or a variable named after the secret.
_IDENTIFIER = (
    r"(?ai)[\w.]+[(\[{]|[a-z_]\w*(?:\.[a-z_]\w*)+$"
    r"|(?:[a-z]+\d{0,2}_)*(?:password|passwd|secret|token|key)\d{0,2}(?:_[a-z]+\d{0,2})*$"
)
# Letters and digits that are a word nevertheless: sha256, oauth2, v2, uint64, 512MB, token2.
_WORD = (
    r"(?:[vxpksh]|rc|alpha|beta|py|python|node|es|utf|http|ipv|oauth|auth|sha|md|aes|rsa|ec|ed"
    r"|[rhep]s|base|bcrypt|argon|pbkdf|pkcs|u?int|float|bytes|str|string|char|varchar)"
    r"\d+(?:[a-z]{0,3}|[a-z]*(?:array|token|key|types?))$|i?erc\d+[a-z]*$"
    r"|(?:password|passwd|pass|pwd|secret|token|key)\d$"
    r"|\d+(?:[kmgt]i?b?|ms|[shdx]|px|st|nd|rd|th|bits?|bytes?|chars?|min|hours?|days?)$"
)
_SAID_OF_PASSWORDS = frozenset(
    re.findall(
        r"\w+",
        "required optional missing invalid incorrect wrong expired hidden secure insecure masked "
        "string number boolean object varchar unknown undefined example redacted placeholder "
        "changeme password passwd secret current confirm repeat forgot forgotten reset change "
        "changed updated unchanged removed enabled disabled encrypted hashed bcrypt argon scrypt "
        "plaintext strong weak empty default generated provided visible submit field input label",
    )
)
_SYMBOL_INSIDE = r"[A-Za-z0-9][!@#$%^&*~]+[A-Za-z0-9]"
# Shorter values are words, states and counts; letters longer than any word are not one.
_SHORTEST = 6
_SHORTEST_RANDOM = 4  # "e2e" in a value of words is one of them
_LONGER_THAN_WORDS = 20
# The first line of a table or of CSV: a few words in each cell.
_LONGEST_HEAD, _MOST_ROWS = 300, 200
_HEAD = r"[|,\t]?(?:[\w *`\"./()-]{1,40}[|,\t]){1,20}(?:[\w *`\"./()-]{1,40})?\s?"
_CELL = r"[\s\"'`*]{0,20}([^\s\"'`*]{6,256})[\s\"'`*]{0,20}"
_DIGIT_RUNS = 3  # in a random value; a name or a version has fewer


def announced(low: str, text: str) -> Iterator[Secret]:
    """Find the credentials that follow a secret's name."""
    covered = 0
    for name in _names(low):
        value = _value_after(text, name) if name.start >= covered else None
        secret = _credential(text, name.kind, value) if value else None
        if secret:
            covered = secret.end
            yield secret
        yield from _below(text, name)


def _names(low: str) -> Iterator[Secret]:
    """Find the names that announce a secret, with its kind."""
    for name in sorted(matches(NAMES, low, low), key=attrgetter("start")):
        if not re.search(_HARMLESS, low[max(0, name.start - 40) : name.end]):
            yield name


def _value_after(text: str, name: Secret) -> re.Match[str] | None:
    joint = re.compile(_JOINT).match(text, name.end)
    value = re.compile(_VALUE).match(text, joint.end()) if joint else None
    before = text[max(0, name.start - 40) : name.start]
    return value if joint and value and _is_joined(before, name.kind, joint, value) else None


def _is_joined(before: str, kind: str, joint: re.Match[str], value: re.Match[str]) -> bool:
    """Check if a comma or a gap joins.

    They do in a call, after an option, after "password", and before what is plainly random.
    """
    if joint["call"]:
        return re.search(r"\([\"'\\]{1,4}[\w.-]*$", before) is not None
    is_option = re.search(r"(?<!\w)--?[\w-]*$", before) is not None
    if is_option or kind == "password" or not joint["gap"]:
        return True
    return is_random((value["quoted"] or value["bare"]).rstrip(_PUNCTUATION))


def _credential(text: str, kind: str, value: re.Match[str]) -> Secret | None:
    quoted = value["quoted"] is not None
    start, end = value.span("quoted" if quoted else "bare")
    punctuation = "" if quoted else _PUNCTUATION
    if not is_credential(text[start:end].rstrip(punctuation), kind, quoted=quoted):
        return None
    if rest := None if quoted else re.compile(_REST_OF_BARE).match(text, end):
        end = rest.end()
    return Secret(kind, start, start + len(text[start:end].rstrip(punctuation)))


def _below(text: str, name: Secret) -> Iterator[Secret]:
    """Find the credentials below a name that heads a column of a table or of CSV."""
    start, end = text.rfind("\n", 0, name.start) + 1, text.find("\n", name.end)
    head = text[start:end] if 0 <= end - start < _LONGEST_HEAD else ""
    separator = next((sign for sign in "|\t," if sign in head), "")
    above = text[text.rfind("\n", 0, max(0, start - 1)) + 1 : start]
    is_head = separator and head.count(separator) != above.count(separator)
    if not is_head or not re.fullmatch(_HEAD, head):
        return
    column = text.count(separator, start, name.start)
    for _ in range(_MOST_ROWS):
        start, end = end + 1, text.find("\n", end + 1)
        cells = text[start : end if end >= 0 else len(text)].split(separator)
        if len(cells) != head.count(separator) + 1:
            return
        start += sum(map(len, cells[:column])) + column
        value = re.compile(_CELL).fullmatch(cells[column])
        if value and is_credential(value[1], name.kind, quoted=False):
            yield Secret(name.kind, start + value.start(1), start + value.end(1))
        if end < start:
            return


def is_credential(value: str, kind: str, *, quoted: bool) -> bool:
    """Check if the value after a secret's name reads like a credential, not like a word."""
    if len(value) < _SHORTEST:
        return False
    if kind in _VAGUE:
        return is_random(value) and not _is_reference(value, quoted=quoted)
    is_likely = (
        len(_without_words(value, kind)) >= _SHORTEST_RANDOM
        or re.search(_SYMBOL_INSIDE, value) is not None
        or (kind == "password" and value.isdecimal())
        or (kind == "password" and quoted and _is_plain_password(value))
        or (quoted and len(value) >= _LONGER_THAN_WORDS and value.isalpha() and value.islower())
    )
    return is_likely and not _is_reference(value, quoted=quoted)


def is_random(value: str) -> bool:
    """Check for a value that no person writes: long, with digits all over it."""
    if re.fullmatch(r"[0-9a-f]{32,}|[0-9A-F]{32,}", value):
        return bool(re.search(r"[a-fA-F]", value) and re.search(r"\d", value))
    if len(value) < _LONGER_THAN_WORDS or not re.fullmatch(r"[\w+/=~.-]+", value, re.ASCII):
        return False
    kinds = re.sub(r"[a-z]+", "a", re.sub(r"[A-Z]+", "B", re.sub(r"\d+", "0", value)))
    return kinds.count("0") >= _DIGIT_RUNS and 3 * len(kinds) >= len(value)


def _is_plain_password(value: str) -> bool:
    """Check for a password in letters: a quoted word, unless it is a word about passwords."""
    return value.isalpha() and value.isascii() and value.lower() not in _SAID_OF_PASSWORDS


def _without_words(value: str, kind: str) -> str:
    """The parts of a value that mix letters and digits and are no word."""
    pieces = re.findall("[a-z0-9]+", value.lower())
    # A secret's own name ("app1-db", "node12/tls") is made of numbered words.
    is_name = kind != "password" and len(pieces) > 1
    is_word = re.compile(rf"{_WORD}|[a-z]+\d{{1,2}}$" if is_name else _WORD).match
    mixed = (piece for piece in pieces if not (piece.isalpha() or piece.isdecimal()))
    return "".join(piece for piece in mixed if not is_word(piece))


def _is_reference(value: str, *, quoted: bool) -> bool:
    """Check if a value only refers to a credential."""
    return bool(
        re.match(_REFERENCE, value)
        or re.search(_PLACEHOLDER, value.lower())
        or (not quoted and re.match(_IDENTIFIER, value))
    )


@lru_cache(maxsize=4096)
def kind_of(key: object) -> str | None:
    """The kind that a key announces, as if it were quoted in a text."""
    quoted = lowered(f'"{key}')
    return next((name.kind for name in _names(quoted) if name.end == len(quoted)), None)
