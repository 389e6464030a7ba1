"""The numbers that are not settings: bounds of settings, of arguments, of what peers can grow."""

from __future__ import annotations

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
KIB = 1024
MIB = 1024 * KIB

MAX_EXECUTE_TIMEOUT_MS = HOUR
"""``timeout_ms`` of execute_tool, and its default, at most."""

MAX_AWAIT_TIMEOUT_MS = 15 * MINUTE
"""``timeout_ms`` of await_activity, and its default, at most."""

MIN_TASK_TTL_MS = 100
MAX_TASK_TTL_MS = 30 * MINUTE
"""``ttl_ms`` of a task is clamped to these; the default may not exceed them."""

MAX_TIMERS = 100
"""Active timers of a session; one more is refused."""

MIN_TIMER_MS = 100
MIN_INTERVAL_MS = SECOND
MAX_TIMER_MS = DAY
"""How long a timer may take, and how often one that repeats may fire."""

MAX_TIMER_MESSAGE = 500
"""Characters of a timer's message."""

MAX_WAITERS = 64
"""Calls of a session that may wait at once in await_activity or get_task_result."""

MAX_INTERRUPTED = 256
"""Requests of a session that were answered with a question, and may be continued."""

MAX_BATCH = 100
"""Messages in one batch; a longer one is refused as a whole."""

MAX_UNANSWERED = 256
"""Requests of a client, beyond `limits.calls`, that are taken and not answered yet; as nothing else
takes long, it does not read its answers."""

MAX_CHILDREN = 500
"""Child processes of the daemon, or as many as half of the files it may open have room for; one
more is not started."""

MAX_STREAM_MESSAGES = 1000
MAX_STREAM_BYTES = 8 * MIB
"""What the streams of one session keep for readers who come back; the oldest goes first."""

MAX_NOTIFICATIONS_BYTES = MIB
"""Of the notifications kept of a server, in a session; the oldest goes first, the newest stays."""

MAX_STATUS_MESSAGE = 500
"""Characters of a task's status message; the rest of what the backend said is cut off."""

MAX_DELIVERY_EVENTS = 50
MAX_DELIVERY_BYTES = 16 * KIB
"""Events in one response; the rest stays undelivered and is announced as ``more``."""

LEAST_BESIDE = KIB
"""Room for events and questions beside an answer that has used all that there is together."""

MAX_PAGE_BYTES = 16 * KIB
"""A page of a list of tools; what does not fit into one is a summary, unless asked for in full."""

MAX_TASKS_SHOWN = 20
"""Working tasks that an answer names beside what it is about, the newest of each server; the rest
is ``more``, and list_tasks lists them."""

MAX_LEDGER = 1000
"""Servers of a session, those that are gone too, of which it is counted how much its client was
told; the others are counted together."""

MAX_LOGS_RETURNED = 500
"""``limit`` of get_logs."""

MAX_SEARCH_PATTERN = 200
"""Characters of a regular expression that a client sends."""

MAX_QUERY = 1000
MAX_QUERIES = 10
"""Characters of what is searched for in words, and how many such searches one call may make."""

MAX_FOUND = 100
"""Lines of an answer to a search, if so many are asked for."""

PROGRESS_EVERY_MS = 10 * SECOND
"""A client that waits and sent a progress token hears of us at least this often."""

MAX_RETRY_MS = MINUTE
"""A server may ask to be asked again for a stream only after so long; a longer wait is cut to this,
and so is our own."""

RETRY_RESET_MS = MINUTE
"""After so long connected, the count of attempts starts again."""

UNUSED_SESSION_MS = 2 * MINUTE
"""How long a session lives whose client only ever initialized."""

MAX_CONFIG_BYTES = 16 * MIB
"""A configuration file longer than this is refused; whole client state files fit."""

SLOW_STEP_MS = 20
"""Of processor time between two checkpoints of a task, for which everybody else waits: from here
on it is counted, and shown by ``/status``."""

LONG_STEP_MS = 100
"""From here on the log says so, once a minute for each kind of task; no test may take so long."""

MAX_NAME = 1000
"""Characters of a name or an id that a client sends. What is longer names nothing."""

MAX_URI = 8 * KIB
"""Characters of a URL or URI that a client sends."""

MAX_PATH = 4 * KIB
"""Characters of a command or a folder; Linux knows no longer ones."""

MAX_ARGUMENTS = 1000
MAX_ARGUMENT = 128 * KIB
"""Arguments or variables of a server, and characters of each; Linux passes no longer ones on."""

MAX_HEADERS = 100
MAX_HEADER = 16 * KIB
"""Headers of a server, and characters of each."""

MAX_SERVER = 256 * KIB
"""Characters of all of these together, for one server."""

MAX_ALLOWED_TOOLS = 1000
MAX_ALLOWED_GLOBS = 100
"""Entries of ``allowed_tools``, and how many of them may be globs. One is at most as long as a
pattern that a client sends."""

MAX_PENDING_BYTES = 16 * KIB
"""Open questions in one answer: those for which there is no room are only named, or counted."""

MAX_ARGS_SHOWN = 4 * KIB
MAX_ARGS_BEGINNING = 1000
"""Bytes of a task's arguments in a list of tasks, and characters of those that have more."""

MAX_ROOTS = 1000
MAX_ROOTS_BYTES = 256 * KIB
"""Roots of a session, and their size together."""

MAX_SCRIPTS = 8
"""Scripts of a session that run; more of them wait for their turn."""

MAX_LEFT = 100
"""Calls of a session that wait for a lost request to be sent again."""

MAX_SUBSCRIPTIONS = 1000
"""Resources of one server that a session follows, and asks for again of each new connection."""

MAX_BLOCKS = 1000
"""Content blocks in an answer to a sampling request."""

MAX_CAPABILITIES = 4 * KIB
"""Bytes of what a server says it can and is, in a list of servers."""

MAX_TOOLS_NAMED = 1000
"""Names of tools in the answer of add_server; list_tools has the others."""

MAX_INSTRUCTIONS = 64 * KIB
"""Characters of a server's instructions; the rest is cut."""

MAX_SAID = 8 * KIB
"""Characters of what a peer said in an error message of ours; its own words are in the details."""

MAX_COOKIES = 50
MAX_COOKIE = 4 * KIB
"""Cookies of one connection, and bytes of each; others are not kept."""

MAX_LIST_BYTES = MIB
"""A list in an answer; how many more there are is said as ``more``."""

MAX_RESULTS = 1000
MAX_RESULTS_GONE = 1000
"""Long results that a session keeps, and of how many that are gone it knows that they were."""

MAX_PREVIEW_BYTES = KIB
"""Of the beginning and the end of a long result, together, in its preview."""

MAX_DESCRIPTION = 10_000
"""Characters of a tool's description in which words are looked for."""

MAX_OUR_INSTRUCTIONS = 1500
"""Bytes of what a client is told as it connects, with the names of the servers."""

MAX_PURPOSE = 300
"""Characters of what a server is good for, in a list of servers."""

MAX_FIRST_SENTENCE = 500
"""Characters of the first sentence about a tool, which is all that a summary has."""

MAX_METRIC_SERVERS = 100
MAX_METRIC_TOOLS = 1000
MAX_METRIC_LABEL = 100
"""Servers that are not configured, and tools, that stand by themselves in what monitors read, and
characters of their names."""

MAX_LOG_FIELD = 2 * KIB
MAX_LOG_TRACEBACK = 16 * KIB
"""Characters of one field of a line of the log, and of its traceback; what is longer keeps its
beginning and its end."""
