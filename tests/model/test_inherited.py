from __future__ import annotations

import pytest

from emceepee_trio.model.inherited import inherited, is_ours, is_usual, of_network, together


@pytest.mark.parametrize(
    "name",
    [
        *("HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
        *("NODE_EXTRA_CA_CERTS", "NPM_CONFIG_REGISTRY", "npm_config__auth", "UV_INDEX_URL"),
        *("UV_INDEX_CORP_PASSWORD", "PIP_INDEX_URL", "SSH_AUTH_SOCK", "DISPLAY"),
        *("WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_DATA_DIRS", "LANGUAGE", "LC_TIME"),
        *("WSL_DISTRO_NAME", "WSLENV", "SystemRoot", "ProgramFiles(x86)", "DOCKER_HOST", "HOME"),
    ],
)
def test_what_installers_and_tls_need_is_usual(name: str) -> None:
    assert is_usual(name)
    assert not is_ours(name)


@pytest.mark.parametrize(
    "name", ["GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "UV_PUBLISH_TOKEN", "NODE_OPTIONS", "X"]
)
def test_what_may_be_a_secret_or_code_is_not(name: str) -> None:
    assert not is_usual(name)
    assert inherited({name: "x"}) == {}
    assert inherited({name: "x"}, (name,)) == inherited({name: "x"}, "all") == {name: "x"}


@pytest.mark.parametrize("name", ["EMCEEPEE_TOKEN", "EMCEEPEE_*", "LISTEN_FDS", "NOTIFY_SOCKET"])
def test_what_is_ours_is_nobodys(name: str) -> None:
    assert is_ours(name)
    assert inherited({name: "x"}, "all") == inherited({name: "x"}, (name, "*")) == {}


def test_a_token_of_ours_goes_nowhere_whatever_it_is_called() -> None:
    assert inherited({"UV_X": "t", "Y": "t", "Z": "u"}, "all", {"t"}) == {"Z": "u"}


def test_lists_add_up_and_a_list_of_its_own_replaces_all() -> None:
    assert together(("a", "b"), None) == ("a", "b")
    assert together(("a", "b"), ("b", "c")) == ("a", "b", "c")
    assert together("all", None) == together(("a",), "all") == together("all", "all") == "all"
    assert together("all", ("a",)) == ("a",)


def test_names_that_lead_to_a_registry_are_told_apart() -> None:
    names = ["PATH", "https_proxy", "HOME", "UV_INDEX_URL", "SSL_CERT_FILE", "TOKEN"]
    assert of_network(names) == ["SSL_CERT_FILE", "UV_INDEX_URL", "https_proxy"]
