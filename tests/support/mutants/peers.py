"""Bugs in what is thought of peers who mean no good; fuzzing has to find them by itself."""

from __future__ import annotations

from . import mutant

_ANY_DEPTH = (
    "model/json/intake.py",
    "        if gauge.is_too_deep:\n",
    "        if False:\n",
)
_ANY_NUMBER = (
    "model/json/intake.py",
    "        if gauge.has_long_number:\n",
    "        if False:\n",
)

PEERS = (
    mutant(
        "what a server says may be nested as deep as can be read",
        *_ANY_DEPTH,
        "races/test_fuzz_growth.py::test_whatever_grows_in_what_a_program_says",
    ),
    mutant(
        "what an answer over HTTP says may be nested deeper than can be read",
        "model/json/long/reading.py",
        "    except (ValueError, RecursionError) as error:\n        raise Unfit(",
        "    except ValueError as error:\n        raise Unfit(",
        "races/test_fuzz_growth.py::test_whatever_grows_in_what_a_server_behind_a_url_says",
        also=(_ANY_DEPTH,),
    ),
    mutant(
        "a list holds for a time that no clock can tell",
        "backend/catalogue/catalog.py",
        "    seconds: float = min(ttl_ms, TTL_MS) / 1000\n",
        "    seconds: float = ttl_ms / 1000\n",
        "races/test_fuzz_growth.py::test_whatever_number_a_program_answers",
        also=(_ANY_NUMBER,),
    ),
    mutant(
        "an answer that cannot be parsed answers nobody",
        "backend/connections/messages.py",
        "        known = yield from outlines(text)\n",
        "        known = [each for each in (yield from outlines(text)) if 'method' in each]\n",
        "races/test_fuzz_backends.py::test_an_answer_of_a_program_is_not_waited_for",
    ),
    mutant(
        "everybody waits until all that a program complains of is read",
        "backend/children/process.py",
        "                self._on_stderr(text(line))\n"
        "                if n % BREATH == 0:\n"
        "                    await self._breathe(PAUSE)\n",
        "                self._on_stderr(text(line))\n",
        "races/test_fuzz_backends.py::test_a_program_that_floods",
    ),
    mutant(
        "everybody waits until all of a long message is parsed",
        "model/json/long/reading.py",
        "        return (yield from _read_in_parts(text, measure, loads, left))\n",
        "        return loads(text.decode())\n",
        "races/test_fuzz_growth.py::test_whatever_grows_in_what_a_server_behind_a_url_says",
    ),
    mutant(
        "only calls of tools are counted, and not what else waits for a server",
        "tools/common/registry.py",
        "        if not self.waits:\n",
        "        if True:\n",
        "races/test_fuzz_crowd.py",
    ),
)
