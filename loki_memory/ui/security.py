"""Requests that the page answers: those of the user's own browser, and no others.

Any program on the machine can reach the port, and so can a web page through a host name that
resolves to this machine. So a request must name this server as its host and carry a cookie that
only a one-time link sets; a write must come from a page of ours and carry the token that only our
pages know.
"""

from __future__ import annotations

from hmac import compare_digest
from secrets import token_urlsafe
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = "127.0.0.1"
OPEN = "/open"  # the path of the one-time link
_TOKEN_BYTES = 32
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    # Under `no-referrer` a browser hides the origin of our own forms too, and it could not be
    # checked; `same-origin` tells other sites nothing either.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
# A page of our own leads on: the browser sends a strict cookie with a request that it starts.
_OPENED = """\
<!doctype html><html lang="en"><head><meta charset="utf-8"><title>loki-mem</title>
<link rel="icon" href="/static/icon.svg">
<meta http-equiv="refresh" content="0; url=/now"></head>
<body><p><a href="/now">Go on to the page</a></p></body></html>
"""


class Secrets:
    """The secrets of one server: the cookie, the token for writes, and the key of the link."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.cookie_name = f"loki-mem-{port}"  # cookies are shared by all ports of a host
        self.csrf = token_urlsafe(_TOKEN_BYTES)
        self._session = token_urlsafe(_TOKEN_BYTES)
        self._key = token_urlsafe(_TOKEN_BYTES)

    def link(self) -> str:
        """The address that opens the page once."""
        return f"http://{HOST}:{self.port}{OPEN}?key={self._key}"

    def use_key(self, given: str) -> bool:
        """Check the key of a link; it opens one browser."""
        is_right = bool(self._key) and _equal(given, self._key)
        if is_right:
            self._key = ""
        return is_right

    def knows(self, headers: Headers) -> bool:
        """Check if a request carries the cookie."""
        return _equal(cookie_parser(headers.get("cookie", "")).get(self.cookie_name), self._session)

    def is_write_token(self, given: str | None) -> bool:
        return _equal(given, self.csrf)

    def set_cookie(self, response: Response) -> None:
        response.set_cookie(self.cookie_name, self._session, httponly=True, samesite="strict")


def _equal(given: str | None, expected: str) -> bool:
    return compare_digest((given or "").encode("utf-8", "replace"), expected.encode())


class Guard:
    """An application that answers only the browser which the one-time link opened."""

    def __init__(self, app: ASGIApp, secrets: Secrets) -> None:
        self._app, self._secrets = app, secrets
        self._hosts = {f"{HOST}:{secrets.port}", f"localhost:{secrets.port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] == "http":
            answer = self._refusal(scope) or self._app
            await answer(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        """The answer to a request that the application must not see; None if it may."""
        headers = Headers(scope=scope)
        if headers.get("host") not in self._hosts:
            return PlainTextResponse("this server has another name\n", 403)
        if scope["path"] == OPEN:
            return self._opened(scope)
        if not self._secrets.knows(headers):
            return PlainTextResponse("open the page with the link of `loki-mem ui`\n", 401)
        if scope["method"] not in _SAFE_METHODS and not self._is_ours(headers):
            return PlainTextResponse("a page of another origin cannot write here\n", 403)
        return None

    def _opened(self, scope: Scope) -> Response:
        key = parse_qs(scope["query_string"].decode("ascii", "replace")).get("key", [""])[0]
        if not self._secrets.use_key(key):
            text = "this link was used before; start `loki-mem ui` again for another one\n"
            return PlainTextResponse(text, 401)
        response = HTMLResponse(_OPENED)
        self._secrets.set_cookie(response)
        return response

    def _is_ours(self, headers: Headers) -> bool:
        """Check the origin of a write; programs other than browsers name none."""
        origin = headers.get("origin")
        return origin is None or origin in {f"http://{host}" for host in self._hosts}


class Fenced:
    """An application whose answers let a browser load and run nothing but its own files."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, _with_headers(send))


def _with_headers(send: Send) -> Send:
    async def answer(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return answer
