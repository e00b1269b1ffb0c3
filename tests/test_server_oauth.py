"""People of an issuer elsewhere: which JWT works, for how long, and for what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from time import time
from typing import Any, NamedTuple

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from jwt.algorithms import RSAAlgorithm
from team_server import Team, team

from loki_memory.errors import InvalidRecord
from loki_memory.server import tokens
from loki_memory.server.oauth import METADATA, Issuer, OAuthConfig

AUDIENCE = "https://memory.example"
RULES = [
    {"claim": "groups", "value": "apps", "scopes": ["read", "push"], "repositories": ["app"]},
    {"claim": "groups", "value": "shops", "repositories": ["shop"]},
]


class FakeIssuer(NamedTuple):
    """An issuer on this machine, and its key."""

    url: str
    key: RSAPrivateKey
    asked: list[str]  # the paths, in order

    def token(
        self,
        *groups: str,
        key: Any = None,
        alg: str = "RS256",
        kid: str | None = "one",
        jku: str = "",
        **claims: Any,
    ) -> str:
        given = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "ana",
            "exp": int(time()) + 300,
            "groups": list(groups),
            **claims,
        }
        given = {name: value for name, value in given.items() if value is not None}
        return jwt.encode(given, key or self.key, alg, headers={"kid": kid, "jku": jku})


@pytest.fixture(scope="module")
def issuer() -> Iterator[FakeIssuer]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    shown = {**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": "one", "use": "sig"}

    asked: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            keys = f"http://{self.headers['host']}/keys"
            found = {"keys": [shown]} if self.path == "/keys" else {"jwks_uri": keys}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield FakeIssuer(f"http://127.0.0.1:{server.server_port}", key, asked)
        server.shutdown()


@pytest.fixture
def server(issuer: FakeIssuer, tmp_path: Path) -> Iterator[Team]:
    config = OAuthConfig.model_validate(
        {"issuer": issuer.url, "audience": AUDIENCE, "allow": RULES}
    )
    with team(tmp_path, issuer=Issuer(config)) as found:
        yield found


def test_a_client_without_a_token_learns_whom_to_ask(server: Team, issuer: FakeIssuer) -> None:
    refusal = server.ask("GET", "/status", "")
    expected = f'Bearer resource_metadata="{AUDIENCE}{METADATA}"'
    assert refusal.headers["www-authenticate"] == expected
    for path in (METADATA, f"{METADATA}/mcp"):
        found = server.ask("GET", path, "").json()
        assert (found["resource"], found["authorization_servers"]) == (AUDIENCE, [issuer.url])


def test_claims_decide_which_repositories_are_read_and_which_are_pushed_to(
    server: Team, issuer: FakeIssuer
) -> None:
    both = issuer.token("apps", "shops")
    names = [found["name"] for found in server.ask("GET", "/status", both).json()["repositories"]]
    assert names == ["app", "shop"]
    assert server.push(both, "Port 80 is where the proxy listens").status_code == 200
    pushed = server.push(both, "Port 80 is where the proxy listens", project="shop")
    assert pushed.status_code == 403, "reading a repository gives no right to push to it"
    assert server.pull(issuer.token("shops")).status_code == 403
    assert server.pull(issuer.token("shops"), project="shop").status_code == 200
    assert server.ask("GET", "/status", issuer.token("nobody")).status_code == 401


def test_the_audit_names_the_person_and_revoking_ends_every_jwt_of_theirs(
    server: Team, issuer: FakeIssuer
) -> None:
    first, second = issuer.token("apps"), issuer.token("apps", jti="second")
    assert server.pull(first).status_code == server.pull(second).status_code == 200
    with server.database.as_owner() as connection:
        found = connection.execute(
            "SELECT DISTINCT t.name FROM loki.audit AS a JOIN loki.tokens AS t ON t.id = a.token"
        )
        assert found.fetchall() == [("oauth ana",)]
        tokens.revoke(connection, "oauth ana")
    assert server.pull(first).status_code == server.pull(second).status_code == 401
    assert server.pull(issuer.token("apps", jti="third")).status_code == 401


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "https://elsewhere.example"},
        {"iss": "https://elsewhere.example"},
        {"exp": 1},
        {"exp": None},
        {"exp": 1e300},
        {"sub": None},
        {"nbf": 32503680000},
    ],
)
def test_a_jwt_that_is_not_for_this_server_now_is_refused(
    server: Team, issuer: FakeIssuer, claims: dict[str, Any]
) -> None:
    assert server.ask("GET", "/status", issuer.token("apps", **claims)).status_code == 401


def test_only_the_key_of_the_issuer_signs(server: Team, issuer: FakeIssuer) -> None:
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    good = issuer.token("apps")
    head, body, signature = good.split(".")
    forged = (
        issuer.token("apps", key=stranger),
        issuer.token("apps", key="x" * 32, alg="HS256"),
        f"{head}.{body}.",
        f"{head}.{body}.{signature[:-8]}AAAAAAAA",
        "a.b.c",
        "..",
    )
    for text in forged:
        assert server.ask("GET", "/status", text).status_code == 401, text
    assert server.ask("GET", "/status", good).status_code == 200


def test_invented_ids_of_keys_make_no_storm_of_questions(server: Team, issuer: FakeIssuer) -> None:
    issuer.asked.clear()
    elsewhere = f"{issuer.url}/elsewhere"
    for number in range(20):
        text = issuer.token("apps", kid=f"key-{number}", jku=elsewhere)
        assert server.ask("GET", "/status", text).status_code == 401
    assert len(issuer.asked) < 5
    assert "/elsewhere" not in issuer.asked, "a token does not say where its key is"


def test_what_one_jwt_allowed_ends_with_it(server: Team, issuer: FakeIssuer) -> None:
    """A session is cut short in the database, since no test waits for a clock."""
    assert server.pull(issuer.token("apps")).status_code == 200
    with server.database.as_owner() as connection:
        connection.execute("UPDATE loki.sessions SET expires = now() - interval '1 hour'")
    server.ask("GET", "/status", issuer.token("apps", jti="new"))
    with server.database.as_owner() as connection:
        left = connection.execute("SELECT count(*) FROM loki.sessions").fetchone()
    assert left == (1,), "expired sessions go when another one comes"


BEGIN = 'issuer = "https://id.example"\naudience = "https://m.example"\n'


@pytest.mark.parametrize(
    "text",
    [
        "issuer = ",
        BEGIN,
        BEGIN.replace("https://id", "http://id") + "allow = []",
        f'{BEGIN}[[allow]]\nclaim = "g"\nvalue = "x"\nscopes = ["root"]\nrepositories = ["app"]',
    ],
)
def test_rules_that_cannot_be_read_are_refused_before_anything_is_served(
    text: str, tmp_path: Path
) -> None:
    file = tmp_path / "oauth.toml"
    file.write_text(text)
    with pytest.raises(InvalidRecord, match=r"oauth\.toml"):
        Issuer.of_file(file)
