"""Personal data that memory which others read must not hold.

Folders of a home become `~`, addresses and the prompt of a shell become placeholders. Addresses of
nobody stay: those of examples, of services (`git@`, `noreply@`), and logins in URLs.
"""

from __future__ import annotations

import re

_MARKS = (b"/home/", b"/Users/", b"/root/", b"Users\\", b"\\home\\", b"@", b"%2F", b"%40")
# Before the folder of all homes: mounts of other systems, and drives as shells and WSL name them.
_ABOVE = r"(?:/(?:var|usr|export|private|System/Volumes/Data|mnt/[a-z]|[a-z]))?"
# A folder below a home: a route such as /home/settings has nothing below it.
_HOME = re.compile(
    rf"(?:(?<=://file)|(?<![\w.~-])){_ABOVE}(?:/home/|/Users/)[\w.-]+(?=/[\w.~-])"
    r"|(?<![\w.~/-])/root(?=/[\w.~-])"
    r"|%2F(?:home|Users)%2F[\w.-]+(?=%2F)"
    r"|\b[A-Za-z]:[\\/]{1,4}Users[\\/]{1,4}[\w.-]+(?=[\\/])"
    r"|\\{2,4}wsl(?:\$|\.localhost)\\{1,2}[\w.-]+\\{1,2}home\\{1,2}[\w.-]+(?=\\)"
)
_ADDRESS = re.compile(
    r"(?:(?<=mailto:)|(?<![\w:/.+@%-]))(?!(?:git|hg|noreply|no-reply)(?:@|%40))[\w.+-]{1,64}(?:@|%40)"
    r"(?!\d)"
    r"(?!(?:[\w-]+\.){0,4}(?:example(?:\.\w+)?|invalid|test|localhost|local)(?![\w.-]))"
    r"(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w@-]|\.\w|:[^\s\d])"
)
_PROMPT = re.compile(
    r"(?<![\w.@/-])[a-z_][\w.-]{0,31}@[A-Za-z][\w.-]{0,62}(?=:[~/][^\s]{0,128}[$#] | ~\S{0,128} % )"
    r"|(?<=\[)[a-z_][\w.-]{0,31}@[A-Za-z][\w.-]{0,62}(?= [^\s\]]{1,128}\][$#] )"
)


def may_hold_personal_data(data: bytes) -> bool:
    """Look fast at UTF-8 text or JSON: if False, it holds none."""
    return any(mark in data for mark in _MARKS)


def impersonal(text: str) -> str:
    """The text without home folders, e-mail addresses and the names in a shell's prompt."""
    text = _PROMPT.sub("user@host", _HOME.sub("~", text))
    has_address = "@" in text or "%40" in text
    return _ADDRESS.sub("[REDACTED:email]", text) if has_address else text


def impersonal_value(value: object) -> object:
    """The same for a JSON value; the same object if nothing changes."""
    if isinstance(value, str):
        clean = impersonal(value)
        return value if clean == value else clean
    if isinstance(value, list):
        items = [impersonal_value(item) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    if isinstance(value, dict):
        fields = {name: impersonal_value(item) for name, item in value.items()}
        return value if all(fields[name] is value[name] for name in value) else fields
    return value
