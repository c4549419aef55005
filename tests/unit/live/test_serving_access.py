"""Who may see what: tokens, permissions, open paths, and what happens when the API server does not answer."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from secured_port import LOCAL, MASTERS, Answered, OutOfReach, ReviewingServer, serving

from kubesched.k8s.client.errors import AnswerLost, ApiError
from kubesched.live.serving.authentication import (
    ANONYMOUS,
    AuthenticationError,
    ReviewError,
    TokenReviews,
    UserInfo,
    bearer_token,
    review,
)
from kubesched.live.serving.server import PATH as ACCESS_PATH
from kubesched.live.serving.server import AccessDecision, AlwaysAllowedPaths, Authorizer
from kubesched.live.serving.settings import AuthorizationSettings, ServingError, ServingSettings

ALICE = {"Authorization": "Bearer alice"}


def ask(
    client: ReviewingServer | None,
    headers: dict[str, str] | None = None,
    path: str = "/version",
    settings: ServingSettings = LOCAL,
) -> Answered:
    async def run() -> Answered:
        async with serving(client=client, settings=settings) as port:
            return await port.get(path, headers)

    return asyncio.run(run())


def status(code: int, reason: str, message: str, **details: Any) -> dict[str, Any]:
    head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return {**head, "message": message, "reason": reason, **details, "code": code}


def test_a_user_whom_the_api_server_allows_gets_in() -> None:
    client = ReviewingServer()
    client.allowed = {("alice", "/version")}
    assert ask(client, ALICE).status == 200
    assert client.reviews("tokenreviews") == [{"token": "alice"}]
    assert client.reviews("subjectaccessreviews") == [
        {
            "nonResourceAttributes": {"path": "/version", "verb": "get"},
            "user": "alice",
            "groups": ["dev", "system:authenticated"],
            "extra": {"scopes": ["a", "b"]},
            "uid": "7",
        }
    ]


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        pytest.param({}, 'forbidden: User "system:anonymous" cannot get path "/version": no rule', id="nobody"),
        pytest.param(ALICE, 'forbidden: User "alice" cannot get path "/version": no rule', id="somebody"),
    ],
)
def test_who_is_not_allowed_is_told_so(headers: dict[str, str], message: str) -> None:
    answer = ask(ReviewingServer(), headers)
    assert answer.status == 403
    assert json.loads(answer.body) == status(403, "Forbidden", message, details={})
    assert answer.body == json.dumps(json.loads(answer.body), separators=(",", ":")) + "\n"
    assert answer.headers["Content-Type"] == "application/json"


def test_who_asks_by_curl_reads_it_spread_out() -> None:
    answer = ask(ReviewingServer(), {"User-Agent": "curl/8.5"})
    assert answer.body.startswith('{\n  "kind": "Status",\n')


def test_a_token_of_nobody_is_refused() -> None:
    answer = ask(ReviewingServer(), {"Authorization": "Bearer nobody"})
    assert answer.status == 401
    assert json.loads(answer.body) == status(401, "Unauthorized", "Unauthorized")


def test_a_token_of_nobody_does_not_even_open_what_is_open_to_all() -> None:
    assert ask(ReviewingServer(), {"Authorization": "Bearer nobody"}, "/healthz").status == 401


def test_privileged_groups_need_no_review() -> None:
    client = ReviewingServer()
    assert ask(client, MASTERS).status == 200
    assert client.reviews("subjectaccessreviews") == []


def test_paths_that_are_not_there_are_refused_before_they_are_missed() -> None:
    assert ask(ReviewingServer(), path="/nothing").status == 403
    answer = ask(ReviewingServer(), MASTERS, "/nothing")
    assert (answer.status, answer.body) == (404, "404 page not found\n")


def test_without_an_api_server_tokens_count_for_nothing() -> None:
    answer = ask(None, MASTERS)
    assert json.loads(answer.body)["message"] == 'forbidden: User "system:anonymous" cannot get path "/version"'
    assert ask(None, path="/healthz").status == 200


def test_an_api_server_out_of_reach_is_an_internal_error() -> None:
    answer = ask(OutOfReach(), path="/version?a=<b>")
    assert (answer.status, answer.body) == (
        500,
        'Internal Server Error: "/version?a=%3Cb%3E": connection refused: is the API server up?\n',
    )


def test_a_token_that_cannot_be_reviewed_is_refused() -> None:
    assert ask(OutOfReach(), ALICE).status == 401
    assert ask(OutOfReach(), path="/livez").status == 200


def test_open_paths_are_those_of_the_flag() -> None:
    settings = replace(LOCAL, authorization=AuthorizationSettings(always_allow_paths=("version",)))
    assert ask(ReviewingServer(), settings=settings).status == 200
    assert ask(ReviewingServer(), path="/healthz", settings=settings).status == 403


@pytest.mark.parametrize(
    ("allowed", "path", "is_open"),
    [
        pytest.param("/healthz", "/healthz", True, id="the path itself"),
        pytest.param("healthz", "/healthz", True, id="with or without a slash"),
        pytest.param("/healthz", "/healthz/ping", False, id="not what is below"),
        pytest.param("/healthz/*", "/healthz/ping", True, id="what is below, by a star"),
        pytest.param("/healthz/*", "/healthz", False, id="not what is above a star"),
        pytest.param("/", "/", True, id="the root"),
        pytest.param("/", "/metrics", False, id="nothing but the root"),
        pytest.param("*", "/metrics", True, id="everything"),
    ],
)
def test_open_paths_match(allowed: str, path: str, is_open: bool) -> None:
    assert (path in AlwaysAllowedPaths([allowed])) is is_open


def test_a_star_stands_at_the_end() -> None:
    with pytest.raises(ServingError, match=r"only trailing \* allowed in 'a\*b'"):
        AlwaysAllowedPaths(["/a*b"])


@pytest.mark.parametrize(
    ("header", "token"),
    [
        pytest.param("Bearer abc", "abc", id="a token"),
        pytest.param("  bearer abc ", "abc", id="in any case, with room around"),
        pytest.param("Bearer abc def", "abc", id="up to a space"),
        pytest.param("Bearer ", "", id="none"),
        pytest.param("Basic abc", "", id="something else"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_tokens_are_read_from_the_header(header: str, token: str) -> None:
    assert bearer_token({"Authorization": header}) == token


class Clock:
    def __init__(self) -> None:
        self.at_s = 100.0

    def __call__(self) -> float:
        return self.at_s


def test_tokens_are_asked_about_again_after_ten_seconds() -> None:
    client, clock = ReviewingServer(), Clock()
    tokens = TokenReviews(client, 10.0, clock)

    async def run() -> None:
        for at_s in (100.0, 109.9, 110.0):
            clock.at_s = at_s
            assert (await tokens.user_of("alice")).name == "alice"
            with pytest.raises(AuthenticationError, match="invalid bearer token"):
                await tokens.user_of("nobody")

    asyncio.run(run())
    assert [spec["token"] for spec in client.reviews("tokenreviews")] == ["alice", "nobody", "alice", "nobody"]


def test_permissions_are_kept_each_for_its_own_time() -> None:
    client, clock = ReviewingServer(), Clock()
    client.allowed = {("alice", "/a")}
    settings = AuthorizationSettings(authorized_ttl_s=20.0, unauthorized_ttl_s=5.0)
    authorizer = Authorizer(settings, client, clock)

    async def run() -> None:
        for at_s in (100.0, 104.9, 105.0, 119.9):
            clock.at_s = at_s
            assert await authorizer.decide(UserInfo("alice"), "get", "/a") == AccessDecision(True)
            assert await authorizer.decide(ANONYMOUS, "get", "/a") == AccessDecision(False, "no rule")

    asyncio.run(run())
    users = [spec["user"] for spec in client.reviews("subjectaccessreviews")]
    assert users == ["alice", "system:anonymous", "system:anonymous", "system:anonymous"]


class Stumbling(ReviewingServer):
    """Fails in these ways, one after another, before it answers."""

    def __init__(self, *failures: Exception) -> None:
        super().__init__()
        self.failures = list(failures)

    async def request(self, method: str, path: str, **kwargs: Any) -> bytes:
        self.failure = self.failures.pop(0) if self.failures else None
        return await super().request(method, path, **kwargs)


@pytest.mark.parametrize(
    ("failures", "pauses"),
    [
        pytest.param([ApiError(500), ApiError(429)], [0.5, 0.75], id="while the server is overloaded or broken"),
        pytest.param([AnswerLost("reset")], [0.5], id="when an answer was lost"),
    ],
)
def test_reviews_are_repeated(failures: list[Exception], pauses: list[float]) -> None:
    slept: list[float] = []

    async def sleep(for_s: float) -> None:
        slept.append(for_s)

    question = {"spec": {"user": "a", "nonResourceAttributes": {"path": "/", "verb": "get"}}}
    found = asyncio.run(review(Stumbling(*failures), ACCESS_PATH, question, sleep))
    assert (found, slept) == ({"allowed": False, "reason": "no rule"}, pauses)


def test_reviews_that_are_forbidden_are_not_repeated() -> None:
    client = Stumbling(ApiError(403, "Forbidden", "may not review"))
    with pytest.raises(ReviewError, match=r"may not review \(403 Forbidden\)"):
        asyncio.run(review(client, ACCESS_PATH, {}))
    assert len(client.asked) == 1
