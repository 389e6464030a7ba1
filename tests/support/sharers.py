"""Sessions of Ada, and one of Bob, that share a scripted server each; what they are told."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio
from trio.testing import wait_all_tasks_blocked

from connected import server
from emceepee_trio.backend.sharing.hub import Hub
from emceepee_trio.backend.sharing.lease import Lease
from emceepee_trio.config import Config, Server
from emceepee_trio.errors import ToolError
from emceepee_trio.model.json.intake import finished
from emceepee_trio.model.states import QuestionState
from emceepee_trio.session.manager import SessionManager, open_sessions
from emceepee_trio.session.session import Session
from emceepee_trio.tools import TOOLBOX
from emceepee_trio.tools.common.registry import Request
from memory_peers import Peer, Peers
from principals import data, told

FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
ELICITATION, SAMPLING = "elicitation/create", "sampling/createMessage"
SPLIT = ["share_conflict"]


def shared(**entry: Any) -> Server:
    """A program that sessions share."""
    return attrs.evolve(server(), scope="principal", **entry)


def at_url(**entry: Any) -> Server:
    return Server("x", url="http://x/", era="handshake", scope="principal", **entry)


def modern(**entry: Any) -> Server:
    return attrs.evolve(at_url(**entry), era="modern")


def result(text: str) -> dict[str, Any]:
    said = {"content": [{"type": "text", "text": text}], "isError": False}
    return {**said, "resultType": "complete"}


@attrs.define(eq=False)
class Sharer:
    """One session, as its client has it."""

    session: Session
    manager: SessionManager
    nursery: trio.Nursery
    got: dict[str, Any] = attrs.field(factory=dict)
    """What calls came to, by their tools: the text of a result, or the error."""

    @property
    def lease(self) -> Lease:
        lease = self.session.backends["x"]
        assert isinstance(lease, Lease)
        return lease

    async def use(self, tool: str, /, **arguments: Any) -> Any:
        """A tool of ours: its result, or the error."""
        try:
            reply = await TOOLBOX.get(tool).call(Request(self.session, self.manager), arguments)
        except ToolError as error:
            return error
        return reply.result

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """A tool of the server; the text of its result, or the error."""
        said = await self.use("execute_tool", server="x", tool=tool, **arguments)
        if isinstance(said, Mapping):
            said = said["content"][0]["text"]
        self.got[tool] = said
        return said

    def begin(self, tool: str, /, **arguments: Any) -> None:
        async def call() -> None:
            await self.call(tool, **arguments)

        self.nursery.start_soon(call)

    async def follow(self, uri: str) -> Any:
        return await self.use("subscribe_resource", server="x", uri=uri)

    async def forget(self, uri: str) -> Any:
        return await self.use("unsubscribe_resource", server="x", uri=uri)

    async def end(self) -> None:
        """Wait until nothing of the session is left."""
        leases = list(self.session.backends.values())
        self.manager.end(self.session, "over")
        for lease in leases:
            await lease.ended.wait()

    @property
    def told(self) -> list[str]:
        """Types of all events of the server."""
        return told(self.session)

    def data(self, event_type: str) -> list[dict[str, Any]]:
        return data(self.session, event_type)

    @property
    def logs(self) -> list[Any]:
        found = self.session.buffers.take_logs(lambda _: True, None, 100, clear=False)
        return [entry.data for entry in finished(found)[0]]

    @property
    def notices(self) -> list[Any]:
        """Params of notifications, oldest first."""
        return [said.get("params") for said in self.data("notification")]

    @property
    def questions(self) -> list[Any]:
        """Messages of those that are open."""
        open_ = self.session.questions
        asked = [*open_.open("elicitation"), *open_.open("sampling")]
        return [q.params.get("message", q.params.get("messages")) for q in asked]

    def answer(self, **content: Any) -> None:
        """The only open form."""
        (question,) = self.session.questions.open("elicitation")
        answer = {"action": "accept", "content": content}
        self.session.questions.take(question, QuestionState.ACCEPTED, answer)


@attrs.define(eq=False)
class Sharers:
    manager: SessionManager
    peers: Peers
    nursery: trio.Nursery

    async def come(self, name: str, principal: str = "ada") -> Sharer:
        session = await self.manager.ensure(name, principal)
        session.client_name = name
        return Sharer(session, self.manager, self.nursery)

    async def connected(self, *names: str) -> Sequence[Sharer]:
        found = []
        for name in names:
            sharer = await self.come(name)
            await sharer.lease.connection()
            found.append(sharer)
        await wait_all_tasks_blocked()
        return found

    async def at_work(self, *names: str, **arguments: Any) -> Sequence[Sharer]:
        """The same, each with a call of its own under way: ``of one`` and the like."""
        found = await self.connected(*names)
        for name, sharer in zip(names, found, strict=True):
            sharer.begin(f"of {name}", **arguments)
        await wait_all_tasks_blocked()
        return found

    @property
    def peer(self) -> Peer:
        """The first one."""
        return self.peers.all[0]

    def hubs(self, principal: str | None = None) -> list[Hub]:
        assert self.manager.sharing is not None
        return list(self.manager.sharing.hubs(principal))

    def answer(self, tool: str, text: str, peer: Peer | None = None) -> None:
        """The call of that tool."""
        peer = peer or self.peer
        (request_id,) = [id_ for id_, name in peer.calls.items() if name == tool]
        peer.answer(request_id, result(text))

    def ask(
        self, number: int = 1, method: str = ELICITATION, about: int | None = None, **more: Any
    ) -> None:
        """A question of the server."""
        params: dict[str, Any] = {"message": f"question {number}", "requestedSchema": FORM}
        if method == SAMPLING:
            params = {"messages": [f"question {number}"], "maxTokens": 9}
        asked = {"jsonrpc": "2.0", "id": number, "method": method, "params": params | more}
        self.peer.say(asked, about)

    def notify(self, method: str, about: int | None = None, **params: Any) -> None:
        method = f"notifications/{method}"
        self.peer.say({"jsonrpc": "2.0", "method": method, "params": params}, about)

    def log(self, text: str, level: str = "info", about: int | None = None) -> None:
        self.notify("message", about, level=level, data=text)


@asynccontextmanager
async def open_sharers(entry: Server, **settings: Any) -> AsyncGenerator[Sharers]:
    peers = Peers()
    with peers.in_place():
        async with (
            open_sessions(Config(servers=(entry,), **settings)) as manager,
            trio.open_nursery() as nursery,
        ):
            yield Sharers(manager, peers, nursery)
            nursery.cancel_scope.cancel("the test is over")
