"""Metrics pages, read back as Prometheus would."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from time import perf_counter
from typing import Any

import pytest
from secured_port import MASTERS, Answered, ReviewingServer, serving

from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod
from kubesched.live.serving.component_pages import effective_limits, pod_resource_families
from kubesched.live.serving.sources import BuildInfo, Sources
from kubesched.older.config import EMULATED_VERSIONS, emulate, generation_of
from kubesched.older.engine.build import variant_of
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import default
from kubesched.scheduler.engine.metrics.exposition import render
from kubesched.scheduler.engine.metrics.loop_metrics import collect
from kubesched.scheduler.engine.metrics.series import MetricFamily
from kubesched.scheduler.engine.score import ByName
from kubesched.testing import make
from kubesched.testing.world import World

_SAMPLE = re.compile(r"^([a-z_][a-z0-9_]*)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def read(text: str) -> tuple[dict[str, str], Series]:
    """(types by name, values by name and labels); every sample must belong to a type that was announced."""
    types: dict[str, str] = {}
    series: Series = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types, "a metric is announced once"
            types[name] = kind
        elif not line.startswith("# HELP "):
            found = _SAMPLE.match(line)
            assert found, line
            name, labels, value = found.groups()
            assert re.sub("_(bucket|sum|count)$", "", name) in types or name in types
            key = (name, tuple(_LABEL.findall(labels or "")))
            assert key not in series, "a series comes once"
            series[key] = float(value)
    return types, series


def ask(path: str, sources: Sources, headers: dict[str, str] | None = None, method: str = "GET") -> Answered:
    async def run() -> Answered:
        async with serving(sources, ReviewingServer()) as port:
            return await port.get(path, MASTERS | (headers or {}), method)

    return asyncio.run(run())


def pod(**manifest: Any) -> Pod:
    found = manifests.from_dicts([{"apiVersion": "v1", "kind": "Pod", **manifest}]).objects[0]
    assert isinstance(found, Pod)
    return found


def test_metrics_of_scheduler_and_process_are_one_page() -> None:
    world = World(build_loop(default(), ByName()))
    world.add(*manifests.from_dicts([make.node("a"), make.pod("web"), make.pod("big", cpu="99")]).objects)
    world.run()
    sources = Sources(
        metrics=lambda: collect(world.loop),
        requests=lambda: {("200", "GET", "10.0.0.1:6443"): 5.0, ("<error>", "POST", "10.0.0.1:6443"): 1.0},
        leads=lambda: {"kube-scheduler": True},
        set_aside=lambda: ({"Pod": 1}, {"Pod": 3}),
        failures=lambda: {"fact": 2},
    )
    answer = ask("/metrics", sources)
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    types, series = read(answer.body)
    attempts = "scheduler_schedule_attempts_total"
    assert series[attempts, (("profile", "default-scheduler"), ("result", "scheduled"))] == 1
    assert series[attempts, (("profile", "default-scheduler"), ("result", "unschedulable"))] == 1
    requests = "rest_client_requests_total"
    assert series[requests, (("code", "200"), ("host", "10.0.0.1:6443"), ("method", "GET"))] == 5
    assert series["leader_election_master_status", (("name", "kube-scheduler"),)] == 1
    assert series["kubesched_objects_set_aside", (("kind", "Pod"),)] == 1
    assert series["kubesched_objects_set_aside_total", (("kind", "Pod"),)] == 3
    assert series["kubesched_failures_total", (("part", "fact"),)] == 2
    assert series["process_start_time_seconds", ()] > 1.7e9
    assert series["process_resident_memory_bytes", ()] > 1e6
    assert types["process_cpu_seconds_total"] == "counter"
    (build,) = (dict(labels) for name, labels in series if name == "kubernetes_build_info")
    assert (build["major"], build["minor"]) == ("1", "36")
    assert build["git_version"] == BuildInfo().git_version


@pytest.mark.parametrize("version", EMULATED_VERSIONS)
def test_an_emulated_scheduler_serves_the_metrics_of_its_time(version: str) -> None:
    generation = generation_of(version)
    assert generation is not None
    world = World(build_loop(default(), ByName(), variant=variant_of(emulate(generation)), clock=perf_counter))
    world.add(
        *manifests.from_dicts([make.node("a"), make.node("b"), make.pod("web"), make.pod("big", cpu="99")]).objects
    )
    world.run()
    types, series = read(ask("/metrics", Sources(metrics=lambda: collect(world.loop))).body)
    profile = (("profile", "default-scheduler"),) if version == "1.19" else ()
    assert series["scheduler_schedule_attempts_total", (*profile, ("result", "scheduled"))] == 1
    operations = (
        "scheduler_scheduling_latency_seconds" if version == "1.13" else "scheduler_scheduling_duration_seconds"
    )
    assert types[operations] == "summary"
    assert series[f"{operations}_count", (("operation", "binding"),)] == 1
    assert "scheduler_scheduling_attempt_duration_seconds" not in types


def test_metrics_are_compressed_for_who_can_read_that() -> None:
    assert ask("/metrics", Sources(), {"Accept-Encoding": "gzip"}).headers["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in ask("/metrics", Sources(), {"Accept-Encoding": "identity"}).headers


def test_metrics_are_left_out_when_told_so() -> None:
    def without_process(families: Iterable[MetricFamily]) -> Iterable[MetricFamily]:
        return (family for family in families if not family.definition.name.startswith("p"))

    types, _ = read(ask("/metrics", Sources(shown=without_process)).body)
    assert types.keys() == {"kubernetes_build_info"}


def test_metrics_cannot_be_reset() -> None:
    assert ask("/metrics", Sources(), method="DELETE").status == 405


WEB = pod(
    metadata={"name": "web", "namespace": "shop"},
    spec={
        "nodeName": "a",
        "priority": 5,
        "containers": [
            {
                "name": "c",
                "resources": {
                    "requests": {"cpu": "250m", "memory": "1Gi", "example.com/gpu": "2", "hugepages-2Mi": "4Mi"},
                    "limits": {"cpu": "1", "attachable-volumes-csi": "3", "ephemeral-storage": "0"},
                },
            }
        ],
    },
)


def test_resources_of_pods_come_with_their_unit() -> None:
    whose = 'namespace="shop",node="a",pod="web",priority="5"'
    lines = [line for line in render(pod_resource_families([WEB])).splitlines() if not line.startswith("#")]
    assert lines == [
        f'kube_pod_resource_{what}{{{whose},resource="{name}",scheduler="default-scheduler",unit="{unit}"}} {value}'
        for what, name, unit, value in (
            ("limit", "attachable-volumes-csi", "integer", "3"),
            ("limit", "cpu", "cores", "1"),
            ("request", "cpu", "cores", "0.25"),
            ("request", "example.com/gpu", "", "2"),
            ("request", "hugepages-2Mi", "bytes", "4.194304e+06"),
            ("request", "memory", "bytes", "1.073741824e+09"),
        )
    ]


@pytest.mark.parametrize(
    ("node", "phase", "counts"),
    [
        pytest.param("a", "Running", True, id="runs"),
        pytest.param("a", "Succeeded", False, id="finished"),
        pytest.param("a", "Failed", False, id="failed"),
        pytest.param("", "Failed", True, id="never had a node"),
        pytest.param("", "Pending", True, id="waits"),
    ],
)
def test_finished_pods_do_not_count(node: str, phase: str, counts: bool) -> None:
    spec = {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    found = pod_resource_families([pod(metadata={"name": "p"}, spec=spec, status={"phase": phase})])
    assert bool(found[0].values) is counts
    assert [labels[4] for labels in found[0].values or {}] == ([""] if counts else []), "no priority, no label"


def container(cpu: str, **fields: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"limits": {"cpu": cpu}}, **fields}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        pytest.param({"containers": [container("1"), container("2")]}, 3, id="containers add up"),
        pytest.param({"containers": [container("1")], "initContainers": [container("4")]}, 4, id="or the peak of init"),
        pytest.param(
            {
                "containers": [container("1")],
                "initContainers": [container("2", restartPolicy="Always"), container("4")],
            },
            6,
            id="sidecars count with later init containers",
        ),
        pytest.param(
            {"containers": [container("1")], "initContainers": [container("2", restartPolicy="Always")]},
            3,
            id="sidecars stay",
        ),
        pytest.param(
            {"containers": [container("1")], "resources": {"limits": {"cpu": "7"}}}, 7, id="the pod's own limit"
        ),
        pytest.param(
            {"containers": [container("1")], "overhead": {"cpu": "1", "memory": "1"}}, 2, id="overhead on top"
        ),
    ],
)
def test_limits_are_counted_as_the_api_says(spec: dict[str, Any], cpu: int) -> None:
    assert effective_limits(pod(metadata={"name": "p"}, spec=spec)) == {"cpu": cpu * 10**9}


def test_only_the_leader_tells_of_resources() -> None:
    is_leader = [False, True]
    sources = Sources(pods=lambda: [WEB], is_leader=lambda: is_leader.pop(0))

    async def run() -> list[str]:
        async with serving(sources, ReviewingServer()) as port:
            return [(await port.get("/metrics/resources", MASTERS)).body for _ in range(2)]

    standby, leader = asyncio.run(run())
    assert standby == ""
    assert len(read(leader)[1]) == 6


def test_a_pod_that_cannot_be_read_does_not_hide_the_others() -> None:
    broken = pod(metadata={"name": "x"}, spec={"containers": [{"name": "c", "resources": {"requests": {"cpu": "?"}}}]})
    assert pod_resource_families([broken, WEB]) == pod_resource_families([WEB])
