"""What is raised during a turn costs the fact or the pod that it was about, and nothing else."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from still_shell import StillShell

from kubesched.k8s.model import manifests
from kubesched.k8s.model.meta import KubeObject
from kubesched.testing import make


def breaking(function: Callable[..., Any], at: Callable[[Any], bool]) -> Callable[..., Any]:
    def broken(*arguments: Any) -> Any:
        if at(arguments[0]):
            raise ZeroDivisionError("planted")
        return function(*arguments)

    return broken


PODS = [make.pod(f"p{i}", cpu=1) for i in range(3)]


def test_an_attempt_that_breaks_is_repeated_after_its_backoff_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    around = StillShell()
    (scheduler,) = around.shell.loop.schedulers.values()
    decide = scheduler.decide
    scheduler.decide = breaking(decide, lambda info: info.name == "p1")  # type: ignore[method-assign]
    around.put(make.node("a"), *PODS)
    around.run()
    assert around.bound == {"default/p0": "a", "default/p2": "a"}
    assert around.shell.failures == {"attempt": 1}
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is not None
    scheduler.decide = decide  # type: ignore[method-assign]
    around.run(at_s=60.0)
    assert around.bound["default/p1"] == "a"


@pytest.mark.parametrize("part", ["begin", "_advance", "_finish"])
def test_what_a_broken_attempt_took_is_given_back(part: str) -> None:
    """Whether it breaks before its place is taken, after that, or when it is bound already."""
    around = StillShell()
    loop = around.shell.loop
    cycles = loop._binding_cycles
    whole = getattr(cycles, part)
    setattr(cycles, part, breaking(whole, lambda what: getattr(what, "key", "") == "default/p1" or _is_of(what, "p1")))
    around.put(make.node("a", cpu=3), *PODS)
    around.run()
    assert {"default/p0", "default/p2"} <= around.bound.keys()
    assert loop.bindings == {}
    assert loop.cluster.is_assumed(PODS_KEYS[1]) is False
    assert [queued.key for queued in loop.queue.contents.backoff] == ["default/p1"]
    assert loop.queue.contents.in_flight == []


PODS_KEYS = [item.pod_key for item in manifests.from_dicts(PODS).objects if hasattr(item, "pod_key")]


def _is_of(binding: Any, name: str) -> bool:
    return hasattr(binding, "assumed") and binding.assumed.name == name


def test_effects_that_cannot_be_sent_do_not_end_the_loop() -> None:
    around = StillShell()
    around.breaks_at = "default/p0"
    around.put(make.node("a"), PODS[0])
    around.run()
    assert around.shell.failures == {"send": 1}
    around.run(*PODS[1:])
    assert {"default/p1", "default/p2"} <= around.bound.keys()


def test_a_pod_whose_amounts_cannot_be_read_takes_what_is_known_of_them(caplog: pytest.LogCaptureFixture) -> None:
    around = StillShell()
    around.put(make.node("a", cpu=2))
    around.put(make.pod("odd", on="a", requests={"cpu": "1500m", "memory": "much"}), make.pod("q", cpu=1))
    around.run()
    assert around.bound == {}
    assert around.aside.counts() == {"Pod": 1}
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    fields = record.__dict__["fields"]
    assert (fields["object"], fields["countsAs"]) == ("default/odd", "a pod on a, as far as it can be read")
    assert fields["err"].startswith("spec.containers[0].resources.requests.memory: quantities must match")
    around.run(make.pod("odd", on="a", cpu="500m", metadata={"resourceVersion": "2"}), at_s=60.0)
    assert around.bound == {"default/q": "a"}


def test_a_fact_that_breaks_the_loop_counts_as_the_least_it_can(caplog: pytest.LogCaptureFixture) -> None:
    around = StillShell()
    loop = around.shell.loop
    put: Callable[[KubeObject, float], None] = loop.put
    loop.put = breaking(put, lambda item: item.metadata.labels == {"breaks": "it"})  # type: ignore[method-assign]
    around.put(make.node("a", cpu=2), make.pod("odd", on="a", cpu=1, labels={"breaks": "it"}), *PODS)
    around.run()
    assert around.bound.keys() == {"default/p0", "default/p1"}
    assert around.shell.failures == {"fact": 1}
    assert around.aside.of("Pod") == {"default/odd": "planted"}
    assert [record.exc_info is not None for record in caplog.records if record.levelno == logging.ERROR] == [
        True,
        False,
    ]
