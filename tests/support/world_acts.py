"""What may happen in the world, each without a checkpoint, so that it may happen beside others.

Each says first what those whom it concerns may become, and returns what is to be done.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from world import Held, Host, Place
from world_model import Call, Question, Timer
from world_steps import TASKS, Act, Steps


class Acts(Steps):
    # -- what there is to act on

    def tasks_known(self) -> list[tuple[Place, Call]]:
        return [(p, call) for p in self.places for call in p.life.calls if call.task_id]

    def connected(self) -> list[tuple[Place, Host]]:
        return [(place, host) for place in self.places for host in self.hosts_of(place)]

    # -- what may happen

    def answers(self, call: Call, host: Host, request_id: int) -> Act:
        call.may("returned", "answer")
        return partial(
            host.answer, request_id, {"content": [{"type": "text", "text": f"{call.key} done"}]}
        )

    def refuses(self, call: Call, host: Host, request_id: int) -> Act:
        call.may("failed", "refusal")
        return partial(host.refuse, request_id, call.key)

    def dies(self, host: Host) -> Act:
        self.loses(host)
        return host.end

    def loses(self, host: Host) -> None:
        """All who have it."""
        for place in self.sharing(host):
            place.life.loses(host.server, lambda c: self.host_of(c.key) is host, "lost")

    def withdraws(self, place: Place, question: Question) -> Act:
        host, number, _ = place.asked[question]
        question.may("cancelled", "withdrawn")
        question.is_withdrawn = True
        return partial(host.notify, "cancelled", requestId=number)

    def cancels_request(self, place: Place, held: Held) -> Act:
        if held.call is not None and held.what == "call":
            held.call.may("cancelled", "client")
        return self.touching(place, partial(self.cancel, place, held, "changed my mind"))

    def gives_up(self, place: Place, held: Held) -> Act:
        if held.call is not None and held.what == "call" and held.call.fate == "in_flight":
            held.call.may("working", "gave up")
            if len(place.life.of("working", "in_flight")) > TASKS:
                held.call.may("cancelled", "limit")
        return self.touching(place, partial(self.cancel, place, held, "request timed out"))

    def cancel(self, place: Place, held: Held, reason: str) -> None:
        held.is_cancelled = True
        place.client.cancel(held.id, reason=reason)

    def awaits(self, place: Place, timeout: int) -> Act:
        until = self.now + timeout
        start = partial(place.start, "await", "await_activity", None, until)
        return self.touching(place, partial(start, timeout_ms=timeout * 1000))

    def cancels_task(self, place: Place, call: Call) -> Act:
        if call.fate == "working":
            call.may("cancelled", "cancel_task")
        tool = partial(place.start, "reply", "cancel_task", task_id=call.task_id)
        return self.replied(place, "cancelled", call, tool)

    def responds(self, place: Place, question: Question, *, kindly: bool) -> Act:
        fate, reply = "declined", {"action": "decline"}
        tool = "respond_to_elicitation"
        if question.kind == "sampling":
            fate, tool = "completed", "respond_to_sampling"
            reply = {"content": f"{place.life.secret} sampled", "model": "m"}
        elif kindly:
            fate = "accepted"
            reply = {"action": "accept", "content": {"say": place.life.secret}}  # type: ignore[dict-item]  # JSON
        question.may(fate, "client")
        start = partial(place.start, "reply", tool, request_id=question.id, **reply)
        return self.replied(place, fate, question, start)

    def cancels_question(self, place: Place, question: Question) -> Act:
        question.may("cancelled", "client")
        kind = "elicitation" if question.kind == "elicitation" else "sampling"
        tool = f"cancel_{kind}_request"
        start = partial(place.start, "reply", tool, request_id=question.id)
        return self.replied(place, "cancelled", question, start)

    def replied(
        self, place: Place, fate: str, thing: Call | Question, start: Callable[[], Held]
    ) -> Act:
        return self.touching(place, lambda: place.replies.append((fate, thing, start())))

    def speaks(self, place: Place, host: Host, *, is_alone: bool) -> Act:
        """A server that sessions share says whose it is by the call in whose answer it speaks, or
        is heard by none of them. *is_alone*: that call does not end meanwhile."""
        key = f"{place.life.secret} notice-{next(self.numbers)} {host.number}"
        about = self.about(place, host) if is_alone else None

        def speak() -> None:
            host.notify("message", about, level="info", data=key)
            if host.notify("vendor", about, key=key) and (about is not None or not host.is_shared):
                place.life.notices.append(key)

        return speak

    def about(self, place: Place, host: Host) -> int | None:
        """A call of that session that the server has."""
        keys = [call.key for call in place.life.of("in_flight", "working")]
        return next((i for i in host.of("tools/call") if host.keys[i] in keys), None)

    def deletes_timer(self, place: Place, timer: Timer) -> Act:
        timer.may("deleted")
        return self.touching(place, partial(place.start, "look", "delete_timer", timer_id=timer.id))

    def joins_again(self, place: Place) -> Act:
        """What it waits for, it does no more; its calls become tasks."""
        for call in place.life.of("in_flight"):
            call.may("working", "rejoin")
            call.may("cancelled", "limit")
        for held in place.held:
            held.is_cancelled = True
        self.rejoining.append(place)
        return self.touching(place, partial(self.mcp.nursery.start_soon, place.client.rejoin))

    def ticks(self, seconds: float = 1) -> Act:
        for place in self.places:
            place.life.pass_to(self.now + seconds, TASKS)
        return partial(self.clock.jump, seconds)

    def ends(self, place: Place) -> Act:
        self.ending.add(place.session.id)
        return place.client.delete

    def touching(self, place: Place, act: Act) -> Act:
        place.life.used_at = self.now
        return act

    def lose(self, name: str, principal: str | None) -> None:
        for place in self.places:
            if principal in (None, place.life.principal):
                place.life.loses(name, lambda _: True, "removed")
