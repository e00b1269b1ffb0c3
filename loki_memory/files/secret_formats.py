"""Formats of secrets that their vendors publish: tokens, URLs, Authorization headers."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable, Iterator

from loki_memory.files.secret_names import STAND_IN, is_credential
from loki_memory.files.secret_rule import Rule, Secret, matches

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


def _is_password(value: str) -> bool:
    return not re.match(STAND_IN, value)


def _is_login(value: str) -> bool:
    """Check for base64 of "user:password": the word after "basic" is usually English."""
    unpadded = value.rstrip("=")
    try:
        login = binascii.a2b_base64(unpadded + "=" * (-len(unpadded) % 4)).decode()
    except ValueError:
        return False
    return ":" in login and login.isprintable()


def _is_token(value: str) -> bool:
    return is_credential(value, "token", quoted=True)


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
_MARKS = tuple(mark.encode() for rule in FORMATS for mark in rule.marks)

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


def format_secrets(text: str, low: str, data: bytes) -> Iterator[Secret]:
    """Find secrets in published formats, from the most precise rules to the least.

    `low` is the text in lower case, `data` its UTF-8.
    """
    if may_hold_token(data):
        yield from _tokens(text)
    yield from matches(FORMATS, text, text)
    yield from matches(HEADERS, low, text)


def _tokens(text: str) -> Iterator[Secret]:
    starts_token = re.compile(_START).match
    return (token for token in matches(TOKENS, text, text) if starts_token(text, token.start))


def may_hold_format(data: bytes, low: bytes) -> bool:
    """Look fast at UTF-8 text or JSON: if False, it holds none of these formats."""
    return (
        any(mark in data for mark in _MARKS)
        or any(mark in low for mark in _HEADER_MARKS)
        or may_hold_token(data)
    )


def may_hold_token(data: bytes) -> bool:
    runs = b" ".join(_long_runs(data))
    return bool(runs) and re.search(_TOKEN_MARKS, runs) is not None


def _long_runs(data: bytes) -> Iterator[bytes]:
    runs = data.translate(_RUNS) + b" "
    start = runs.find(_RUN)
    while start >= 0:
        end = runs.index(b" ", start)
        yield data[start:end]
        start = runs.find(_RUN, end)
