"""Which connection has to go, and which lines a log leaves out."""

from __future__ import annotations

import io
import logging
import resource

import pytest

from kubesched.k8s.connections.log_lines import JoinRepeats
from kubesched.k8s.connections.site import ConnectionLimits, ConnectionState, who_must_go

LIMITS = ConnectionLimits(total=4, share_of_peer=0.75)


def _silent(peer: str, since_s: float) -> ConnectionState:
    return ConnectionState(peer, since_s)


def _idle(peer: str, since_s: float) -> ConnectionState:
    return ConnectionState(peer, since_s, has_asked=True)


def _busy(peer: str, since_s: float) -> ConnectionState:
    return ConnectionState(peer, since_s, has_asked=True, is_busy=True)


def test_there_is_room() -> None:
    assert who_must_go([_silent("a", 1), _silent("b", 2), _silent("b", 3)], _silent("c", 4), LIMITS) is None


def test_who_never_asked_goes_before_who_is_idle_for_longer() -> None:
    idle, silent, later = _idle("a", 1), _silent("b", 2), _silent("c", 3)
    assert who_must_go([idle, later, silent, _busy("d", 0)], _silent("e", 4), LIMITS) is silent
    assert who_must_go([idle, _idle("b", 2), _busy("c", 0), _busy("d", 0)], _silent("e", 4), LIMITS) is idle


def test_a_peer_with_its_share_makes_room_for_itself() -> None:
    own = [_silent("a", 2), _idle("a", 0), _busy("a", 1)]
    assert who_must_go(own, _silent("a", 4), LIMITS) is own[0]
    newcomer = _silent("a", 4)
    assert who_must_go([_busy("a", n) for n in range(3)], newcomer, LIMITS) is newcomer


def test_busy_connections_stay() -> None:
    newcomer = _silent("e", 4)
    assert who_must_go([_busy(peer, 0) for peer in "abcd"], newcomer, LIMITS) is newcomer


def test_silence_ends_and_watches_do_not() -> None:
    limits = ConnectionLimits()
    new = _silent("a", 100.0)
    assert not new.is_overdue(limits, 132.0)
    assert new.is_overdue(limits, 132.1)
    new.begin(120.0)
    assert not new.is_overdue(limits, 10_000.0)
    new.end(200.0)
    assert not new.is_overdue(limits, 290.0)
    assert new.is_overdue(limits, 290.1)


def test_a_body_that_does_not_come_ends_its_connection() -> None:
    limits = ConnectionLimits()
    state = _silent("a", 0.0)
    state.begin(10.0)
    state.awaits_body = True
    assert not state.is_overdue(limits, 70.0)
    assert state.is_overdue(limits, 70.1)
    state.awaits_body = False
    assert not state.is_overdue(limits, 10_000.0)


def test_there_are_never_more_connections_than_files() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert ConnectionLimits(total=10**9).within_files().total == soft - 96
    assert ConnectionLimits(total=20).within_files().total == 20


@pytest.fixture
def log() -> tuple[logging.Logger, io.StringIO, list[float]]:
    now_s = [0.0]
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.addFilter(JoinRepeats(lambda: now_s[0]))
    logger = logging.Logger("test of repeats")
    logger.addHandler(handler)
    return logger, out, now_s


def test_lines_that_say_the_same_are_joined(log: tuple[logging.Logger, io.StringIO, list[float]]) -> None:
    logger, out, now_s = log
    for number in range(1000):
        logger.warning("no room for %s", number)
        logger.warning("something else")
    now_s[0] = 11.0
    logger.warning("no room for %s", "the last")
    lines = out.getvalue().splitlines()
    assert len(lines) == 5 + 5 + 1
    assert lines[-1] == "no room for the last (repeated 995 times)"


def test_information_is_never_joined(log: tuple[logging.Logger, io.StringIO, list[float]]) -> None:
    logger, out, _ = log
    for _ in range(50):
        logger.info("bound")
    assert len(out.getvalue().splitlines()) == 50


def test_what_is_remembered_of_lines_is_bounded(log: tuple[logging.Logger, io.StringIO, list[float]]) -> None:
    logger, out, _ = log
    for number in range(1000):
        logger.warning(f"line {number}")
    assert len(out.getvalue().splitlines()) == 1000
    [handler] = logger.handlers
    [joined] = handler.filters
    assert isinstance(joined, JoinRepeats)
    assert len(joined._kinds) <= 200
