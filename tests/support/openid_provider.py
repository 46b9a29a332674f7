"""A small OpenID provider on loopback: it knows one person, who agrees to everything."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, SECRET = "edgeloom", "a secret of both"


class Provider(ThreadingHTTPServer):
    """`person` are the claims about who logs in next. `challenges`: code → what PKCE and OpenID want back."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server_port}"
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.person: dict[str, Any] = {
            "sub": "17",
            "preferred_username": "grace",
            "email": "grace@lab.example",
        }
        self.challenges: dict[str, dict[str, str]] = {}
        self.audience = CLIENT

    def documents(self) -> dict[str, Any]:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {
            "/.well-known/openid-configuration": {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "userinfo_endpoint": f"{self.issuer}/userinfo",
                "jwks_uri": f"{self.issuer}/keys",
                "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            },
            "/keys": {"keys": [public | {"kid": "one", "alg": "RS256", "use": "sig"}]},
            "/userinfo": self.person,
        }

    def agree(self, address: str) -> str:
        """What the person's browser is sent to, after it was sent to `address` here."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert address.startswith(f"{self.issuer}/authorize?") and asked["client_id"] == CLIENT
        code = f"code-{len(self.challenges)}"
        self.challenges[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def tokens(self, form: dict[str, str]) -> dict[str, Any]:
        asked = self.challenges.pop(form["code"])
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == asked["code_challenge"]
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": self.audience, "iat": now, "exp": now + 60, **self.person}
        if "nonce" in asked:
            claims["nonce"] = asked["nonce"]
        token = jwt.encode(claims, self.key, "RS256", headers={"kid": "one"})
        return {"access_token": "a token", "token_type": "Bearer", "expires_in": 60, "id_token": token}


class Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        self.answer(self.server.documents()[self.path])

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.answer(self.server.tokens({name: values[0] for name, values in parse_qs(body).items()}))

    def answer(self, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *given: Any) -> None:
        pass


@contextmanager
def provider() -> Iterator[Provider]:
    with Provider() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
