"""The lists of a backend: fetched once for all who ask, and never older than what was told."""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from mcp import MCPError
from mcp_types import METHOD_NOT_FOUND

from catalog_model import ALLOWED, PATIENCE, Fetch, Peer, Reader, current_reader
from emceepee_trio.backend.catalogue.catalog import Catalog, Entries, List
from emceepee_trio.backend.connections.witness import Unanswered
from emceepee_trio.errors import ExecutionFailed
from trio_machine import TrioMachine, more

NAMES: list[List] = ["tools", "resource_templates", "prompts"]
"""One that is filtered, one that a server may not know, one that this server says it has not."""
hows = st.lists(st.sampled_from(["get", "gather", "last"]), min_size=1, max_size=3)
KEYS = {"tools": "tools", "resource_templates": "resourceTemplates"}


class Library(TrioMachine):
    def __init__(self) -> None:
        self.now = 0.0
        self.catalog = Catalog("it", (ALLOWED,))
        self.peers = [Peer(self.new_fetch)]
        self.peer: Peer | None = self.peers[0]
        """The current connection."""
        self.fetches: list[Fetch] = []
        self.readers: list[Reader] = []
        self.version = dict.fromkeys(NAMES, 0)
        """Of the server's own lists."""
        self.told = dict.fromkeys(NAMES, 0)
        """The newest that it has told of."""
        self.flight: dict[List, Fetch | None] = dict.fromkeys(NAMES)
        """What those who ask now wait for."""
        self.fresh: dict[List, float] = {}
        self.kept: dict[List, Fetch] = {}
        super().__init__()

    def new_fetch(self, name: List, peer: Peer) -> Fetch:
        reader = current_reader.get()
        fetch = Fetch(len(self.fetches), name, peer, reader, self.told[name])
        self.fetches.append(fetch)
        reader.fetches.append(fetch)
        return fetch

    # -- what can be chosen

    @property
    def waiting(self) -> list[Reader]:
        return [reader for reader in self.readers if reader.fate is None]

    @property
    def asked(self) -> list[Fetch]:
        return [fetch for peer in self.peers for fetch in peer.fetches]

    # -- what should follow

    def wait_on(self, readers: list[Reader], begun: int) -> None:
        """These ask now, for one list; *begun* is how many fetches there were before."""
        for reader in [r for r in readers if r.peer and r.peer.is_over and r.fate is not None]:
            # Its connection went while it waited for the fetch of another.
            self.check(reader, "refused", Unanswered())
            readers.remove(reader)
        if not readers:
            assert len(self.fetches) == begun
            return
        name = readers[0].name
        if name == "prompts":  # a capability that is missing is not asked for
            assert len(self.fetches) == begun
            for reader in readers:
                self.check(reader, "answered", [])
        elif (flight := self.flight[name]) is not None:
            assert len(self.fetches) == begun
            for reader in readers:
                reader.waits_for = flight
        elif self.fresh.get(name, -1) > self.now:
            assert len(self.fetches) == begun
            for reader in readers:
                self.check(reader, "answered", self.kept[name].entries)
        else:
            (fetch,) = self.fetches[begun:]
            assert fetch.reader in readers
            assert fetch.peer in self.peers
            self.flight[name] = fetch
            for reader in readers:
                reader.waits_for = fetch

    def over(self, fetch: Fetch) -> list[Reader]:
        """It is over; who waited for it."""
        if self.flight[fetch.name] is fetch:
            self.flight[fetch.name] = None
        return [r for r in self.readers if r.waits_for is fetch and r.fate != "cancelled"]

    def given_up(self, *readers: Reader) -> None:
        """What they fetched for others is begun again by one of those, if any is left."""
        for reader in readers:
            fetch = reader.waits_for
            reader.waits_for = None
            if fetch is not None and fetch.reader is reader and fetch.asked is None:
                self.abandoned.append(fetch)

    abandoned: list[Fetch]

    def take_over(self, begun: int) -> None:
        by_name: dict[List, list[Reader]] = {}
        for fetch in self.abandoned:
            by_name.setdefault(fetch.name, [])
            by_name[fetch.name] += [r for r in self.over(fetch) if r.waits_for is fetch]
        for readers in by_name.values():
            new = [f for f in self.fetches[begun:] if readers and f.name == readers[0].name]
            self.wait_on(readers, len(self.fetches) - len(new))
        self.abandoned = []

    def check(self, reader: Reader, fate: str, expected: Any) -> None:
        reader.waits_for = None
        if reader.how == "gather":
            assert reader.fate == "answered"
            if fate == "answered":
                assert reader.got == {"found": [{"server": "it", **e} for e in expected]}
            else:
                self.check_old(reader)
        elif fate == "answered":
            assert reader.fate == fate
            assert reader.got == expected
        else:
            assert reader.fate == fate
            assert type(reader.got) is type(expected)
            assert str(reader.got) == str(expected)

    def check_old(self, reader: Reader) -> None:
        """What a list over all says of a server that does not: the old entries, marked so."""
        kept = self.kept.get(reader.name)
        old = [] if kept is None else kept.entries
        assert reader.got["found"] == [{"server": "it", "stale": True, **e} for e in old]
        assert len(reader.got["errors"]) == 1

    # -- what happens

    @initialize(name=st.sampled_from(NAMES[:2]), hows=hows)
    def somebody_asks_first(self, name: List, hows: list[str]) -> None:
        self.somebody_asks(name, hows)

    @rule(name=st.sampled_from([*NAMES[:2] * 3, NAMES[2]]), hows=hows)
    def somebody_asks(self, name: List, hows: list[str]) -> None:
        begun, came = len(self.fetches), []
        for how in hows:
            if self.peer is None and how != "gather":
                continue  # they wait for a connection, elsewhere
            came.append(Reader(name, how, self.peer, self.now + PATIENCE, self.told[name]))

        def start() -> None:
            for reader in came:
                self.nursery.start_soon(reader.run, self.catalog)

        self.readers += came
        self.do_sync(start)
        if self.peer is None:
            for reader in came:
                self.check_old(reader)
            assert len(self.fetches) == begun
            return
        # Such a reader wants no more than that nothing was told since.
        easy = [r for r in came if r.how == "last" and name in self.fresh]
        for reader in easy:
            self.check(reader, "answered", self.kept[name].entries)
        self.wait_on([r for r in came if r not in easy], begun)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def somebody_gives_up(self, data: st.DataObject) -> None:
        reader = data.draw(st.sampled_from(self.waiting))
        begun = len(self.fetches)
        self.do_sync(reader.scope.cancel)
        assert reader.fate == "cancelled"
        self.abandoned = []
        self.given_up(reader)
        self.take_over(begun)

    @rule(name=st.sampled_from(NAMES[:2]), is_told=st.booleans())
    def a_list_changes(self, name: List, is_told: bool) -> None:
        self.version[name] += 1
        if is_told:
            self.tell(name)
            self.do_sync(partial(self.catalog.stale, name))

    def tell(self, name: List) -> None:
        self.told[name] = self.version[name]
        self.fresh.pop(name, None)
        self.flight[name] = None

    @precondition(lambda self: self.asked)
    @rule(data=st.data(), hows=hows)
    def a_list_changes_while_it_comes(self, data: st.DataObject, hows: list[str]) -> None:
        fetch = data.draw(st.sampled_from(self.asked))
        self.a_list_changes(fetch.name, is_told=True)
        self.somebody_asks(fetch.name, hows)

    @precondition(lambda self: self.asked)
    @rule(
        data=st.data(),
        ttls=st.lists(st.sampled_from([None, 0, 3000, 20_000]), min_size=1, max_size=3),
        is_all=st.sampled_from([True, True, True, False]),
    )
    def pages_come(self, data: st.DataObject, ttls: list[int | None], is_all: bool) -> None:
        fetch = data.draw(st.sampled_from(self.asked))
        for number, ttl_ms in enumerate(ttls, start=1):
            self.page(fetch, ttl_ms, is_last=is_all and number == len(ttls))
        if is_all:
            self.complete(fetch)

    def page(self, fetch: Fetch, ttl_ms: int | None, *, is_last: bool) -> None:
        version = self.version[fetch.name]
        names = [f"{word}-{fetch.number}-{fetch.pages}" for word in ("ok", "no")]
        items: Entries = [{"name": name, "version": version} for name in names]
        page: dict[str, Any] = {KEYS[fetch.name]: items}
        if ttl_ms is not None:
            page["ttlMs"] = ttl_ms
            fetch.ttl = min(fetch.ttl, ttl_ms / 1000)
        fetch.pages += 1
        fetch.entries += items[:1] if fetch.name == "tools" else items
        if not is_last:
            page["nextCursor"] = fetch.cursor
        assert fetch.asked is not None
        self.do_sync(partial(fetch.asked.set, page))

    def complete(self, fetch: Fetch) -> None:
        if self.flight[fetch.name] is fetch:
            self.fresh[fetch.name] = self.now + fetch.ttl
            self.kept[fetch.name] = fetch
        elif fetch.name not in self.fresh:  # overtaken, and still newer than nothing
            self.kept[fetch.name] = fetch
        for reader in self.over(fetch):
            self.check(reader, "answered", fetch.entries)

    @precondition(lambda self: self.asked)
    @rule(data=st.data(), how=st.sampled_from(["error", "circle", "unknown"]))
    def a_server_refuses(self, data: st.DataObject, how: str) -> None:
        fetch = data.draw(st.sampled_from(self.asked))
        assert fetch.asked is not None
        error = MCPError(code=1, message=f"no {fetch.number}")
        if how == "unknown":
            error = MCPError(code=METHOD_NOT_FOUND, message="no")
        if how == "circle" and fetch.pages:
            page = {"nextCursor": fetch.cursor}
            self.do_sync(partial(fetch.asked.set, page))
            for reader in self.over(fetch):
                assert reader.how == "gather" or isinstance(reader.got, ExecutionFailed)
                self.check(reader, "refused", reader.got)
            return
        self.do_sync(partial(fetch.asked.fail, error))
        if how == "unknown" and fetch.name == "resource_templates":
            fetch.entries, fetch.ttl = [], float("inf")
            self.complete(fetch)
            return
        for reader in self.over(fetch):
            self.check(reader, "refused", error)

    @precondition(lambda self: self.peer)
    @rule(is_back=st.booleans())
    def the_connection_is_lost(self, is_back: bool) -> None:
        assert self.peer is not None
        self.end(self.peer)
        self.peer = None
        if is_back:
            self.it_is_connected()

    @rule()
    def it_is_connected(self) -> None:
        """Again, or another connection in place of one that works: the old one goes later."""
        self.peer = Peer(self.new_fetch)
        self.peers.append(self.peer)
        for name in NAMES:
            self.tell(name)
        self.do_sync(self.catalog.all_stale)

    @precondition(lambda self: any(p is not self.peer and not p.is_over for p in self.peers))
    @rule()
    def the_old_connection_goes(self) -> None:
        self.end(next(p for p in self.peers if p is not self.peer and not p.is_over))

    def end(self, peer: Peer) -> None:
        fetches = [*peer.fetches]
        self.do_sync(peer.end)
        for fetch in fetches:
            for reader in self.over(fetch):
                assert reader.how == "gather" or isinstance(reader.got, MCPError)
                self.check(reader, "refused", reader.got)

    @rule(seconds=st.sampled_from([1, 3, PATIENCE, 20]))
    def time_passes(self, seconds: int) -> None:
        for _ in range(seconds):
            begun = len(self.fetches)
            self.pass_time(1)
            self.now += 1
            late = [r for r in self.readers if r.how == "gather" and r.waits_for]
            late = [r for r in late if r.until <= self.now]
            self.abandoned = []
            for reader in late:
                self.check_old(reader)
            self.given_up(*late)
            self.take_over(begun)

    # -- what must hold

    @invariant()
    def who_waits_waits_for_something(self) -> None:
        for reader in self.readers:
            assert (reader.fate is None) == (reader.waits_for is not None)
            if reader.waits_for is not None:
                assert reader.waits_for in self.asked
        # Nor does anything go on that nobody wants.
        for fetch in self.asked:
            assert fetch.reader.waits_for is fetch

    @invariant()
    def a_list_is_fetched_once_at_a_time(self) -> None:
        for name in NAMES:
            newest = [f for f in self.asked if f.name == name and f is self.flight[name]]
            assert len(newest) == (self.flight[name] is not None)

    @invariant()
    def nobody_is_told_what_is_older_than_they_know(self) -> None:
        for reader in self.readers:
            if reader.fate == "answered":
                entries = reader.got["found"] if reader.how == "gather" else reader.got
                for entry in entries:
                    assert entry["version"] >= reader.needs or entry.get("stale")
                    assert entry["name"].startswith("ok") or reader.name != "tools"

    @invariant()
    def what_is_remembered_is_what_came_last(self) -> None:
        for name in NAMES[:2]:
            kept = self.kept.get(name)
            assert self.catalog.kept(name) == (None if kept is None else kept.entries)

    @invariant()
    def what_is_over_is_forgotten(self) -> None:
        assert len(self.catalog._flights) == sum(f is not None for f in self.flight.values())
        assert len(self.nursery.child_tasks if self.readers else ()) == len(self.waiting)


TestLibrary = Library.TestCase
TestLibrary.settings = more(8)
