"""Which failures may be repeated, and after what pause."""

from __future__ import annotations

import pytest

from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.k8s.client.rest import RetryPolicy

POLICY = RetryPolicy(draw=lambda: 1.0)


@pytest.mark.parametrize(
    ("failure", "read_pause_s", "write_pause_s"),
    [
        pytest.param(ApiError(429), 0.25, 0.25, id="too many requests: nothing was done"),
        pytest.param(ApiError(429, retry_after_s=4), 4, 4, id="the server says how long"),
        pytest.param(ApiError(500), 0.25, None, id="a server error may have done half a write"),
        pytest.param(ApiError(503, retry_after_s=1), 1, 1, id="a server error that asks for a repeat"),
        pytest.param(ApiError(503, retry_after_s=0), 0.25, 0.25, id="at once, but not faster than we would"),
        pytest.param(ApiError(503, retry_after_s=31), None, None, id="too long to wait here: the caller decides"),
        pytest.param(Unreachable("x"), 0.25, None, id="not reached"),
        pytest.param(AnswerLost("x"), 0.25, None, id="an answer lost: a write is never repeated"),
        pytest.param(ApiError(404), None, None, id="not found stays not found"),
        pytest.param(ApiError(409), None, None, id="a conflict needs a new decision"),
        pytest.param(ApiError(401), None, None, id="unauthorized is for the credentials"),
        pytest.param(ApiError(302), None, None, id="redirects are not followed"),
    ],
)
@pytest.mark.parametrize("write", ["POST", "PUT", "PATCH", "DELETE"])
def test_reads_and_writes_are_repeated_where_safe(
    failure: ApiError | Unreachable | AnswerLost,
    read_pause_s: float | None,
    write_pause_s: float | None,
    write: str,
) -> None:
    assert POLICY.pause_s("GET", 1, failure) == read_pause_s
    assert POLICY.pause_s(write, 1, failure) == write_pause_s


def test_pauses_double_up_to_a_bound_and_then_end() -> None:
    policy = RetryPolicy(max_attempts=8, draw=lambda: 1.0)
    pauses = [policy.pause_s("GET", attempt, ApiError(500)) for attempt in range(1, 9)]
    assert pauses == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0, None]


def test_a_pause_is_drawn_between_half_and_whole() -> None:
    assert RetryPolicy(draw=lambda: 0.0).pause_s("GET", 2, ApiError(500)) == 0.25
