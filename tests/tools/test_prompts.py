"""Prompts of servers, and completion."""

from __future__ import annotations

from typing import Any

from emceepee_client import Open
from fake_backends import Journal, demo, raw
from like import Like


async def test_prompts_are_listed_as_the_servers_describe_them(
    connect_as_either: Open, its_era: tuple[str, ...]
) -> None:
    async with connect_as_either({"raw": raw(*its_era), "demo": demo()}) as emceepee:
        greet = {"name": "who", "required": True, "x-vendor": 1}
        listed = [
            {"server": "raw", "name": "plain", "x-vendor": 1},
            {"server": "raw", "name": "greet", "arguments": [greet]},
        ]
        assert await emceepee.says("list_prompts", server="raw") == {"prompts": listed}
        everywhere = (await emceepee.says("list_prompts"))["prompts"]
        assert everywhere[:2] == listed
        assert [(entry["server"], entry["name"]) for entry in everywhere[2:]] == [
            ("demo", "summarize")
        ]
        assert await emceepee.says("list_prompts", server="emceepee") == {"prompts": []}


async def test_a_prompt_is_what_the_server_made_of_it(
    connect_as_either: Open, its_era: tuple[str, ...]
) -> None:
    async with connect_as_either({"raw": raw(*its_era)}) as emceepee:
        said = await emceepee.says(
            "get_prompt", server="raw", name="greet", arguments={"who": "Ada 🦑"}
        )
        for key in ("resultType", "ttlMs", "cacheScope"):
            assert (said.pop(key, None) is not None) is bool(its_era)
        text = {"type": "text", "text": "Greet Ada 🦑.", "x-vendor": 1}
        assert said == {
            "description": "a prompt",
            "messages": [
                {"role": "user", "content": text},
                {"role": "user", "content": {"type": "video", "data": "AAAA"}},
            ],
            "x-vendor": "prompt",
        }
        said = await emceepee.says("get_prompt", server="raw", name="plain")
        assert said["messages"][0]["content"]["text"] == "Greet nobody."
        error = await emceepee.fails("get_prompt", server="raw", name="none")
        assert error == {
            "code": Like("TOOL_ERR_(EXECUTION_FAILED|NOT_FOUND)"),
            "message": Like(".*unknown prompt none.*"),
            "details": {"code": -32602, "message": "unknown prompt none"},
        }
        error = await emceepee.fails("get_prompt", server="raw", name="greet", arguments={"who": 1})
        assert error["details"] == {"problems": ["arguments.who: expected a string, got 1"]}


async def test_arguments_are_completed(
    connect_as_either: Open, its_era: tuple[str, ...], journal: Journal
) -> None:
    async with connect_as_either({"raw": raw(*its_era, *journal.flags)}) as emceepee:
        said = await emceepee.says(
            "complete",
            server="raw",
            ref={"prompt": "greet"},
            argument={"name": "who", "value": "A"},
        )
        assert said == {
            "values": [f"A{n}" for n in range(100)],
            "total": 250,
            "has_more": True,
        }
        await emceepee.says(
            "complete",
            server="raw",
            ref='{"uri": "raw://item/{id}"}',
            argument={"name": "id", "value": ""},
            context={"other": "value"},
        )
        # As the protocol spells them.
        for ref in (
            {"type": "ref/prompt", "name": "greet"},
            {"type": "ref/resource", "uri": "raw://item/{id}"},
        ):
            answer = await emceepee.call(
                "complete", server="raw", ref=ref, argument={"name": "who", "value": "A"}
            )
            assert answer.json["total"] == 250
            assert not answer.note
        asked = [request["params"] for request in journal.of("completion/complete")]
        for params in asked:
            params.pop("_meta", None)
        first, second, third, fourth = asked
        assert [third["ref"], fourth["ref"]] == [first["ref"], second["ref"]]
        assert first == {
            "ref": {"type": "ref/prompt", "name": "greet"},
            "argument": {"name": "who", "value": "A"},
        }
        assert second == {
            "ref": {"type": "ref/resource", "uri": "raw://item/{id}"},
            "argument": {"name": "id", "value": ""},
            "context": {"arguments": {"other": "value"}},
        }


async def test_completions_of_the_sdks_own_server(connect: Open) -> None:
    async with connect({"demo": demo()}) as emceepee:
        said = await emceepee.says(
            "complete",
            server="demo",
            ref={"uri": "demo://files/{name}"},
            argument={"name": "name", "value": "r"},
        )
        assert said == {"values": ["readme.txt"], "total": 1, "has_more": False}


async def test_what_cannot_be_completed_is_named(connect: Open) -> None:
    good: dict[str, Any] = {
        "server": "raw",
        "ref": {"prompt": "greet"},
        "argument": {"name": "who", "value": ""},
    }
    bad: list[tuple[dict[str, Any], str]] = [
        ({"ref": {}}, "ref: expected either .*"),
        ({"ref": {"prompt": "a", "uri": "b"}}, "ref: expected either .*"),
        ({"ref": {"type": "ref/prompt"}}, "ref: expected either .*"),
        ({"ref": "greet"}, 'ref: expected an object, got "greet"'),
        ({"argument": {"name": "who"}}, "argument.value: missing"),
        ({"context": {"a": 1}}, "context.a: expected a string, got 1"),
    ]
    async with connect({"raw": raw(), "mute": raw("--no-capability", "completions")}) as emceepee:
        for wrong, problem in bad:
            error = await emceepee.fails("complete", **good | wrong)
            assert error["details"] == {"problems": [Like(problem)]}
        error = await emceepee.fails("complete", **good | {"server": "mute"})
        assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
        assert error["details"]["code"] == -32601
