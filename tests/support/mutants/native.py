"""Bugs of servers' own tools, resources and prompts in one list."""

from __future__ import annotations

from . import mutant

NATIVE = (
    mutant(
        "a native name depends on what else is there",
        "model/native/choice.py",
        "            name = native_name(offer.server, theirs, most_name)\n",
        "            name = theirs\n"
        "            if theirs in known:\n"
        "                name = native_name(offer.server, theirs, most_name)\n",
        "model/native/test_choice.py",
    ),
    mutant(
        "two tools have one native name",
        "model/native/names.py",
        " and plain.find(SEPARATOR) == len(server):\n",
        ":\n",
        "model/native/test_names.py::test_no_two_are_called_alike_though_they_look_it",
    ),
    mutant(
        "a native name is longer than some clients take",
        "model/native/names.py",
        "{plain[: most - DIGITS - 1]}_{digest(server, name)}",
        "{plain}_{digest(server, name)}",
        "model/native/test_names.py::test_everybody_takes_a_name",
    ),
    mutant(
        "a native URI is not one that a client can parse",
        "model/native/uris.py",
        "    if _SCHEME.fullmatch(server):\n",
        "    if server:\n",
        "model/native/test_uris.py::test_what_begins_as_no_uri_can_is_altered",
    ),
    mutant(
        "a native prompt has URIs of its server",
        "model/native/places.py",
        '        changes["messages"] = found\n',
        "",
        "model/native/test_places.py::test_a_prompt",
    ),
    mutant(
        "a native call brings links that nobody can follow",
        "tools/results/shown.py",
        "    if request.is_native:\n",
        "    if False:\n",
        "front/test_native.py::test_a_call_is_one_of_execute_tool",
    ),
    mutant(
        "a model is shown native tools that are for apps",
        "front/faces/native/lists.py",
        "                if not for_apps:\n",
        "                if False:\n",
        "front/test_native.py::test_tools_are_listed_as_their_servers_list_them",
    ),
    mutant(
        "native tools of a lost server are gone",
        "front/faces/native/lists.py",
        "(backend, found[backend] if backend in found else backend.old(name))",
        "(backend, found.get(backend, []))",
        "front/test_native.py::"
        "test_a_lost_server_keeps_its_tools_and_a_call_says_when_it_comes_back",
    ),
    mutant(
        "a native list is told to have changed that has not",
        "front/faces/native/news.py",
        "                is_changed |= digest != self._told[method]\n",
        "                is_changed = True\n",
        "front/test_native_news.py::"
        "test_a_list_is_told_to_be_another_one_once_a_second_and_only_if_it_is",
    ),
    mutant(
        "native lists are told to have changed as often as they have",
        "front/faces/native/news.py",
        "            await trio.sleep(EVERY)\n",
        "",
        "front/test_native_news.py::test_a_list_that_changes_all_the_time_is_told_once_a_second",
    ),
    mutant(
        "a native list that changed while it was read is not told",
        "front/faces/native/news.py",
        "            self._told[method] = digest\n            self._look_at(method)\n",
        "            self._told[method] = digest\n",
        "front/test_native_news.py::test_what_changed_before_a_stream_was_opened_is_told_on_it",
    ),
    mutant(
        "a resource that is followed natively is told as its server calls it",
        "front/faces/native/news.py",
        "            said = in_update(dict(params or {}), lambda uri: native_uri(server, uri))\n",
        "            said = dict(params or {})\n",
        "front/test_native_news.py::test_a_resource_that_is_followed_is_told_by_its_native_uri",
    ),
)
