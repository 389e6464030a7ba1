"""Of the cookies of a server some are kept."""

from __future__ import annotations

from collections.abc import Callable

import httpx2

from cpu_time import cpu_time
from effort import effort
from emceepee_trio.backend.http.cookies import FewCookies
from emceepee_trio.config.bounds import MAX_COOKIE, MAX_COOKIES


def client(cookies: Callable[[int], list[str]]) -> httpx2.Client:
    """Of a server that sets those with each answer, of which it is told the number."""
    answers = iter(range(1000))

    def answer(request: httpx2.Request) -> httpx2.Response:
        headers = [(b"set-cookie", value.encode("latin-1")) for value in cookies(next(answers))]
        return httpx2.Response(200, headers=headers)

    return httpx2.Client(cookies=FewCookies(), transport=httpx2.MockTransport(answer))


def sent(session: httpx2.Client) -> dict[str, str]:
    header = session.build_request("GET", "http://h/").headers.get("cookie", "")
    return dict(each.split("=", 1) for each in header.split("; ") if each)


def test_what_a_load_balancer_sets_is_sent_back_and_replaced() -> None:
    with client(lambda n: [f"node={n}; Path=/", "b=1"]) as session:
        assert sent(session) == {}
        session.get("http://h/")
        assert sent(session) == {"node": "0", "b": "1"}
        session.get("http://h/")
        assert sent(session) == {"node": "1", "b": "1"}


def test_no_more_than_some_are_kept_and_the_first_can_still_be_replaced() -> None:
    with client(lambda n: [f"first={n}", *(f"c{n}.{i}=x" for i in range(30))]) as session:
        for _ in range(5):
            session.get("http://h/")
        assert len(sent(session)) == MAX_COOKIES
        assert sent(session)["first"] == "4"


def test_none_is_longer_than_browsers_take() -> None:
    with client(lambda n: ["a=" + "x" * MAX_COOKIE, "b=x"]) as session:
        session.get("http://h/")
        assert sent(session) == {"b": "x"}


def test_what_is_not_ascii_is_not_sent_back() -> None:
    with client(lambda n: ["a=\u00e9", "b=x"]) as session:
        session.get("http://h/")
        assert sent(session) == {"b": "x"}


def test_thousands_of_them_make_an_answer_take_no_longer() -> None:
    with client(lambda n: [f"c{n}.{i}=x" for i in range(1500)]) as session:
        assert cpu_time(lambda: session.get("http://h/")) < 0.05


def test_of_thousands_only_those_are_looked_at_that_are_kept() -> None:
    def looks(count: int) -> int:
        cookies = httpx2.Cookies(FewCookies())
        headers = [("set-cookie", f"c{n}=x") for n in range(count)]
        answer = httpx2.Response(200, headers=headers, request=httpx2.Request("GET", "http://h/"))
        return effort(lambda: cookies.extract_cookies(answer))

    looks(1)
    assert looks(50 * MAX_COOKIES) < 4 * looks(MAX_COOKIES)
