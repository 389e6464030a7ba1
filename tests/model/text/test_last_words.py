from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.model.text.last_words import BESIDE, is_of_network, last_words
from last_words import LAST_WORDS


@pytest.mark.parametrize(("written", "wanted"), LAST_WORDS.values(), ids=LAST_WORDS)
def test_the_line_that_says_why_is_found(written: str, wanted: str | None) -> None:
    words = last_words(written.splitlines())
    assert (words and words.reason) == wanted


AROUND = {
    "npx: no such version": (
        (
            "notarget In most cases you or one of your dependencies are requesting a package "
            "version that doesn't exist."
        ),
    ),
    "npx: no such package": (
        (
            "404  The requested resource '@modelcontextprotocol/server-nope@*' could not be found "
            "or you do not have permission to access it."
        ),
        "404 Note that you can also install from a",
    ),
    "npx: a certificate": (),
    "uvx: nobody there": (
        "cause: error sending request for url (http://127.0.0.1:9/simple/mcp-server-git/)",
        "cause: client error (Connect)",
    ),
    "uvx: a certificate, and a hint": (
        "Caused by: Request failed after 3 retries",
        "Caused by: client error (Connect)",
    ),
    "docker: no image": ("Unable to find image 'mcp/nope:latest' locally",),
    "docker: no daemon": (),
    "python: no module to import": ("import requests_nope",),
    "python: one exception after the other": (
        "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed",
        "return opener.open(url, data, timeout)",
    ),
    "node: no module": (),
}


@pytest.mark.parametrize(("which", "wanted"), AROUND.items(), ids=AROUND)
def test_a_few_lines_beside_it_are_shown(which: str, wanted: tuple[str, ...]) -> None:
    words = last_words(LAST_WORDS[which][0].splitlines())
    assert words is not None
    assert words.around == wanted


OF_NETWORK = {
    "npx: no such version",
    "npx: no such package",
    "npx: nobody there",
    "npx: a certificate",
    "uvx: no such package",
    "uvx: nobody there",
    "uvx: a certificate, and a hint",
    "docker: no image",
    "python: one exception after the other",
    "node: a cause",
}


@pytest.mark.parametrize("which", LAST_WORDS)
def test_what_has_to_do_with_certificates_proxies_and_registries_is_told_apart(which: str) -> None:
    assert is_of_network(LAST_WORDS[which][0].splitlines()) == (which in OF_NETWORK)


@given(st.lists(st.text(max_size=40), max_size=20))
def test_any_line_there_is_says_something(lines: list[str]) -> None:
    words = last_words(lines)
    assert (words is None) == (not any(line.strip() for line in lines))
    if words is not None:
        assert words.reason
        assert len(words.around) <= 2 * BESIDE
