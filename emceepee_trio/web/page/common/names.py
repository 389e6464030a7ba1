"""What sessions are called in URLs, and whose may be seen.

Whoever knows the id of one needs only a token to join it, and addresses are seen by many. Another
daemon has other names.
"""

from __future__ import annotations

import secrets
from hashlib import blake2s

import attrs

from ....errors import NotFound
from ....session.manager import SessionManager
from ....session.session import Session


@attrs.frozen
class Names:
    manager: SessionManager
    _key: bytes = attrs.field(factory=lambda: secrets.token_bytes(16), repr=False)

    def of(self, session_id: str) -> str:
        return blake2s(session_id.encode(), key=self._key, digest_size=6).hexdigest()

    def session(self, name: str, whose: str | None) -> Session:
        """One of those that a visitor may see.

        Raises:
            NotFound: there is none; perhaps no more.
        """
        for session in self.manager.sessions(whose):
            if self.of(session.id) == name:
                return session
        raise NotFound("there is no such session any more")
