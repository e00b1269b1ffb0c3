"""People of an issuer elsewhere: OAuth 2.1 with this server as the protected resource.

A client learns from the metadata which issuer to ask, and comes with a JWT as bearer token. It is
validated by the issuer's published keys: signature, issuer, audience, times. What it allows follows
from its claims by rules in a file. Nothing but asymmetric signatures is taken, so that a key which
anybody may read never signs.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import urlopen

import jwt
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from loki_memory.errors import InvalidRecord
from loki_memory.server.tokens import SCOPES, repository_id

if TYPE_CHECKING:
    from loki_memory.server.database import Connection, Database

METADATA = "/.well-known/oauth-protected-resource"
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
_NEEDED = ("exp", "iss", "aud", "sub")
_LEEWAY = 30  # seconds that clocks may differ
_TIMEOUT = 5  # seconds to reach the issuer
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LONGEST = 16_384  # characters of a JWT


class ClaimRule(BaseModel):
    """Rights of a person whose JWT has a claim: the value itself, or a list that has it."""

    model_config = ConfigDict(extra="forbid")

    claim: str
    value: str
    scopes: list[str] = ["read"]
    repositories: list[str] = Field(min_length=1)

    @field_validator("scopes")
    @classmethod
    def _known(cls, scopes: list[str]) -> list[str]:
        if set(scopes) - set(SCOPES):
            raise ValueError(f"scopes are {', '.join(SCOPES)}")
        return scopes

    def holds(self, claims: Mapping[str, Any]) -> bool:
        found = claims.get(self.claim)
        return self.value in found if isinstance(found, list) else found == self.value


class OAuthConfig(BaseModel):
    """The file that `--oauth` names."""

    model_config = ConfigDict(extra="forbid")

    issuer: str
    audience: str  # the address of this server, as clients know it
    jwks: str = ""  # where the issuer's keys are; empty: its metadata says so
    allow: list[ClaimRule] = Field(min_length=1)

    @field_validator("issuer", "audience", "jwks")
    @classmethod
    def _over_tls(cls, url: str) -> str:
        parts = urlsplit(url)
        if url and parts.scheme != "https" and parts.hostname not in _LOOPBACK:
            raise ValueError("an https address is needed")
        return url


class Admitted(NamedTuple):
    """A person with a valid JWT, and what it allows."""

    subject: str
    expires: datetime
    rights: frozenset[tuple[str, str]]  # of scope and repository


class Issuer:
    """The issuer that this server trusts."""

    def __init__(self, config: OAuthConfig) -> None:
        self.config = config
        self._keys: jwt.PyJWKClient | None = None

    @classmethod
    def of_file(cls, path: Path) -> Issuer:
        """Read the rules; raises InvalidRecord."""
        try:
            return cls(OAuthConfig.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InvalidRecord(str(error), field=str(path), advice=_ADVICE) from None
        except ValidationError as error:
            wrong = error.errors(include_url=False, include_input=False)[0]
            said = f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}"
            raise InvalidRecord(said, field=str(path), advice=_ADVICE) from None

    def metadata(self) -> dict[str, Any]:
        """The metadata of this resource (RFC 9728)."""
        return {
            "resource": self.config.audience,
            "authorization_servers": [self.config.issuer],
            "bearer_methods_supported": ["header"],
            "scopes_supported": list(SCOPES),
            "resource_name": "loki-memory",
        }

    def challenge(self) -> str:
        """The header of a refusal, by which a client finds the metadata."""
        return f'Bearer resource_metadata="{self.config.audience.rstrip("/")}{METADATA}"'

    def admitted(self, text: str) -> Admitted | None:
        """The person of a JWT; None if it is none of ours, or not valid, or allows nothing."""
        if text.count(".") != 2 or len(text) > _LONGEST:  # noqa: PLR2004 - a JWT has three parts
            return None
        try:
            key = self._opened().get_signing_key_from_jwt(text)
            claims: dict[str, Any] = jwt.decode(
                text,
                key,
                algorithms=_ALGORITHMS,
                audience=self.config.audience,
                issuer=self.config.issuer,
                leeway=_LEEWAY,
                options={"require": list(_NEEDED)},
            )
            ends = datetime.fromtimestamp(float(claims["exp"]), UTC)
        except (jwt.PyJWTError, OSError, ValueError, OverflowError):
            return None  # also where the issuer does not answer
        rights = frozenset(_rights(self.config.allow, claims))
        return Admitted(str(claims["sub"]), ends, rights) if rights else None

    def _opened(self) -> jwt.PyJWKClient:
        if self._keys is None:
            place = self.config.jwks or _announced(self.config.issuer)
            self._keys = jwt.PyJWKClient(place, timeout=_TIMEOUT)
        return self._keys


_ADVICE = "docs/server-operations.md has an example."


def _announced(issuer: str) -> str:
    """Address of the keys, as the issuer gives it."""
    place = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    with urlopen(place, timeout=_TIMEOUT) as answer:  # noqa: S310 - its scheme was checked
        found = json.load(answer)
    keys = str(found["jwks_uri"]) if isinstance(found, dict) and "jwks_uri" in found else ""
    if urlsplit(keys).scheme != "https" and urlsplit(keys).hostname not in _LOOPBACK:
        raise ValueError("the issuer names no https address of its keys")
    return keys


def _rights(rules: Sequence[ClaimRule], claims: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for rule in rules:
        if rule.holds(claims):
            for scope in rule.scopes:
                yield from ((scope, repository) for repository in rule.repositories)


def admit(database: Database, person: Admitted, text: str) -> None:
    """Let a JWT work until it expires, as the person that it names."""
    with database.as_owner() as connection:
        connection.execute("DELETE FROM loki.sessions WHERE expires < now()")
        token = _row_of(connection, person.subject)
        scopes = sorted({scope for scope, _ in person.rights})
        mark = sha256(text.encode()).digest()
        connection.execute(
            "INSERT INTO loki.sessions (hash, token, scopes, expires) VALUES (%s, %s, %s, %s) "
            "ON CONFLICT (hash) DO NOTHING",
            (mark, token, scopes, person.expires),
        )
        for scope, repository in sorted(person.rights):
            connection.execute(
                "INSERT INTO loki.session_grants VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                (mark, scope, repository_id(connection, repository)),
            )


def _row_of(connection: Connection, subject: str) -> int:
    """The number of a person among the tokens; the row has a hash that no secret has."""
    connection.execute(
        "INSERT INTO loki.tokens (name, hash, scopes) VALUES (%s, %s, '{}') "
        "ON CONFLICT (name) DO NOTHING",
        (f"oauth {subject}", token_bytes(32)),
    )
    found = connection.execute(
        "SELECT id FROM loki.tokens WHERE name = %s", (f"oauth {subject}",)
    ).fetchone()
    assert found is not None  # noqa: S101 - inserted above
    return int(found[0])
