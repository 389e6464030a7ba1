from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emceepee_trio.config import (
    Config,
    ConfigError,
    Health,
    Http,
    Limits,
    Loaded,
    Policy,
    Reconnect,
    Retry,
    Server,
    server_from_arguments,
)
from emceepee_trio.model.text.variables import unbraced
from reading import read

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True).filter(
    lambda name: name != "emceepee"
)
texts = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8
).filter(lambda text: unbraced(text) is None)
"""Of one that only a shell would take for a variable its author is warned."""
tokens = st.from_regex(r"[A-Za-z0-9-]{1,8}", fullmatch=True)
delays = st.tuples(st.integers(10, 3_600_000), st.integers(10, 3_600_000)).map(sorted)


def retries(cls: type[Retry]) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda pair, **rest: cls(base_delay_ms=pair[0], max_delay_ms=pair[1], **rest),
        delays,
        enabled=st.booleans(),
        max_attempts=st.none() | st.integers(1, 1_000_000),
        multiplier=st.floats(1, 100),
        jitter=st.floats(0, 1),
    )


common: dict[str, Any] = {
    "name": names,
    "disabled": st.booleans(),
    "allowed_tools": st.none() | st.lists(texts, max_size=2).map(tuple),
    "start": st.sampled_from(["auto", "eager", "lazy"]),
    "era": st.sampled_from(["auto", "handshake", "modern"]),
    "connect_timeout_ms": st.integers(100, 600_000),
    "call_timeout_ms": st.none() | st.integers(100, 86_400_000),
}
web_servers = st.builds(
    Server,
    url=tokens.map(lambda token: f"https://h/{token}"),
    headers=st.dictionaries(tokens, tokens, max_size=2),
    type=st.sampled_from([None, "http", "sse"]),
    reconnect=retries(Reconnect),
    propagate_session=st.none() | tokens,
    **common,
)
programs = st.builds(
    Server,
    command=tokens | tokens.map(lambda token: f"/{token}"),
    args=st.lists(texts, max_size=2).map(tuple),
    env=st.dictionaries(tokens, texts, max_size=2),
    cwd=st.none() | tokens.map(lambda token: f"/{token}"),
    type=st.sampled_from([None, "stdio"]),
    restart=retries(Retry),
    **common,
)


def in_bounds(cls: type) -> st.SearchStrategy[Any]:
    """Instances of a class that holds nothing but integers."""
    return st.builds(
        cls,
        **{
            a.name: st.integers(a.metadata["low"], a.metadata["high"])
            for a in attrs.fields(cls)
            if a.name != "servers"
        },
    )


configs = st.builds(
    Config,
    servers=st.lists(web_servers | programs, max_size=3, unique_by=lambda s: s.name).map(tuple),
    limits=in_bounds(Limits),
    health=in_bounds(Health),
    http=st.builds(
        Http,
        allowed_hosts=st.lists(tokens, max_size=2).map(tuple),
        tokens=st.lists(tokens, unique=True, max_size=2).map(
            lambda found: {f"n{i}": token for i, token in enumerate(found)}
        ),
    ),
    policy=st.builds(
        Policy,
        spawn=st.sampled_from([None, "allow", "deny"]),
        spawn_allowlist=st.lists(st.lists(texts, min_size=1, max_size=2).map(tuple)).map(tuple),
        network=st.sampled_from(["restricted", "allow"]),
    ),
    context=st.sampled_from(["full", "off"]),
    shutdown_grace_ms=st.integers(0, 600_000),
)


def written(value: Any) -> Any:
    """As one would write it: variables are literal only if that is said."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, Mapping):
        return {key: written(item) for key, item in value.items()}
    return [written(item) for item in value] if isinstance(value, tuple | list) else value


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(configs)
def test_what_is_written_is_what_is_read(config: Config) -> None:
    text = json.dumps(written(attrs.asdict(config)))
    assert read(json.loads(text)) == Loaded(config, ())


keys = st.sampled_from(
    [a.name for cls in (Config, Server, Limits, Retry) for a in attrs.fields(cls)]
    + ["mcpServers", "mcpClients", "timeout", "enabled", "oauth", "inputs", "restartConfig", "x"]
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["${", "${X}", "http://[", "http://h:x", "stdio", "~", "a/b", "\ud800"])
)
json_values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(keys | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(json_values | st.dictionaries(keys, json_values, max_size=4))
def test_whatever_is_given_is_read_or_refused_in_lines(data: object) -> None:
    lines = ["x"]
    try:
        read(data)
    except ConfigError as exc:
        lines = [str(problem) for problem in exc.problems]
    assert lines
    assert all(line.isprintable() for line in lines)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(keys, json_values, max_size=4))
def test_whatever_is_added_is_a_server_or_refused(data: dict[str, object]) -> None:
    lines = ["x"]
    try:
        server_from_arguments(data)
    except ConfigError as exc:
        lines = [str(problem) for problem in exc.problems]
    assert lines
    assert all(line.isprintable() for line in lines)
