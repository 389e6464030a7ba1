"""The table that decides what becomes of a backend: all of it, and walks through it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.backend.children.process import Exit
from emceepee_trio.backend.lifecycle import IDLE, RECONNECT, TODO, Lifecycle, Story, Todo
from emceepee_trio.backend.retries import Retries
from emceepee_trio.config import Retry
from emceepee_trio.model import events
from emceepee_trio.model.states import (
    BACKEND,
    LINK,
    BackendState,
    Cause,
    ImpossibleStep,
    LinkState,
    follow,
)

TRIES, DELAY = 2, 4.0
AGAIN = Retry(base_delay_ms=round(DELAY * 1000), max_attempts=TRIES, jitter=0)
NEVER = Retry(enabled=False)
CODE, SIGNAL = Exit(7, None), Exit(None, "SIGKILL")


def new(
    retry: Retry = AGAIN, *, program: bool = True, lazy: bool = False, trial: bool = False
) -> Lifecycle[object]:
    return Lifecycle("it", program, lazy, Retries(retry, lambda: 0.5), trial)


# -- the table -------------------------------------------------------------------------------------


def works(life: Lifecycle[object]) -> None:
    life.works(life.current, 1, {}, "2025-11-25")


def loses(life: Lifecycle[object], why: str | None = None) -> None:
    life.loses(life.current, 0, 0, why)


def loses_beside(life: Lifecycle[object], why: str | None = None) -> None:
    life.beside = object()
    loses(life, why)


def spent(act: Callable[[Lifecycle[object]], None]) -> Callable[[Lifecycle[object]], None]:
    """*act*, when all tries are."""

    def acts(life: Lifecycle[object]) -> None:
        life.tries.attempt = TRIES
        act(life)

    return acts


def fails(life: Lifecycle[object]) -> None:
    life.fails(0, final=False)


def on(cause: Cause) -> Callable[[Lifecycle[object]], None]:
    return lambda life: life.happens(cause)


def is_wanted(life: Lifecycle[object]) -> None:
    life.wants()
    life.waited()


HAPPENINGS: dict[str, Callable[[Lifecycle[object]], None]] = {
    "is disabled": on(Cause.DISABLED),
    "is recalled": on(Cause.RECALLED),
    "is due": Lifecycle.waited,
    "is wanted": is_wanted,
    "works": works,
    "fails": fails,
    "fails in vain": lambda life: life.fails(0, final=True),
    "fails too often": spent(fails),
    "is unwell": on(Cause.UNWELL),
    "is well": on(Cause.WELL),
    "is lost": loses,
    "is lost too often": spent(loses),
    "is lost beside a try": loses_beside,
    "is left": lambda life: loses(life, RECONNECT),
    "is replaced": lambda life: loses_beside(life, RECONNECT),
    "is unused": lambda life: loses(life, IDLE),
    "is gone": Lifecycle.ended,
}

N, Z, G, C = (  # columns of a table
    BackendState.NOT_CONNECTED,
    BackendState.IDLE,
    BackendState.CONNECTING,
    BackendState.CONNECTED,
)
D, R, E, X, OFF = (
    BackendState.DEGRADED,
    BackendState.RECONNECTING,
    BackendState.ERROR,
    BackendState.DISCONNECTED,
    BackendState.DISABLED,
)
no = None

WHOLE: dict[str, tuple[BackendState | None, ...]] = {
    #                       N    Z    G    C    D    R    E    X    OFF
    "is disabled":          (OFF, no,  no,  no,  no,  no,  no,  no,  no),
    "is recalled":          (Z,   no,  no,  no,  no,  no,  no,  no,  no),
    "is due":               (G,   no,  no,  no,  no,  G,   no,  no,  no),
    "is wanted":            (G,   G,   no,  no,  no,  G,   G,   no,  no),
    "works":                (no,  no,  C,   no,  no,  no,  no,  no,  no),
    "fails":                (no,  no,  R,   R,   R,   no,  no,  no,  no),
    "fails in vain":        (no,  no,  E,   E,   E,   no,  no,  no,  no),
    "fails too often":      (no,  no,  E,   E,   E,   no,  no,  no,  no),
    "is unwell":            (no,  no,  no,  D,   no,  no,  no,  no,  no),
    "is well":              (no,  no,  no,  no,  C,   no,  no,  no,  no),
    "is lost":              (no,  no,  R,   R,   R,   no,  no,  no,  no),
    "is lost too often":    (no,  no,  E,   E,   E,   no,  no,  no,  no),
    "is lost beside a try": (no,  no,  no,  G,   G,   no,  no,  no,  no),
    "is left":              (no,  no,  no,  G,   G,   no,  no,  no,  no),
    "is replaced":          (no,  no,  no,  G,   G,   no,  no,  no,  no),
    "is unused":            (no,  no,  no,  Z,   Z,   no,  no,  no,  no),
    "is gone":              (X,   X,   X,   X,   X,   X,   X,   no,  OFF),
}  # fmt: skip
"""Where each happening leads from each state; nowhere: it is impossible. What is lost while it is
being connected, and what fails while it is connected, are bugs of ours that came in between."""
COLUMNS = (N, Z, G, C, D, R, E, X, OFF)

WAYS: dict[BackendState, tuple[str, ...]] = {
    N: (),
    Z: ("is recalled",),
    G: ("is wanted",),
    C: ("is wanted", "works"),
    D: ("is wanted", "works", "is unwell"),
    R: ("is wanted", "fails"),
    E: ("is wanted", "fails in vain"),
    X: ("is gone",),
    OFF: ("is disabled",),
}


def in_state(state: BackendState, retry: Retry = AGAIN, **how: bool) -> Lifecycle[object]:
    life = new(retry, **how)
    for each in WAYS[state]:
        HAPPENINGS[each](life)
        if life.todo is Todo.OPEN:
            life.begins(object())
    assert life.state is state
    return life


def cells() -> Iterator[tuple[BackendState, str, BackendState | None]]:
    for happening, row in WHOLE.items():
        for state, target in zip(COLUMNS, row, strict=True):
            yield state, happening, target


def test_the_whole_table_is_walked() -> None:
    assert {*COLUMNS} == {*BackendState}
    assert WHOLE.keys() == HAPPENINGS.keys()
    drawn = {(arrow.source, arrow.target) for arrow in BACKEND.steps}
    assert drawn == {(a, b) for a, _, b in cells() if b not in {None, a}}


@pytest.mark.parametrize(("state", "happening", "target"), [*cells()], ids=str)
def test_what_happens_leads_where_the_table_says_or_cannot_happen(
    state: BackendState, happening: str, target: BackendState | None
) -> None:
    life = in_state(state)
    if target is None:
        with pytest.raises(ImpossibleStep):
            HAPPENINGS[happening](life)
        assert life.state is state
    else:
        HAPPENINGS[happening](life)
        assert life.state is target
    assert (life.next_try is not None) == (life.state is BackendState.RECONNECTING)


@pytest.mark.parametrize("state", BackendState)
def test_a_cause_leads_to_one_state(state: BackendState) -> None:
    arrows = [arrow for arrow in BACKEND.steps if arrow.source is state]
    assert len({arrow.cause for arrow in arrows}) == len(arrows)
    assert {arrow.cause for arrow in BACKEND.steps} == {cause.value for cause in Cause}
    for cause in Cause:
        found = [arrow.target for arrow in arrows if arrow.cause == cause.value]
        if found:
            assert [follow(BACKEND, state, cause)] == found
        else:
            with pytest.raises(ImpossibleStep):
                follow(BACKEND, state, cause)


def test_each_state_says_what_is_to_be_done() -> None:
    assert {*TODO} == {*BackendState}
    for state in BackendState:
        life = in_state(state)
        assert life.todo is TODO[state]
        assert (life.todo is Todo.END) == BACKEND.is_final(state)


@pytest.mark.parametrize("state", BackendState)
@pytest.mark.parametrize("happening", ["is lost", "is left", "is lost beside a try"])
def test_who_is_left_opens_nothing_and_tells_no_plan(state: BackendState, happening: str) -> None:
    life = in_state(state)
    assert life.leaves("removed")
    assert not life.leaves("session ended")
    assert life.leaving == "removed"
    HAPPENINGS[happening](life)
    assert life.state is state
    assert life.todo is Todo.END
    assert life.follows(worked=True, pid=1, end=CODE, now=0) == ()


def test_what_has_a_time_is_due_then() -> None:
    assert new().due < 0
    assert new(lazy=True).due == float("inf")
    for state in (Z, E):
        assert in_state(state).due == float("inf")
    life = in_state(R)
    assert life.due == life.next_try == DELAY
    assert life.delay_ms(1) == 3000


@pytest.mark.parametrize("state", [state for state in BackendState if TODO[state] is Todo.WAIT])
def test_what_is_wanted_is_due_at_once(state: BackendState) -> None:
    life = in_state(state)
    life.wants()
    assert life.due < 0
    life.waited()
    assert life.state is G
    assert life.is_wanted  # who wants it waits for what comes of this try
    life.begins(object())
    fails(life)
    assert not life.is_wanted


@pytest.mark.parametrize("retry", [AGAIN, NEVER], ids=["again", "never"])
@pytest.mark.parametrize("program", [True, False])
def test_what_follows_is_told(retry: Retry, program: bool) -> None:
    life = in_state(C, retry, program=program)
    loses(life)
    told = life.follows(worked=True, pid=1, end=CODE, now=0)
    if retry is NEVER:
        assert told == ()  # nobody tries, so no try has failed
    elif program:
        assert told == (events.Restarting("it", 1, 4000, 1, 7, None),)
    else:
        assert told == (events.ServerReconnecting("it", 1, 4000),)
    life.happens(Cause.WANTED)
    life.begins(link := object())
    told = life.works(link, 2 if program else None, {}, "x")
    restarts = program and retry is AGAIN
    assert told == ((events.Restarted("it", 2, 1),) if restarts else ())  # and then its return


def test_the_last_failure_is_told_but_not_of_what_is_on_trial() -> None:
    for trial in (False, True):
        life = in_state(E, trial=trial)
        told = life.follows(worked=False, pid=1, end=SIGNAL, now=0)
        assert told == (() if trial else (events.RestartFailed("it", 1, 1, None, "SIGKILL"),))
    life = in_state(G, trial=True)
    fails(life)
    assert life.state is E  # its first try was its last
    life = in_state(C, trial=True)
    loses(life)
    life.happens(Cause.DUE)
    life.begins(object())
    fails(life)
    assert life.state is R  # it has worked


def test_a_bug_ends_what_there_was_and_what_waits_goes_on_to_wait() -> None:
    for state in BackendState:
        life = in_state(state)
        assert life.crashed() == (state in {G, C, D})
        assert life.current is life.beside is None


def test_a_try_beside_takes_the_place_of_what_it_replaces() -> None:
    life = in_state(C, program=False)
    old = life.current
    life.begins(beside := object())
    assert (life.current, life.beside) == (old, beside)
    life.gave_up(beside)
    assert (life.current, life.beside) == (old, None)
    life.begins(beside)
    loses(life, RECONNECT)
    assert (life.current, life.beside, life.before) == (beside, None, old)
    life.gave_up(beside)
    assert life.current is beside


# -- one connection --------------------------------------------------------------------------------

TELLINGS: dict[str, Callable[[Story], object]] = {
    "works": Story.works,
    "is left": lambda story: story.leaves("removed"),
    "is over": Story.loses,
    "is told": lambda story: story.told(None, "x"),
    "ends": lambda story: story.ended(None),
}
P, GU, W, V, T, EN = LinkState  # in their order
CONNECTIONS: dict[str, tuple[LinkState | None, ...]] = {
    #           P   GU  W   V   T   EN
    "works":   (W,  no, no, no, no, no),
    "is left": (GU, GU, W,  V,  T,  EN),
    "is over": (P,  GU, V,  V,  T,  EN),
    "is told": (no, no, no, T,  no, no),
    "ends":    (EN, EN, no, no, EN, no),
}  # fmt: skip
"""Where each leads; one that is the same is nothing that happens."""
THERE: dict[LinkState, tuple[str, ...]] = {
    P: (),
    GU: ("is left",),
    W: ("works",),
    V: ("works", "is over"),
    T: ("works", "is over", "is told"),
    EN: ("ends",),
}


@pytest.mark.parametrize("state", LinkState)
@pytest.mark.parametrize("telling", TELLINGS)
def test_a_connection_follows_its_table(state: LinkState, telling: str) -> None:
    story = Story("it")
    for each in THERE[state]:
        TELLINGS[each](story)
    assert story.state is state
    target = CONNECTIONS[telling][[*LinkState].index(state)]
    if target is None:
        with pytest.raises(ImpossibleStep):
            TELLINGS[telling](story)
    else:
        TELLINGS[telling](story)
        assert story.state is target
        assert target is state or target in LINK.follows(state)


# -- walks -----------------------------------------------------------------------------------------


@attrs.define(eq=False)
class Link:
    """As much of one as its story needs."""

    story: Story
    pid: int | None
    end: Exit | None = None
    worked: bool = False
    is_over: bool = False
    """Nothing but its end is to come."""


@attrs.define(eq=False)
class Shell:
    """Reports and publishes as a backend and its links do, in whatever order it is told to."""

    program: bool
    life: Lifecycle[Link]
    told: list[events.Happening] = attrs.field(factory=list)
    links: list[Link] = attrs.field(factory=list)
    lost: int = 0
    """Connections, but for those that nobody needed."""
    trying: Link | None = None
    """What the task of the backend is busy with."""
    pids: Iterator[int] = attrs.field(factory=lambda: itertools.count(1))
    now: float = 0.0

    def open(self) -> Link:
        assert self.life.leaving is None, "nothing is opened any more"
        link = Link(Story("it"), next(self.pids) if self.program else None)
        self.life.begins(link)
        self.links.append(link)
        self.told += link.story.opened(link.pid, None)
        return link

    def go_on(self, wanted: bool) -> None:
        """Its task does what there is to do."""
        if self.trying is not None:
            return
        if self.life.todo is Todo.WAIT:
            if not wanted and self.life.due == float("inf"):
                return
            if wanted:
                self.life.wants()
            self.now += max(0, self.life.due - self.now)
            self.life.waited()
        if self.life.todo is Todo.OPEN:
            self.trying = self.open()

    def works(self, link: Link) -> None:
        if link.story.state is not LinkState.OPENING or link.is_over:
            return
        link.story.works()
        link.worked = True
        if link is self.life.beside and self.life.current is not None:
            self.leave(self.life.current, RECONNECT)
        self.told += self.life.works(link, link.pid, {}, "x")

    def ends(self, link: Link, died: bool) -> None:
        """Of itself."""
        if link.is_over:
            return
        if died and link.pid is not None:
            link.end = CODE
        link.is_over = True
        link.story.transport_ended(by_itself=link.end is not None)
        self.lose(link)

    def lose(self, link: Link) -> None:
        if link.story.loses():
            self.life.loses(link, self.now, 0, link.story.leaving)
            self.lost += link.story.leaving != IDLE
            if link.story.is_due:
                self.told += link.story.told(link.end, "lost")

    def leave(self, link: Link, why: str) -> None:
        link.story.leaves(why)
        link.is_over = True
        self.lose(link)

    def finish(self, link: Link) -> None:
        """Nothing of it is left."""
        if not link.is_over:
            return
        if link.pid is not None and link.end is None:
            link.end = SIGNAL
        self.lose(link)
        if link.story.is_untold:
            self.told += link.story.told(link.end, "lost")
        self.told += link.story.ended(link.end)
        self.links.remove(link)
        self.life.gave_up(link)
        if link is self.trying and (self.life.current is link or not self.links):
            self.trying = None
            if not link.worked and self.life.leaving is None:
                self.life.fails(self.now, final=False)
            self.told += self.life.follows(
                worked=link.worked, pid=link.pid, end=link.end, now=self.now
            )
        elif link is self.trying:
            self.trying = self.life.current  # that was beside it

    def reconnect(self) -> None:
        life = self.life
        if life.todo is Todo.LIVE and life.current is not None and life.beside is None:
            if self.program:
                self.leave(life.current, RECONNECT)
            else:
                self.open()

    def rest(self) -> None:
        if self.program and self.life.todo is Todo.LIVE and self.life.current is not None:
            self.leave(self.life.current, IDLE)

    def remove(self) -> None:
        if self.life.leaves("removed"):
            for link in (self.life.current, self.life.beside):
                if link is not None and link in self.links:
                    self.leave(link, "removed")

    def end(self) -> None:
        self.remove()
        for link in [*self.links]:
            self.finish(link)
        self.life.ended()


ACTS = st.tuples(
    st.sampled_from(
        [
            *["go on"] * 3,
            "works",
            "works",
            "ends",
            *["finish"] * 2,
            *["reconnect", "rest", "well", "remove"],
        ]
    ),
    st.integers(0, 1),
    st.booleans(),
)


def walk(shell: Shell, acts: list[tuple[str, int, bool]]) -> None:
    for act, which, how in acts:
        link = shell.links[which % len(shell.links)] if shell.links else None
        match act:
            case "go on":
                shell.go_on(how)
            case "works" if link is not None:
                shell.works(link)
            case "ends" if link is not None:
                shell.ends(link, how)
            case "finish" if link is not None:
                shell.finish(link)
            case "reconnect":
                shell.reconnect()
            case "rest":
                shell.rest()
            case "remove" if how:
                shell.remove()
            case "well" if shell.life.todo is Todo.LIVE:
                is_well = shell.life.state is BackendState.CONNECTED
                shell.life.happens(Cause.UNWELL if is_well else Cause.WELL)
            case _:
                pass


shells = st.builds(
    lambda program, retry, lazy: Shell(
        program, Lifecycle("it", program, lazy, Retries(retry, lambda: 0.5))
    ),
    st.booleans(),
    st.sampled_from([AGAIN, AGAIN, NEVER]),
    st.booleans(),
)


@given(shells, st.lists(ACTS, max_size=60))
def test_whatever_happens_each_thing_is_told_once_and_in_order(
    shell: Shell, acts: list[tuple[str, int, bool]]
) -> None:
    walk(shell, acts)
    shell.end()
    assert shell.life.state is BackendState.DISCONNECTED
    assert shell.links == []
    told = shell.told
    assert len([each for each in told if isinstance(each, events.ServerDisconnected)]) == shell.lost
    running: set[int] = set()
    restarting = False
    for each in told:
        match each:
            case events.ProcessStarted(pid=pid):
                assert not running, "the one before is gone by then"
                running.add(pid)
            case events.ProcessStopped(pid=pid) | events.ProcessCrashed(pid=pid):
                running.remove(pid)
            case events.Restarting() | events.ServerReconnecting():
                assert not running
                assert not restarting or isinstance(each, events.Restarting)
                restarting = isinstance(each, events.Restarting)
            case events.Restarted(pid=pid):
                assert restarting
                assert pid in running
                restarting = False
            case events.RestartFailed():
                restarting = False
            case _:
                pass
    assert not running, "it is removed when that is told"


@given(shells, st.lists(ACTS, max_size=40), st.lists(ACTS, max_size=40))
def test_who_is_removed_opens_nothing_and_only_ends_are_told(
    shell: Shell, before: list[tuple[str, int, bool]], after: list[tuple[str, int, bool]]
) -> None:
    walk(shell, before)
    shell.remove()
    told, last = len(shell.told), next(shell.pids)
    walk(shell, after)
    shell.end()
    assert next(shell.pids) == last + 1
    ends = (events.ServerDisconnected, events.ProcessStopped, events.ProcessCrashed)
    assert all(isinstance(each, ends) for each in shell.told[told:])
