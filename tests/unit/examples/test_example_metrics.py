"""Load that was measured counts, for as long as it is fresh; no decision waits for the server."""

from __future__ import annotations

import gc
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from example_plugins import config_with, local_server, module_of, objects_of, placed, plugin_of, raw_scores

import kubesched
from kubesched.scheduler.config import ConfigError

LOAD_AWARE = plugin_of("metrics")
MODULE = module_of(LOAD_AWARE)


@pytest.fixture(autouse=True)
def _threads_end_with_the_test() -> Iterator[None]:
    """They do when their plugins are collected."""
    yield
    gc.collect()


def vector(**loads: object) -> bytes:
    samples = [{"metric": {"node": name}, "value": [0, str(load)]} for name, load in loads.items()]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": samples}}).encode()


def scores(url: str, **args: Any) -> dict[str, int]:
    decision = placed(objects_of("metrics"), "shop/web", [LOAD_AWARE], {"url": url, **args})
    return raw_scores(decision, "LoadAware")


def test_the_idle_node_is_preferred() -> None:
    with local_server(vector(busy=0.9, idle=0.1)) as (url, handler):
        decision = placed(objects_of("metrics"), "shop/web", [LOAD_AWARE], {"url": url})
        assert decision.node_name == "idle"
        assert raw_scores(decision, "LoadAware") == {"busy": 10, "idle": 90}
        assert handler.asked[0].startswith("/api/v1/query?query=avg+by+%28node%29")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(vector(busy=0.9), {"busy": 10, "idle": 50}, id="a node that the server does not know"),
        pytest.param(vector(busy="NaN", idle=0.2), {"busy": 50, "idle": 80}, id="a value that is no number"),
        pytest.param(vector(busy=7, idle=-1), {"busy": 0, "idle": 100}, id="values beyond all bounds"),
        pytest.param(vector(), {"busy": 50, "idle": 50}, id="no values"),
        pytest.param(b"{}", {"busy": 50, "idle": 50}, id="an answer that is no vector"),
        pytest.param(b"<html>", {"busy": 50, "idle": 50}, id="an answer that is no JSON"),
    ],
)
def test_what_is_not_known_counts_neither_way(body: bytes, expected: dict[str, int]) -> None:
    with local_server(body) as (url, _):
        assert scores(url) == expected


def test_a_server_that_refuses_or_is_gone_counts_neither_way() -> None:
    with local_server(b"", status=503) as (url, _):
        assert scores(url) == {"busy": 50, "idle": 50}
    assert scores(url, timeoutS=0.5) == {"busy": 50, "idle": 50}


def test_a_server_that_hangs_is_given_up_after_the_timeout() -> None:
    with local_server(vector(busy=1)) as (url, handler):
        handler.may_answer.clear()
        assert scores(url, timeoutS=0.05) == {"busy": 50, "idle": 50}
        assert len(handler.asked) == 1


def test_what_is_known_counts_until_it_is_too_old() -> None:
    now = [0.0]
    answers: list[dict[str, float] | OSError] = [{"a": 0.5}, OSError("down"), OSError("down"), {"a": 0.7}]

    def fetch() -> dict[str, float]:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    values = MODULE.FreshValues(fetch, 60.0, clock=lambda: now[0])
    seen = []
    for at_s in (0.0, 50.0, 61.0, 62.0):
        now[0] = at_s
        seen.append((values.refresh(), dict(values.current)))
    assert seen == [(True, {"a": 0.5}), (False, {"a": 0.5}), (False, {}), (True, {"a": 0.7})]


def test_profiles_that_ask_the_same_share_one_thread() -> None:
    with local_server(vector(busy=1)) as (url, handler):
        args = MODULE.LoadAwareArgs(url=url)
        assert LOAD_AWARE(args).loads is LOAD_AWARE(args).loads
        assert len(handler.asked) == 1


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        ({"timeoutS": 0}, "refreshS, timeoutS and maxAgeS must be above 0"),
        ({"url": "prometheus:9090"}, "url must begin with http:// or https://"),
        ({"refresh": 5}, 'unknown field "refresh"'),
    ],
)
def test_mistakes_in_the_arguments_are_told(args: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        kubesched.explain(objects_of("metrics"), "shop/web", config_with("LoadAware", args), plugins=[LOAD_AWARE])


def test_the_background_thread_ends_when_nobody_looks_any_more() -> None:
    with local_server(vector(busy=0.5)) as (url, _):
        before = set(threading.enumerate())
        loads = MODULE.loads_of(MODULE.LoadAwareArgs(url=url, refresh_s=0.01))
        assert MODULE.loads_of(MODULE.LoadAwareArgs(url=url, refresh_s=0.01)) is loads
        (thread,) = (thread for thread in set(threading.enumerate()) - before if thread.name == "load_aware")
        del loads
        thread.join(20)
        assert not thread.is_alive()
