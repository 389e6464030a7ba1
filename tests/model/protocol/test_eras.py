"""Words that the eras of the protocol have for the same."""

from __future__ import annotations

import pytest

from emceepee_trio.model.protocol.eras import code_for

HANDSHAKE, MODERN = False, True


@pytest.mark.parametrize(
    ("of_server", "said", "of_client", "heard"),
    [
        (HANDSHAKE, -32002, MODERN, -32602),
        (MODERN, -32602, HANDSHAKE, -32002),
        (HANDSHAKE, -32602, HANDSHAKE, -32602),
        (MODERN, -32002, MODERN, -32002),
        (HANDSHAKE, -32603, MODERN, -32603),
    ],
)
def test_a_resource_that_is_not_there_is_told_in_other_words_in_another_era_alone(
    of_server: bool, said: int, of_client: bool, heard: int
) -> None:
    found = code_for("resources/read", said, of_modern=of_server, is_modern=of_client)
    assert found == heard
    assert code_for("prompts/get", said, of_modern=of_server, is_modern=of_client) == said
