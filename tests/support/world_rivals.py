"""Time that passes in the world, and much that happens at once, at the last moment or before."""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from world_steps import IDLE, KEPT, Act
from world_truths import Truths

rivals = st.lists(st.integers(0, 13), min_size=2, max_size=4)
pauses = st.lists(st.integers(0, 3) | st.integers(0, 15), max_size=4)
"""In trio's ticks: what a client says takes some of them until it is heard."""


class Rivals(Truths):
    @precondition(lambda self: self.places)
    @rule(seconds=st.sampled_from([1, 1, 2, 5, KEPT, 35]))
    def time_passes(self, seconds: float) -> None:
        self.pass_until(self.now + seconds)

    def pass_until(self, end: float) -> None:
        """What is due first happens first."""
        while self.now < end:
            due = [place.life.next_due(self.now) for place in self.places]
            due += [h.until for p in self.places for h in p.held if h.until > self.now]
            self.step(self.ticks(min(end, *due) - self.now if due else end - self.now))

    @precondition(lambda self: self.places)
    @rule(data=st.data(), waits=st.sampled_from([True, True, False]))
    def nobody_does_anything_for_long(self, data: st.DataObject, waits: bool) -> None:
        """But for somebody, perhaps, who waits."""
        place = data.draw(st.sampled_from(self.places))
        if waits:
            self.step(self.awaits(place, 2 * IDLE))
        self.pass_until(self.now + IDLE + 5)

    @precondition(lambda self: self.calls("in_flight", "working"))
    @rule(
        data=st.data(),
        kinds=st.permutations(range(8)),
        count=st.integers(2, 3),
        pauses=pauses,
        is_last_moment=st.booleans(),
    )
    def a_call_has_rivals(
        self,
        data: st.DataObject,
        kinds: list[int],
        count: int,
        pauses: list[int],
        is_last_moment: bool,
    ) -> None:
        place, call = data.draw(st.sampled_from(self.calls("in_flight", "working")))
        if is_last_moment:
            self.pass_until(call.due_at - 1)
        if not call.is_open or place not in self.places:
            return
        it = next((it for it in self.running() if it[1] is call), None)
        held = next(held for held in place.calls if held.call is call)
        acts: list[Act] = []
        for kind in kinds:
            match kind:
                case 0 if it:
                    acts.append(self.answers(*it[1:]))
                case 1 if it:
                    acts.append(self.refuses(*it[1:]))
                case 2 if it:
                    acts.append(self.dies(it[2]))
                case 3 if held.is_open:
                    acts.append(self.cancels_request(place, held))
                case 4 if held.is_open:
                    acts.append(self.gives_up(place, held))
                case 5 if call.task_id:
                    acts.append(self.cancels_task(place, call))
                case 6 if held.is_open:
                    acts.append(self.joins_again(place))
                case 7:
                    acts.append(self.ticks())
            if len(acts) == count:
                break
        self.step(*acts, pauses=pauses)

    @precondition(lambda self: any(question.is_open for _, question in self.questions()))
    @rule(
        data=st.data(), kinds=st.permutations(range(6)), pauses=pauses, is_last_moment=st.booleans()
    )
    def a_question_has_rivals(
        self, data: st.DataObject, kinds: list[int], pauses: list[int], is_last_moment: bool
    ) -> None:
        open_questions = [(p, question) for p, question in self.questions() if question.is_open]
        place, question = data.draw(st.sampled_from(open_questions))
        if is_last_moment:
            self.pass_until(question.expires - 1)
        if not question.is_open or place not in self.places:
            return
        choices: list[partial[Act]] = [
            partial(self.responds, place, question, kindly=True),
            partial(self.responds, place, question, kindly=False),
            partial(self.cancels_question, place, question),
            partial(self.withdraws, place, question),
            partial(self.dies, place.asked[question][0]),
            partial(self.ticks),
        ]
        self.step(*[choices[kind]() for kind in kinds[:2]], pauses=pauses)

    @precondition(lambda self: any(t.status == "active" for _, t in self.timers()))
    @rule(data=st.data(), pauses=pauses, is_first=st.booleans())
    def a_timer_has_a_rival(self, data: st.DataObject, pauses: list[int], is_first: bool) -> None:
        active = [(place, timer) for place, timer in self.timers() if timer.status == "active"]
        place, timer = data.draw(st.sampled_from(active))
        self.pass_until(timer.fires - 1)
        if place in self.places:
            acts = [self.ticks(), self.deletes_timer(place, timer)]
            self.step(*acts[:: -1 if is_first else 1], pauses=pauses)

    @rule(data=st.data(), kinds=rivals, pauses=pauses)
    def everything_at_once(self, data: st.DataObject, kinds: list[int], pauses: list[int]) -> None:
        kinds = [kind for number, kind in enumerate(kinds) if kind != 9 or 9 not in kinds[:number]]
        acts = [act for kind in kinds if (act := self.rival(data, kind)) is not None]
        self.step(*acts, pauses=pauses)

    def rival(self, data: st.DataObject, kind: int) -> Act | None:
        def pick(found: list[Any]) -> Any:
            return data.draw(st.sampled_from(found)) if found else (None,) * 4

        if kind <= 2 and (it := pick(self.running()))[0]:
            return self.refuses(*it[1:]) if kind == 2 else self.answers(*it[1:])
        if kind == 3 and (it := pick(self.connected()))[0]:
            return self.dies(it[1])
        if kind in {4, 5}:
            held = [(p, h) for p in self.places for h in p.held if not h.is_cancelled]
            if (it := pick(held))[0]:
                return self.gives_up(*it) if kind == 4 else self.cancels_request(*it)
        if kind == 6 and (it := pick(self.tasks_known()))[0]:
            return self.cancels_task(*it)
        if kind in {7, 8} and (it := pick(self.questions()))[0]:
            if kind == 7:
                return self.responds(*it, kindly=data.draw(st.booleans()))
            return self.cancels_question(*it) if data.draw(st.booleans()) else self.withdraws(*it)
        if kind == 9:
            return self.ticks()
        if kind == 10 and (it := pick(self.connected()))[0]:
            return self.speaks(*it, is_alone=False)
        if kind == 11 and (it := pick(self.timers()))[0]:
            return self.deletes_timer(*it)
        places = [(place,) for place in self.places if place not in self.rejoining]
        if kind == 12 and (it := pick(places))[0]:
            return self.joins_again(*it)
        if kind == 13 and (it := pick(places))[0]:
            return self.ends(*it)
        return None
