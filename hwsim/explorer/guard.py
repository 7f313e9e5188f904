"""Access control: only requests from this computer, from the page itself, with the token of the printed address.

Requests of other web sites are recognized by their origin headers, DNS rebinding by the `Host` header, and other users of the
computer by the missing token.
"""

from __future__ import annotations

import secrets
from typing import Final

from starlette.requests import Request

FROM: Final = ("same-origin", "none")  # allowed values of `Sec-Fetch-Site`; "none": a typed address


def headers(nonce: str = "") -> dict[str, str]:
    """Return the headers of all responses: no foreign content, no caching, no embedding in other pages."""
    policy = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": f"'self' 'nonce-{nonce}'" if nonce else "'self'",
        "img-src": "'self' blob: data:",
        "font-src": "'self'",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{key} {value}" for key, value in policy.items()),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }


class Guard:
    """The token of a server, and the names that it is called by."""

    def __init__(self, token: str, port: int) -> None:
        self.token = token
        self.cookie = f"hwsim-{port}"  # cookies do not tell ports apart
        self._hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        self._origins = frozenset(f"http://{host}" for host in self._hosts)

    def is_foreign(self, request: Request) -> bool:
        """Return whether a request is for another host name or from another page."""
        origin = request.headers.get("origin")
        return (
            request.headers.getlist("host") not in [[host] for host in self._hosts]
            or (origin is not None and origin not in self._origins)
            or request.headers.get("sec-fetch-site", "none") not in FROM
        )

    def has_token(self, request: Request) -> bool:
        """Return whether the address of a request has the token."""
        return self._is_ours(request.query_params.get("token", ""))

    def has_cookie(self, request: Request) -> bool:
        """Return whether a request has the cookie with the token."""
        return self._is_ours(request.cookies.get(self.cookie, ""))

    def _is_ours(self, given: str) -> bool:
        return secrets.compare_digest(
            given.encode("utf-8", "surrogatepass"), self.token.encode()
        )  # bytes, because texts must be ASCII
