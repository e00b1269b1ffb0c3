"""The call of a forge after a push: once its signature is checked, the repository is fetched.

GitHub and Gitea sign the body with the shared secret, GitLab sends the secret itself. A call that
is repeated, by whomever, makes the server fetch once more, and nothing else.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import NamedTuple

PATH = "/webhook/{name}"
_SIGNED = {"x-hub-signature-256": "github", "x-gitea-signature": "gitea"}


class Webhook(NamedTuple):
    """The secret that forges share with this server, and what their call does."""

    secret: str
    fetch_soon: Callable[[str], bool]  # False if no repository has that name

    def sender(self, headers: Mapping[str, str], body: bytes) -> str | None:
        """The forge that called; None if it does not know the secret."""
        if not self.secret:
            return None
        given = headers.get("x-gitlab-token")
        if given is not None:
            return "gitlab" if _equal(given, self.secret) else None
        expected = hmac.new(self.secret.encode(), body, sha256).hexdigest()
        for name, forge in _SIGNED.items():
            signature = headers.get(name)
            if signature is not None:
                return forge if _equal(signature.removeprefix("sha256="), expected) else None
        return None


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())
