"""Secrets in known formats, found and replaced before a text is written anywhere.

A secret is recognised by a format that its vendor publishes (`TOKENS`, `FORMATS`, `HEADERS`,
private key blocks) or by a name that announces it (`password = …`). Randomness alone is never a
reason: hashes, ids and images look as random as keys, and a false alarm silently damages a memory.

After a name, only a value that reads like a credential counts. Left alone by choice: plain words
(`summer-2024`, `token1`; in quotes after "password" they count), several words, references
(variables, calls, paths, URLs) and values that say they are placeholders ("<key>", "xxxx",
"your-key-1"). A placeholder in the exact shape of a vendor's token is replaced like the token.

Half a secret has no format any more. So a long text is redacted before it is cut,
never after: `clip` and `clip_end` do both.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from operator import attrgetter, is_
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


# A token starts a word, or follows the rest of an escape: \n in JSON text, %3D, ESC[31m.
# In the URLs of Telegram it follows "bot".
_START = r"(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2})|(?<=\dm)|(?<=bot)"
_END = r"(?![A-Za-z0-9])"
# A body that is neither a CSS class nor "your-key-goes-right-here".
_BODY = r"(?=[a-z_-]{0,64}[A-Z0-9]|[a-z]{24})[\w-]{20,}+"


def _token(kind: str, prefixes: str, body: str) -> Rule:
    marks = tuple(prefixes.split())
    return Rule(kind, marks, f"(?:{'|'.join(map(re.escape, marks))}){body}")


def _any_of(marks: Iterable[str]) -> bytes:
    """A pattern that branches on the first letter: three times as fast as a flat one."""
    rests: dict[str, list[str]] = {}
    for mark in sorted(marks):
        rests.setdefault(mark[0], []).append(re.escape(mark[1:]))
    return "|".join(f"{first}(?:{'|'.join(rest)})" for first, rest in rests.items()).encode()


# Tokens with a published prefix. Each holds, around its mark, a run of at least 20 characters out
# of `_RUN_CHARACTERS`: the first look searches such runs only. Here and below quantifiers are
# possessive or bounded, so that no text takes quadratic time.
TOKENS = (
    _token("github_pat", "ghp_", r"\w{36,}+"),
    _token("github_pat", "github_pat_", r"\w{30,}+"),
    # OAuth, user, server and refresh tokens; a server token may carry a JWT.
    _token("github_token", "gho_ ghu_ ghs_ ghr_", r"\w{36,}+(?:\.[\w-]{10,}+){0,2}"),
    # Personal, project and deploy tokens, of which the routable ones end in .xx.yyyyyyyyy …
    _token("gitlab_token", "glpat- gldt- glrt-", _BODY + r"(?:\.\w{2}\.\w{9})?"),
    # … and those of builds, triggers, SCIM, feeds, mail, agents, OAuth, flags and workspaces.
    _token(
        "gitlab_token", "glcbt- glptt- glsoat- glft- glimt- glagent- gloas- glffct- glwt-", _BODY
    ),
    _token("aws_access_key", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}" + _END),
    _token("google_api_key", "AIza", r"[\w-]{35}" + _END),
    _token("google_client_secret", "GOCSPX-", r"[\w-]{20,}+"),
    _token("google_access_token", "ya29.", r"(?:[a-z]\.)?[\w-]{20,}+"),
    # Entra ID, formerly Azure AD: a digit and "Q~" from the fourth place on.
    Rule("azure_client_secret", ("Q~",), r"[\w.~-]{3}\dQ~[\w.~-]{31,34}" + _END),
    _token("slack_token", "xox", r"[abeoprs](?:\.xox[bp])?-" + _BODY),
    _token("slack_token", "xapp-", r"\d-[\w-]{14,}+"),
    _token("stripe_key", "sk_live_ sk_test_ rk_live_ rk_test_", r"[A-Za-z0-9]{16,}+"),
    _token("stripe_webhook_secret", "whsec_", r"[A-Za-z0-9]{20}[A-Za-z0-9+/=]*+"),
    _token("anthropic_key", "sk-ant-", r"(?:[a-z]{2,8}\d\d-)?+" + _BODY),
    _token("openai_key", "sk-proj- sk-svcacct- sk-admin- sk-None-", _BODY),
    # The plain form, which OpenRouter, DeepSeek and others share.
    _token("openai_key", "sk- sk-or-v1-", r"(?=[a-z]{0,31}[A-Z0-9]|[a-z]{32})[A-Za-z0-9]{20,}+"),
    # A capital letter distinguishes OpenAI's session key from a hexadecimal session id.
    _token("openai_key", "sess-", r"(?=[a-z0-9]{0,39}[A-Z])[A-Za-z0-9]{40}" + _END),
    _token("npm_token", "npm_", r"[A-Za-z0-9]{36,}+"),
    _token("pypi_token", "pypi-AgE", r"[\w-]{30,}+"),
    _token("huggingface_token", "hf_", r"[A-Za-z0-9]{30,}+"),
    # Three parts of base64url, two of which start with '{"'; the header is short.
    _token("jwt", "eyJ", r"[\w-]{8,2048}+\.eyJ[\w-]{8,}+\.[\w-]{8,}+"),
    _token("sendgrid_key", "SG.", r"[\w-]{16,64}+\.[\w-]{16,}+"),
    # The account id (AC…) beside it is no secret.
    _token("twilio_key", "SK", r"[0-9a-f]{32}" + _END),
    _token("digitalocean_token", "dop_v1_ doo_v1_ dor_v1_", r"[0-9a-f]{40,}+"),
    # The bot's id, a colon and AA….
    Rule("telegram_token", ("AA",), r"(?<!\d)\d{8,10}:AA[\w-]{33}" + _END),
    _token("age_key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{40,}+"),
    _token("docker_token", "dckr_pat_ dckr_oat_", r"[\w-]{20,}+"),
    _token("linear_key", "lin_api_ lin_oauth_", r"[A-Za-z0-9]{30,}+"),
    _token("notion_token", "ntn_", r"[A-Za-z0-9]{40,}+"),
    _token("notion_token", "secret_", r"[A-Za-z0-9]{43}" + _END),
    _token("databricks_token", "dapi", r"[0-9a-f]{32}(?:-\d)?" + _END),
    _token("shopify_token", "shpat_ shpca_ shppa_ shpss_", r"[0-9a-fA-F]{32,}+"),
    _token("vault_token", "hvs. hvb. hvr.", _BODY),
    # A service token (st) names its environment.
    _token("doppler_token", "dp.pt. dp.ct. dp.sa. dp.scim. dp.audit.", r"[A-Za-z0-9]{40,}+"),
    _token("doppler_token", "dp.st.", r"(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,}+"),
    _token("supabase_token", "sbp_ sbp_oauth_", r"[0-9a-f]{40,}+"),
    _token("supabase_token", "sb_secret_", r"[\w-]{20,}+"),
    _token("replicate_token", "r8_", r"[A-Za-z0-9]{30,}+"),
    _token("groq_key", "gsk_", r"[A-Za-z0-9]{40,}+"),
    _token("xai_key", "xai-", r"[A-Za-z0-9]{40,}+"),
    _token("perplexity_key", "pplx-", r"[A-Za-z0-9]{40,}+"),
    _token("tailscale_key", "tskey-", _BODY),
)
_RUN_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.~"
_RUNS = bytes(ord("a" if byte in _RUN_CHARACTERS else " ") for byte in range(256))
_RUN = b"a" * 20
_TOKEN_MARKS = _any_of({mark for rule in TOKENS for mark in rule.marks})

# Placeholders for a secret: <key>, [REDACTED:…], {key}, ***, $KEY, ${{ secrets.KEY }}.
_STAND_IN = r"[<\[({*]|\$[A-Za-z_{(]|%\w+%|%\(|xxx|\.\.\.|…|(?i:your[_-])"


def _is_password(value: str) -> bool:
    return not re.match(_STAND_IN, value)


def _is_login(value: str) -> bool:
    """Check for base64 of "user:password": the word after "basic" is usually English."""
    unpadded = value.rstrip("=")
    try:
        login = binascii.a2b_base64(unpadded + "=" * (-len(unpadded) % 4)).decode()
    except ValueError:
        return False
    return ":" in login and login.isprintable()


def _is_token(value: str) -> bool:
    return _is_credential(value, "token", quoted=True)


# Formats whose marks are searched in the whole text.
FORMATS = (
    # Only the password: scheme, user and host stay readable. "name:tag@sha256:" is an image.
    Rule(
        "url_password",
        ("@",),
        r":(?:\\{0,3}/){2}(?:\[REDACTED:\w+\]|[^\s/@:\"'`<>\\\[]){0,128}"
        r":([^\s/\"'`<>\\,;]{3,256})@(?!sha256:)",
        _is_password,
    ),
    Rule(
        "slack_webhook",
        ("hooks.slack.com",),
        r"hooks\.slack\.com\\{0,3}/[a-z]{1,16}\\{0,3}/([A-Z0-9]{6,32}(?:\\{0,3}/\w{6,}+){1,3})",
    ),
    # Without its signature a shared access URL of Azure opens nothing.
    Rule("azure_sas_signature", ("sig=",), r"(?<![A-Za-z0-9])sig=([A-Za-z0-9%+/]{30,}+=?)"),
    _token("fly_token", "fm2_", r"[\w+/=,-]{20,}+"),
    # It has no prefix (the first part is the bot's id), so it counts in a text about Discord only.
    Rule("discord_token", ("iscord",), r"\b[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}+"),
)
_MARKS = (b"-----BEGIN", b"-----END", *(mark.encode() for rule in FORMATS for mark in rule.marks))

# Authorization headers, searched in the text in lower case.
HEADERS = (
    Rule("basic_auth", ("basic ",), r"\bbasic {1,4}([a-z0-9+/]{6,}+={0,2})", _is_login),
    Rule(
        "bearer_token",
        ("bearer", "authorization"),
        r"\b(?:bearer\s{1,4}|authorization[\"'`\\]{0,4}\s{0,4}[:=]\s{0,4}[\"'`\\]{0,4}"
        r"(?:(?:token|api-?key|key|bot)\s{1,4})?)([a-z0-9._~+/-]{8,}+={0,2})",
        _is_token,
    ),
)
_HEADER_MARKS = tuple(mark.encode() for rule in HEADERS for mark in rule.marks)

# A header in a sentence, or in code that looks for one, has no key after it.
_PRIVATE_KEY = (
    r"(?a)-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
    r"(?=\s{0,8}[\r\n]|\\{1,4}[nr]|\W{0,16}[A-Za-z0-9+/]{16})"
)
# The end of a key whose beginning was cut off (`tail key.pem`): the lines of base64 before the
# footer, each perhaps behind a line number or a quotation mark.
_KEY_FOOTER = r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
_KEY_WORDS = r"\\+[nrt]|([^\s\"'`\\]+)"  # words between spaces, quotes and escaped spaces
_KEY_LINE = r"(?:\d{1,6}\W{1,3})?[A-Za-z0-9+/=]{%s,}\W?|[\d|>#*:+,;\-]{1,8}"
_SHORT_LINE, _FULL_LINE = _KEY_LINE % 1, _KEY_LINE % 8  # the last may be short
_RANDOM_LINE = r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])[A-Za-z0-9+/=]{16}"
_LONGEST_KEY = 16_384  # RSA with 16,384 bits has 12,700 characters


def _name(kind: str, stem: str, pattern: str) -> Rule:
    variant = r"(?:[_-]?\d|[_-](?:prod|dev|test|staging|live|old|new|value|confirmation))?"
    return Rule(kind, (stem,), rf"{pattern}{variant}(?![a-z0-9_])")


# Names that announce a secret, in lower case; "token_count" and "passwords" are other names.
NAMES = (
    _name("password", "pass", r"passw(?:or[dt]|d)"),
    _name("password", "pass", r"passphrase"),
    # Not as a value: "result": "pass".
    _name("password", "pass", r"pass(?<=[\"'_]pass)(?<!:\"pass)(?<!: \"pass)"),
    _name("password", "pwd", r"pwd"),
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
)
_NAMES = {
    stem.encode(): [rule.pattern.encode() for rule in NAMES if stem in rule.marks]
    for stem in ("pass", "pwd", "secret", "key", "token", "credential")
}
# Tokens that are positions, versions, markers or colours; a type; a user in a URL; a secret's ARN.
_HARMLESS = (
    r"(?:page|pagination|next\w*|cont\w*|cursor|start\w*|sync|lock|change|idempotency|cancel\w*"
    r"|pad|[eb]os|unk|sep|mask|cls|stop|special|design|css|colou?r|public_?key)[ _-]?token"
    r"|::\w*$|://[^\s/?#@]*$|secretsmanager:\S{0,40}secret$"
)
# The joint between a name and its value in code, configuration, markup, commands and sentences.
_JOINT = r"""(?xai)
    (?:[ ](?:for|of|on)(?:[ ][\w.@-]{1,30}){1,3}?)?            # password for admin: …
    (?: ["'`*\\\])]{0,6}[ \t]{0,8}
        (?: :[ ]?[a-z][\w.\[\]|]{0,40}[ ]= | [:!]?={1,3}>? | :(?!:) )  # key: str = …, key => …
        \*{0,2}[ \t]{0,8}
      | [ ](?:is|was|are)(?:[ ]now)?:?[ ]{1,4}\*{0,2} )
  | >(?=[^\s<>]{6,8192}</)                                     # <password>…</password>
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
    rf"(?a){_STAND_IN}"
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
_SHORTEST_TEXT = 8  # a URL with a password of three letters and nothing else
_SHORTEST_RANDOM = 4  # "e2e" in a value of words is one of them
_LONGER_THAN_WORDS = 20
# Our replacement of a secret.
_PLACED = r"\[REDACTED:\w{1,40}\]"
_LONGEST_PLACED = 52


def find_secrets(text: str) -> list[Secret]:
    """Find the secrets of a text, in order and without overlap."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) < _SHORTEST_TEXT or not may_hold_secret(data):
        return []
    lowered = _lowered(text)
    # From the most precise rules to the least.
    found = (
        *_private_keys(text),
        *_ends_of_keys(text),
        *(_tokens(text) if _may_hold_token(data) else ()),
        *_matches(FORMATS, text, text),
        *_matches(HEADERS, lowered, text),
        *_announced(lowered, text),
    )
    return _merged(found)


def _lowered(text: str) -> str:
    """The text in lower case with every character in its place; a dotted capital I would grow."""
    return text.replace("\u0130", "I").lower()


def redact(text: str) -> str:
    """Replace each secret of a text by `[REDACTED:kind]`."""
    # Repeated, because a secret may show only when its neighbour is gone.
    while secrets := find_secrets(text):
        text = _replaced(text, secrets)
    return text


def clip(text: str, longest: int) -> str:
    """The beginning of a text, without secrets and without part of a placeholder."""
    clean = redact(text)
    if len(clean) <= longest:
        return clean
    return clean[: _placeholder_at(clean, longest)[0]]


def clip_end(text: str, longest: int) -> str:
    """The end of a text, without secrets and without part of a placeholder."""
    clean = redact(text)
    if len(clean) <= longest:
        return clean
    return clean[_placeholder_at(clean, len(clean) - longest)[1] :]


def _placeholder_at(text: str, place: int) -> tuple[int, int]:
    """The span of a placeholder that a cut would split; else the place of the cut."""
    around = re.compile(_PLACED).finditer(text, max(0, place - _LONGEST_PLACED))
    spans = (found.span() for found in around)
    return next((span for span in spans if span[0] < place < span[1]), (place, place))


def redact_value(value: object) -> object:
    """Replace the secrets of a JSON value, in keys too; the same object if it has none."""
    return _redacted(value, None)


def may_hold_secret(data: bytes) -> bool:
    """Look fast at UTF-8 text or JSON: if False, no string within holds a secret."""
    lowered = data.lower()
    return (
        any(mark in data for mark in _MARKS)
        or any(mark in lowered for mark in _HEADER_MARKS)
        or _may_hold_token(data)
        or any(stem in lowered and _holds(names, lowered) for stem, names in _NAMES.items())
        # JSON may spell any letter as \u0070, which hides it from the checks above.
        or (b"\\u00" in data and _holds([rb"\\u00[2-7]"], data))
    )


def _holds(patterns: Iterable[bytes], data: bytes) -> bool:
    return any(re.search(pattern, data) for pattern in patterns)


def _may_hold_token(data: bytes) -> bool:
    runs = b" ".join(_long_runs(data))
    return bool(runs) and _holds([_TOKEN_MARKS], runs)


def _long_runs(data: bytes) -> Iterator[bytes]:
    runs = data.translate(_RUNS) + b" "
    start = runs.find(_RUN)
    while start >= 0:
        end = runs.index(b" ", start)
        yield data[start:end]
        start = runs.find(_RUN, end)


def _private_keys(text: str) -> Iterator[Secret]:
    """Find whole blocks, without a pattern that would read on from every header."""
    header = re.compile(_PRIVATE_KEY)
    start = text.find("-----BEGIN")
    while start >= 0:
        end = start + 1
        if match := header.match(text, start):
            end = _end_of_key(text, match.end())
            yield Secret("private_key", start, end)
        start = text.find("-----BEGIN", end)


def _end_of_key(text: str, start: int) -> int:
    """The end of a block; one that was cut off takes the rest of the text."""
    footer = text.find("-----END", start)
    if footer < 0:
        return len(text)
    dashes = text.find("-----", footer + 8, footer + 64)
    return dashes + 5 if dashes >= 0 else footer + 8


def _ends_of_keys(text: str) -> Iterator[Secret]:
    """Find ends of private keys, with the part of the key before them."""
    begin = 0
    for footer in re.finditer(_KEY_FOOTER, text) if "-----END" in text else ():
        start = _start_of_key(text, max(begin, footer.start() - _LONGEST_KEY), footer.start())
        if start < footer.start():
            yield Secret("private_key", start, footer.end())
        begin = footer.end()


def _start_of_key(text: str, begin: int, footer: int) -> int:
    """The start of a key's lines; the footer's position if nothing before it looks random."""
    found = re.compile(_KEY_WORDS).finditer(text, begin, footer)
    words = [word for word in found if word[1]]
    start, is_random = footer, False
    for word in reversed(words):
        shape = _SHORT_LINE if word is words[-1] else _FULL_LINE
        if not re.fullmatch(shape, word[0], re.ASCII):
            break
        start, is_random = word.start(), is_random or bool(re.search(_RANDOM_LINE, word[0]))
    return start if is_random else footer


def _tokens(text: str) -> Iterator[Secret]:
    starts_token = re.compile(_START).match
    return (token for token in _matches(TOKENS, text, text) if starts_token(text, token.start))


def _matches(rules: Iterable[Rule], searched: str, text: str) -> Iterator[Secret]:
    for rule in rules:
        if any(mark in searched for mark in rule.marks):
            for match in re.finditer(rule.pattern, searched, re.ASCII):
                start, end = match.span(match.lastindex or 0)
                if rule.accepted(text[start:end]):
                    yield Secret(rule.kind, start, end)


def _announced(lowered: str, text: str) -> Iterator[Secret]:
    """Find the credentials that follow a secret's name."""
    covered = 0
    for name in _names(lowered):
        value = _value_after(text, name) if name.start >= covered else None
        secret = _credential(text, name.kind, value) if value else None
        if secret:
            covered = secret.end
            yield secret


def _names(lowered: str) -> Iterator[Secret]:
    """Find the names that announce a secret, with its kind."""
    for name in sorted(_matches(NAMES, lowered, lowered), key=attrgetter("start")):
        if not re.search(_HARMLESS, lowered[max(0, name.start - 40) : name.end]):
            yield name


def _value_after(text: str, name: Secret) -> re.Match[str] | None:
    joint = re.compile(_JOINT).match(text, name.end)
    if joint and _is_joined(text[max(0, name.start - 40) : name.start], name.kind, joint):
        return re.compile(_VALUE).match(text, joint.end())
    return None


def _is_joined(before: str, kind: str, joint: re.Match[str]) -> bool:
    """Check if a comma or a gap joins: in a call, after an option, after "password"."""
    if joint["call"]:
        return re.search(r"\([\"'\\]{1,4}[\w.-]*$", before) is not None
    is_option = re.search(r"(?<!\w)--?[\w-]*$", before) is not None
    return is_option or kind == "password" or not joint["gap"]


def _credential(text: str, kind: str, value: re.Match[str]) -> Secret | None:
    quoted = value["quoted"] is not None
    start, end = value.span("quoted" if quoted else "bare")
    punctuation = "" if quoted else _PUNCTUATION
    if not _is_credential(text[start:end].rstrip(punctuation), kind, quoted=quoted):
        return None
    if rest := None if quoted else re.compile(_REST_OF_BARE).match(text, end):
        end = rest.end()
    return Secret(kind, start, start + len(text[start:end].rstrip(punctuation)))


def _is_credential(value: str, kind: str, *, quoted: bool) -> bool:
    """Check if the value after a secret's name reads like a credential, not like a word."""
    if len(value) < _SHORTEST:
        return False
    is_random = (
        len(_without_words(value, kind)) >= _SHORTEST_RANDOM
        or re.search(_SYMBOL_INSIDE, value) is not None
        or (kind == "password" and value.isdecimal())
        or (kind == "password" and quoted and _is_plain_password(value))
        or (quoted and len(value) >= _LONGER_THAN_WORDS and value.isalpha() and value.islower())
    )
    return is_random and not _is_reference(value, quoted=quoted)


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


def _merged(found: Iterable[Secret]) -> list[Secret]:
    """Join overlapping secrets, so that no part of one stays.

    The first names the kind: among those that start together, the one of the most precise rule.
    """
    merged: list[Secret] = []
    for secret in sorted(found, key=attrgetter("start")):
        if merged and secret.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(secret.end, merged[-1].end))
        else:
            merged.append(secret)
    return merged


def _replaced(text: str, secrets: list[Secret]) -> str:
    pieces: list[str] = []
    position = 0
    for kind, start, end in secrets:
        pieces += text[position:start], f"[REDACTED:{kind}]"
        position = end
    return "".join((*pieces, text[position:]))


def _redacted(value: object, kind: str | None) -> object:
    """Redact a value; `kind` is the one that its key announces."""
    if isinstance(value, str):
        return _redacted_string(value, kind)
    if isinstance(value, list):
        items = [_redacted(item, kind) for item in value]
        return value if all(map(is_, items, value)) else items
    return _redacted_object(value) if isinstance(value, dict) else value


def _redacted_string(value: str, kind: str | None) -> str:
    clean = redact(value)
    if kind is None or not _is_credential(value, kind, quoted=True):
        return clean
    return clean if re.fullmatch(r"\[REDACTED:\w+\]", clean) else f"[REDACTED:{kind}]"


def _redacted_object(value: dict[str, object]) -> dict[str, object]:
    clean: dict[str, object] = {}
    for key, item in value.items():
        # Environments are written as pairs: "name": "DB_PASSWORD", "value": "…".
        announcing = value.get("name") if key == "value" else key
        clean[_unused(redact(key), clean)] = _redacted(item, _kind_of(announcing))
    keys_same = all(map(is_, clean, value))
    return value if keys_same and all(map(is_, clean.values(), value.values())) else clean


def _unused(key: str, taken: dict[str, object]) -> str:
    """A free key: two secrets as keys become one placeholder, and neither value may be lost."""
    while key in taken:
        key += "'"
    return key


@lru_cache(maxsize=4096)
def _kind_of(key: object) -> str | None:
    """The kind that a key announces, as if it were quoted in a text."""
    quoted = _lowered(f'"{key}')
    return next((name.kind for name in _names(quoted) if name.end == len(quoted)), None)
