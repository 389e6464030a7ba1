"""Bugs of what is kept of long answers, and shown of it."""

from __future__ import annotations

from . import mutant

RESULTS = (
    mutant(
        "what a server asks with many words is put to nobody as text",
        "backend/connections/sdk.py",
        '        is_whole = outcome.get("resultType", "complete") == "complete"\n',
        "        is_whole = True\n",
        "backend/connections/test_client.py::"
        "test_long_texts_are_left_in_the_last_of_the_rounds_alone",
    ),
    mutant(
        "a preview of an image says that its lines can be read",
        "tools/results/preview.py",
        '    if not kept.is_text:\n        return "read_result with this id, and bytes"\n',
        "",
        "tools/test_results.py::test_what_it_looks_like_is_said",
    ),
    mutant(
        "what is shown whole is shown with long texts that nobody can read",
        "tools/results/shown.py",
        "    return await whole(result)\n",
        "    return result\n",
        "tools/test_results.py::test_it_is_off_where_that_is_said",
    ),
    mutant(
        "a long answer is in memory as bytes and as a string",
        "tools/execution.py",
        "                    leaves_long=True,\n",
        "",
        "tools/test_memory.py",
    ),
    mutant(
        "a long name of a member is left in its message",
        "model/json/long/reading.py",
        "        if left is None or place.is_name:\n",
        "        if left is None:\n",
        "model/json/long/test_reading.py::test_long_strings_can_be_left_where_they_are",
    ),
    mutant(
        "values of a long answer are all made before anybody needs them",
        "model/json/long/reading.py",
        "    parts = yield from cut_up(text, measure, leaves_values=left is not None)\n",
        "    parts = yield from cut_up(text, measure, leaves_values=False)\n",
        "model/json/long/test_value.py",
    ),
    mutant(
        "what is no JSON is found in a long value by those who read it",
        "model/json/long/value.py",
        "                yield from parsed(part, message, loads, value._look)\n",
        "                pass\n",
        "model/json/long/test_value.py::test_what_is_refused_elsewhere_is_refused_there",
    ),
    mutant(
        "a long value ends where a slice does",
        "model/json/long/cutting.py",
        "            self.gauge, end = before, "
        "_end_of(before, self.text, self.at, end, begun.level)\n",
        "            self.gauge = before\n",
        "model/json/long/test_value.py::test_it_says_what_it_would_say_elsewhere",
    ),
    mutant(
        "two parts of a long value are written without a comma",
        "model/json/spelling.py",
        '        if after is not None:\n            yield ","\n',
        "",
        "model/json/long/test_value.py::test_it_says_what_it_would_say_elsewhere",
    ),
    mutant(
        "of an array that is seen in parts the first is counted",
        "model/json/shape.py",
        "            self._last.see(before[1:], inner)\n        self._add(rest)\n",
        "            self._last.see(before[1:], inner)\n",
        "model/json/long/test_value.py::test_it_says_what_it_would_say_elsewhere",
    ),
    mutant(
        "of two members of one name in two parts the first is gone on with",
        "model/json/long/joining.py",
        "                holder.pop(next(reversed(rest)), None)\n",
        "                pass\n",
        "model/json/long/test_value.py::test_a_name_twice_is_the_same_in_parts",
    ),
    mutant(
        "whatever is called structured content is left in an answer, wherever nobody looks",
        "backend/connections/messages.py",
        '        if type(given) is LongValue and name != "result":  # which is that of a task\n',
        "        if False:\n",
        "backend/connections/test_messages.py::"
        "test_long_values_are_left_where_they_are_what_was_asked_for_and_nowhere_else",
    ),
    mutant(
        "why a task of a modern server has failed is told as a long text that nobody can read",
        "backend/connections/tasks.py",
        '            if type(task) is Partly and task.get("status") != "completed":\n',
        "            if False:\n",
        "front/test_tasks.py::test_what_such_a_task_says_at_length_is_read_where_somebody_needs_it",
    ),
    mutant(
        "what stays beside a preview stays a long text that nobody can read",
        "tools/results/preview.py",
        "        shorter = result.copy()",
        "        shorter = dict(result)",
        "tools/test_results.py::test_what_is_long_and_stays_beside_a_preview_is_whole",
    ),
    mutant(
        "in a native answer long texts stay that nobody can read",
        "tools/results/shown.py",
        "        return type(result)(await turns.through(in_result(result, "
        "partial(native_uri, server))))\n",
        "        return await turns.through(in_result(result, partial(native_uri, server)))\n",
        "front/test_native.py::test_a_long_result_is_shown_whole_where_that_is_said",
    ),
    mutant(
        "what is left of a question is put to nobody who can read it",
        "backend/connections/messages.py",
        "        return (yield from unfolded(value))\n",
        "        return value\n",
        "backend/connections/test_messages.py",
    ),
    mutant(
        "a preview of an error is none",
        "tools/results/preview.py",
        '        shorter["content"] = [*content, *about_structured]\n',
        '        shorter["content"] = [*content, *about_structured]\n'
        '        shorter.pop("isError", None)\n',
        "tools/test_results.py::test_a_long_answer_is_shown_as_a_preview",
    ),
    mutant(
        "a file outlives its session",
        "session/results.py",
        "await on_disk(self.folder.remove)\n",
        "await trio.lowlevel.checkpoint()\n",
        "session/test_results.py::test_nothing_is_left_of_a_session",
    ),
    mutant(
        "what a killed daemon has left stays",
        "session/results.py",
        "        await on_disk(folders.clear)\n",
        "        pass\n",
        "tools/test_results.py::test_a_file_has_it_as_long_as_the_session_lives",
    ),
    mutant(
        "the files of a daemon that runs are taken for left",
        "session/kept.py",
        "        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "",
        "session/test_results.py::test_what_another_daemon_has_is_its_own",
    ),
    mutant(
        "an evicted id is said to be unknown",
        "session/results.py",
        "        self._gone[result_id] = why\n",
        "",
        "tools/test_results.py::test_what_is_evicted_or_expired_says_so",
    ),
    mutant(
        "a part of a result is above the bound",
        "tools/results/reading.py",
        "    return max(most - ABOUT, most // 2)\n",
        "    return 2 * most\n",
        "tools/test_results.py::test_it_is_read_in_parts",
    ),
    mutant(
        "a part ends within a character",
        "tools/results/parts.py",
        "data[: len(data) - back] if back < whole < len(data) + back else data\n",
        "data\n",
        "tools/test_results.py::test_it_is_read_in_parts",
    ),
    mutant(
        "who gives up while it is written leaves a file",
        "session/results.py",
        "            draft.give_up()\n",
        "            pass\n",
        "session/test_results.py::test_who_gives_up_leaves_nothing",
    ),
)
