"""Bugs of what clients connect to, and of how their tools answer."""

from __future__ import annotations

from . import mutant

FRONT = (
    # Who may
    mutant(
        "the id of a session is enough, whoever names it",
        "front/handshake/endpoint.py",
        " or session is None or session.principal != principal:\n",
        " or session is None:\n",
        "front/test_http.py::test_a_session_is_unknown_to_every_other_principal",
    ),
    mutant(
        "a client that names no session of ours is not told to begin again",
        "front/handshake/endpoint.py",
        '            raise Refused(404, "no such session; initialize a new one")\n',
        '            raise Refused(400, "no such session; initialize a new one")\n',
        "front/test_http.py::test_a_session_is_unknown_to_every_other_principal",
    ),
    mutant(
        "a page from anywhere may call if it claims to come from here",
        "web/security.py",
        "        if host is None or not self._is_ours(host, _server(scope)):\n",
        "        if host is None:\n",
        "web/test_security.py::test_evil_that_calls_us_evil_may_not",
    ),
    # Sessions and their connections
    mutant(
        "clients share the requests that are under way",
        "front/handshake/connection.py",
        "    _exchanges: dict[RequestId, Exchange] = attrs.field(factory=dict, init=False)\n",
        "    _exchanges: dict[RequestId, Exchange] = attrs.field(default={}, init=False)\n",
        "front/test_sessions.py::test_fifty_clients_at_once_with_the_same_ids_get_their_own_secrets",
    ),
    mutant(
        "what comes before the answer to initialize is refused",
        "front/handshake/connection.py",
        "            if self._greeted is not None:",
        "            if False:",
        "front/handshake/test_connection.py",
    ),
    mutant(
        "calls end with the connection that has made them",
        "front/handshake/connection.py",
        "        self.front.under_way.give_up()\n        self.front.closing.set()\n        scopes",
        "        self.front.closing.set()\n        scopes",
        "front/handshake/test_rejoin.py::test_calls_in_flight_become_tasks_at_once",
    ),
    mutant(
        "a client that only stopped waiting loses its call",
        "front/under_way.py",
        "        if _GAVE_UP.search(reason):\n",
        "        if False:\n",
        "front/test_cancellation.py::test_a_client_that_gave_up_finds_its_result_later",
    ),
    mutant(
        "a session ends with the stream that listens to it",
        "front/handshake/endpoint.py",
        "                    await copy(reader, request.send, is_primed=connection.is_primed)\n"
        "        finally:\n            reader.close()\n\n\n",
        "                    await copy(reader, request.send, is_primed=connection.is_primed)\n"
        "        finally:\n            reader.close()\n"
        '            self.manager.end(client.session, "closed")\n\n\n',
        "front/handshake/test_clients.py::test_what_nobody_listens_to_waits_for_somebody",
    ),
    # Streams
    mutant(
        "the id of an event in a stream of somebody else leads to a stream",
        "front/handshake/streams.py",
        "        stream = self._streams.get(found[1]) if found else None\n",
        "        stream = self._streams.get(found[1], self.standalone) if found else None\n",
        "front/handshake/test_clients.py::test_an_id_of_another_session_is_refused",
    ),
    mutant(
        "a message is missed that comes between a reader's look and its wait",
        "front/handshake/stream.py",
        "            await self.stream.news.wait()",
        "            await trio.lowlevel.checkpoint()\n            await self.stream.news.wait()",
        "front/handshake/test_stream_fates.py",
    ),
    mutant(
        "a stream that is taken over has two readers",
        "front/handshake/stream.py",
        "        self._generation += 1\n        self._live = True\n",
        "        self._live = True\n",
        "front/handshake/test_streams.py",
    ),
    mutant(
        "what a reader writes after it was taken over counts as read",
        "front/handshake/stream.py",
        "        if self.is_current:  # else its successor writes it again, or has already\n",
        "        if True:\n",
        "front/handshake/test_streams.py",
    ),
    mutant(
        "what a reader is about to read makes room",
        "front/handshake/stream.py",
        "        if self.has_reader:\n            return None\n",
        "",
        "front/handshake/test_streams.py",
    ),
    mutant(
        "a message that was read counts as lost when it is evicted",
        "front/handshake/streams.py",
        "        if entry.number > stream.taken:\n            stream.lose(entry.number)\n",
        "        if True:\n            stream.lose(entry.number)\n",
        "front/handshake/test_streams.py",
    ),
    mutant(
        "a writer waits for a reader that does not read, for ever",
        "front/handshake/streams.py",
        "        with trio.move_on_after(WRITER_PATIENCE):\n",
        "        with trio.CancelScope():\n",
        "front/handshake/test_streams.py::test_after_its_patience_only_the_slowest_reader_is_dropped",
    ),
    # Deliveries
    mutant(
        "events count as delivered when they are put into a stream, and not when that is written",
        "front/handshake/connection.py",
        "            delivery, exchange.delivery = exchange.delivery, None\n",
        "            exchange.delivery = exchange.delivery and exchange.delivery.commit()\n",
        "front/test_deliveries.py",
    ),
    mutant(
        "events of a cancelled request are lost",
        "front/faces/ours.py",
        "        delivery.give_back()\n        await trio.sleep_forever()\n",
        "        delivery.commit()\n        await trio.sleep_forever()\n",
        "front/test_delivery_fates.py",
    ),
    mutant(
        "events of an answer that nobody can come back for stay with it",
        "front/handshake/streams.py",
        "        if not stream.is_known:\n            stream.is_abandoned = True\n",
        "        if False:\n            stream.is_abandoned = True\n",
        "front/test_deliveries.py",
    ),
    mutant(
        "a wait begins behind what happens before it sleeps",
        "tools/news/activity.py",
        "            await session.events.wait_news(since, cursor)\n",
        "            await trio.lowlevel.checkpoint()\n"
        "            await session.events.triggers.wait_after(feed.last)\n",
        "front/test_delivery_fates.py",
    ),
    # What people see, and what they name
    mutant(
        "a newline of a peer is a line of the log",
        "model/text/show.py",
        'not (lines and point == ord("\\n"))',
        'point != ord("\\n")',
        "model/text/test_show.py",
    ),
    mutant(
        "what turns the direction of text is shown as it is",
        "model/text/show.py",
        "(0x2028, 0x202E), ",
        "(0x2028, 0x2029), ",
        "model/text/test_show.py",
    ),
    mutant(
        "a reload waits for the writer of a pipe",
        "commands/serve.py",
        "        sources.patience = 0\n",
        "",
        "commands/test_sources.py::test_a_daemon_whose_token_file_becomes_a_pipe_goes_on",
    ),
    mutant(
        "a configuration that has gone is one without servers",
        "commands/common/configuration.py",
        "            options.config = default_path()\n",
        "            pass\n",
        "commands/test_sources.py::test_a_daemon_goes_on_with_what_it_had",
    ),
    mutant(
        "what was not printed was a success",
        "commands/common/output.py",
        "    try:\n        sys.stdout.flush()\n",
        "    return\n    try:\n        sys.stdout.flush()\n",
        "commands/common/test_output.py::test_a_call_that_cannot_be_printed_is_no_success",
    ),
    # Time
    mutant(
        "a reader that stops reading keeps its connection",
        "serving/connection.py",
        "min(trio.current_time() + SEND_PATIENCE, self.end())",
        "self.end()",
        "serving/test_connection.py::test_a_reader_that_stops_reading_is_dropped",
    ),
    mutant(
        "who waits for events keeps a daemon from ending",
        "session/manager.py",
        "            session.events.triggers.close()\n",
        "            pass\n",
        "front/test_sessions.py::test_at_drain_streams_and_waits_return_and_what_is_answered_goes_on",
    ),
    mutant(
        "a client that reads no answers is read from for ever",
        "front/pipes/reading.py",
        "if len(self._owed) >= at_most:\n",
        "if at_most < 0:\n",
        "faults/test_counted.py::test_who_reads_no_answer_is_not_read_from",
    ),
    mutant(
        "calls on standard input begin in any order",
        "front/pipes/answering.py",
        "        await trio.lowlevel.checkpoint()\n",
        "        await trio.sleep(0) if self is None else None\n",
        "front/pipes/test_answering.py::test_calls_reach_a_server_in_the_order_of_the_wire",
    ),
    mutant(
        "a call on standard input that its client has cancelled is answered",
        "front/pipes/answering.py",
        "        if scope.cancel_called and scope not in self._refused:\n            return",
        "        if scope is None:\n            return",
        "front/pipes/test_answering.py",
    ),
    mutant(
        "an answer on standard output comes into the middle of another",
        "front/pipes/writing.py",
        "if not self._items.statistics().tasks_waiting_receive:\n",
        "if self._file is None:\n",
        "front/pipes/test_writing.py",
    ),
    mutant(
        "what standard output has no room for is lost",
        "front/pipes/writing.py",
        "if wrote == len(said.data):\n",
        "if wrote:\n",
        "front/pipes/test_writing.py",
    ),
    mutant(
        "input that is a file is not read",
        "front/pipes/reading.py",
        "except PermissionError:\n",
        "except NotImplementedError:\n",
        "front/pipes/test_reading.py::test_input_may_be_a_file_which_is_always_ready",
    ),
    mutant(
        "the end of input leaves calls without an answer",
        "front/pipes/stdio.py",
        "            answering.end()\n",
        "            calls.cancel_scope.cancel()\n",
        "front/pipes/test_stdio.py",
    ),
    mutant(
        "on standard input a client may mix the eras",
        "front/pipes/answering.py",
        "bool(self._front.version) and not is_modern",
        "bool(self._front.version) or is_modern",
        "front/pipes/test_answering.py",
    ),
    mutant(
        "of two lengths of a request one is believed",
        "serving/requests.py",
        "        longest = self._at + LONGEST\n",
        "        longest = self._at + LONGEST\n"
        "        parser.set_dangerous_leniencies(lenient_chunked_length=True)\n",
        "serving/test_http1.py",
    ),
    mutant(
        "what is behind a request that is answered before its end is another one",
        "serving/exchange.py",
        "if self._connection.is_last or not self._requests.is_whole:\n",
        "if self._connection.is_last:\n",
        "serving/test_connection.py",
    ),
    mutant(
        "a request line is believed to be what llhttp takes for one",
        "serving/requests.py",
        "        not raw.startswith(line)\n",
        "        False\n",
        "serving/test_malformed.py",
    ),
    mutant(
        "an app writes any header it likes, and what is behind it",
        "serving/answers.py",
        "not _NAME.fullmatch(name) or not _VALUE.fullmatch(value)",
        "not _NAME.fullmatch(name)",
        "serving/test_answers.py",
    ),
    mutant(
        "what a client has cancelled before it was looked at is kept",
        "front/handshake/connection.py",
        "            self.front.under_way.forget(message.id)\n",
        "",
        "front/handshake/test_connection.py::test_nothing_is_kept_of_what_is_cancelled_before_that",
    ),
)
