"""A server's refusal as an `ApiError`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubesched.k8s.client.errors import ApiError, StatusCause
from kubesched.k8s.client.transport import Answer, api_error


def _status(reason: str, message: str, **details: Any) -> bytes:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    return json.dumps(body | ({"details": details} if details else {})).encode()


@pytest.mark.parametrize(
    ("answer", "reason", "message", "retry_after_s"),
    [
        pytest.param(
            Answer(404, {}, _status("NotFound", 'pods "p" not found')),
            "NotFound",
            'pods "p" not found',
            None,
            id="a Status gives reason and message",
        ),
        pytest.param(
            Answer(429, {"retry-after": "3"}, _status("TooManyRequests", "slow down")),
            "TooManyRequests",
            "slow down",
            3.0,
            id="Retry-After in seconds is kept",
        ),
        pytest.param(
            Answer(500, {}, _status("ServerTimeout", "later", retryAfterSeconds=2)),
            "ServerTimeout",
            "later",
            2.0,
            id="without the header, details.retryAfterSeconds counts",
        ),
        pytest.param(
            Answer(503, {"retry-after": "Mon, 16 Nov 2026 00:00:00 GMT"}, b"  apiserver is\n shutting down "),
            "ServiceUnavailable",
            "apiserver is shutting down",
            None,
            id="plain text is taken as it is, a date in Retry-After is not",
        ),
        pytest.param(Answer(502, {}, b""), "", "Bad Gateway", None, id="nothing at all gives the code's own words"),
        pytest.param(Answer(599, {}, b'{"kind":"Pod"}'), "", '{"kind":"Pod"}', None, id="another object is only text"),
        pytest.param(Answer(403, {}, b"x" * 5000), "Forbidden", "x" * 300 + "…", None, id="long texts are cut"),
        pytest.param(
            Answer(401, {}, b'{"kind":"Status","message":3}'),
            "Unauthorized",
            '{"kind":"Status","message":3}',
            None,
            id="a Status with wrong types is only text",
        ),
    ],
)
def test_a_refusal_keeps_what_the_server_said(
    answer: Answer, reason: str, message: str, retry_after_s: float | None
) -> None:
    error = api_error(answer)
    assert (error.status, error.reason, error.message, error.retry_after_s) == (
        answer.status,
        reason,
        message,
        retry_after_s,
    )


def test_the_causes_of_a_refusal_are_kept() -> None:
    causes = [{"reason": "FieldValueInvalid", "message": "must be set", "field": "spec.nodeName"}]
    error = api_error(Answer(422, {}, _status("Invalid", "no", causes=causes)))
    assert error.causes == (StatusCause("FieldValueInvalid", "must be set", "spec.nodeName"),)


@pytest.mark.parametrize(
    ("error", "true_of_it"),
    [
        pytest.param(ApiError(404, "NotFound"), {"is_not_found"}, id="not found"),
        pytest.param(ApiError(409, "Conflict"), {"is_conflict"}, id="conflict"),
        pytest.param(ApiError(409, "AlreadyExists"), {"is_conflict", "is_already_exists"}, id="already exists"),
        pytest.param(ApiError(410, ""), {"is_gone"}, id="gone by status"),
        pytest.param(ApiError(200, "Expired"), {"is_gone"}, id="expired within a watch"),
        pytest.param(ApiError(403, "Forbidden"), {"is_forbidden"}, id="forbidden"),
        pytest.param(ApiError(401, "Unauthorized"), {"is_unauthorized"}, id="unauthorized"),
        pytest.param(ApiError(429, ""), {"is_too_many"}, id="too many"),
        pytest.param(ApiError(500, ""), set(), id="none of these"),
    ],
)
def test_an_error_answers_what_callers_ask(error: ApiError, true_of_it: set[str]) -> None:
    questions = [name for name in dir(ApiError) if name.startswith("is_")]
    assert {name for name in questions if getattr(error, name)} == true_of_it


def test_an_error_reads_as_message_and_code() -> None:
    assert str(ApiError(404, "NotFound", 'pods "p" not found')) == 'pods "p" not found (404 NotFound)'
    assert str(ApiError(502)) == "502"
