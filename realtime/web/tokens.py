"""Tokens that say what their bearer may do; knows JSON Web Tokens and the key that signs them, no HTTP."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import jwt

from realtime.errors import ConfigError

Scope = Literal["view", "send", "control"]
"""To watch, to send pictures, or everything."""

ALGORITHM = "HS256"
"""The only one that is taken: a token that names another one is refused, whatever it is signed with (RFC 8725, 3.1)."""
ISSUER = AUDIENCE = "doppelcam"
_CLAIMS = ("exp", "iat", "aud", "iss", "sub", "scope")
_KEY_BYTES = 32
"""As many as the hash has (RFC 7518, 3.2)."""


@dataclass(frozen=True, slots=True)
class Bearer:
    """Whoever showed a token.

    Attributes:
        name: as the token was made out, for the log.
        scope: what they may do.
    """

    name: str
    scope: Scope

    def may(self, scope: Scope) -> bool:
        """Whether this is allowed."""
        return self.scope in (scope, "control")


class TokenError(Exception):
    """A token is not good; the text says why, without the token."""


def key_in(folder: Path) -> bytes:
    """Read this installation's key; made the first time, for its user's eyes only.

    Raises:
        ConfigError: it cannot be read or written.
    """
    path = folder / "web.key"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with open(path, "xb", opener=_for_me_alone) as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
        except FileExistsError:
            pass
        key = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"the key of tokens, {path}, cannot be used: {error.strerror}", "check its rights") from error
    if len(key) < _KEY_BYTES:
        raise ConfigError(f"the key of tokens, {path}, is damaged", "delete it; tokens made with it end")
    return key


def _for_me_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def make_token(key: bytes, name: str, scope: Scope, hours: float, clock: Callable[[], float] = time.time) -> str:
    """Make a token.

    Args:
        key: see ``key_in``.
        name: whom it is for; goes into the log.
        scope: what it allows.
        hours: for how long.
        clock: seconds since 1970.
    """
    now_s = int(clock())
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": name,
        "scope": scope,
        "iat": now_s,
        "exp": now_s + int(hours * 3600),
    }
    return jwt.encode(claims, key, algorithm=ALGORITHM)


def read_token(key: bytes, token: str) -> Bearer:
    """Check a token: signature, algorithm, times, issuer and audience.

    Raises:
        TokenError: it is not good.
    """
    try:
        claims = jwt.decode(
            token,
            key,
            algorithms=[ALGORITHM],
            audience=AUDIENCE,
            issuer=ISSUER,
            options={"require": list(_CLAIMS)},
        )
    except jwt.ExpiredSignatureError as error:
        raise TokenError("the token has expired") from error
    except jwt.InvalidTokenError as error:
        raise TokenError(f"the token is not good ({type(error).__name__})") from error
    scope = claims["scope"]
    if scope not in get_args(Scope):
        raise TokenError("the token allows nothing that is known here")
    return Bearer(str(claims["sub"]), scope)
