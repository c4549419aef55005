"""The steps of a consolidation in virtual time: when each begins and ends, who waits, what stands in the way."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import kubesched
from kubesched.cli.main import main
from kubesched.planning.consolidate.timeline import StepTimeline, played
from kubesched.simulator.library import fresh_cluster
from kubesched.simulator.options import SimulationOptions
from kubesched.testing import make

Manifest = dict[str, Any]
TYPE, CAPACITY_TYPE = "node.kubernetes.io/instance-type", "karpenter.sh/capacity-type"
EXAMPLE = Path(__file__).parents[3] / "examples"
SPREAD = {"topologySpreadConstraints": [make.spread(make.HOSTNAME, labels={"app": "web"})]}


def deployment(name: str, replicas: int, cpu: str, **spec: Any) -> Manifest:
    labels = {"app": name}
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}}
    about = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"}}
    return {**about, "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}}


def nodes(*cpus: int, kind: str = "large") -> list[Manifest]:
    return [make.node(f"n{k}", cpu=str(cpu), labels={TYPE: kind, make.ZONE: "a"}) for k, cpu in enumerate(cpus)]


def timeline_of(*objects: Manifest, **options: Any) -> tuple[StepTimeline, kubesched.ConsolidationReport]:
    world = kubesched.world(list(objects), tie_break="name")
    report = kubesched.consolidate(world, timeline=True, **options)
    assert report.timeline is not None
    return report.timeline, report


def test_one_node_after_another_takes_longer_than_several_at_a_time() -> None:
    objects = [*nodes(4, 4, 4, 4, 16), deployment("web", 8, "500m")]
    alone, report = timeline_of(*objects)
    assert len(report.steps) == 4
    assert alone.finishes
    begins = [step.began_s or 0.0 for step in alone.steps]
    assert begins == sorted(set(begins))
    together, both = timeline_of(*objects, parallel=4)
    assert set(both.removed) == set(report.removed)
    assert (together.duration_s or 0) < (alone.duration_s or 0)
    assert {step.began_s for step in together.steps} == {0.0}


def test_a_drain_begins_when_the_new_machine_has_booted() -> None:
    machine = {"name": "small", "allocatable": {"cpu": "2", "memory": "8Gi", "pods": 110}, "price": 0.1}
    large = {"name": "large", "allocatable": {"cpu": "8", "memory": "8Gi", "pods": 110}, "price": 0.8}
    catalogue = {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "shapes": [machine, large]}
    told, report = timeline_of(*nodes(8), deployment("web", 1, "1"), catalogue=catalogue, boot="5m")
    assert [one.name for step in report.steps for one in step.launch] == ["new-small-1"]
    (step,) = told.steps
    assert (step.began_s, step.drained_s) == (0.0, 300.0)
    assert told.duration_s == step.ended_s
    assert told.evictions == 1


def test_pods_that_wait_for_the_drained_node_to_be_gone() -> None:
    """A spread over nodes with maxSkew 1: while the drained node is there, it is a domain without a pod."""
    objects = [*nodes(4, 4, 4), deployment("web", 3, "500m", **SPREAD)]
    told, report = timeline_of(*objects, allow_wait=True)
    assert report.steps
    assert any(step.waited for step in report.steps)
    assert told.finishes
    assert told.most_pending >= 1
    assert told.longest_wait_s > 0


def test_where_there_are_no_steps_there_is_nothing_to_play() -> None:
    told, report = timeline_of(*nodes(4), make.pod("p", on="n0", cpu="1"))
    assert not report.steps
    assert (told.steps, told.duration_s, told.evictions) == ((), 0.0, 0)
    assert "In virtual time" not in str(report)


def test_steps_that_come_to_no_end_say_why() -> None:
    """Somebody else has come to the room that the steps count on."""
    objects = [*nodes(4, 4), deployment("web", 2, "1")]
    report = kubesched.consolidate(kubesched.world(objects, tie_break="name"))
    (step,) = report.steps
    asked = fresh_cluster([*objects, deployment("late", 4, "1400m")])
    told = played(
        asked.given, report.steps, report.rounds, asked.config, SimulationOptions(tie_break="name"), boot_s=60.0
    )
    assert not told.finishes
    assert told.pending
    assert told.steps[0].delete == step.delete
    assert told.steps[0].ended_s is not None
    text = str(replace(report, timeline=told))
    assert "Without a node in the end: default/" in text
    assert "Played, the steps do not finish" in text


def arguments(*more: str) -> list[str]:
    cluster = ["-f", str(EXAMPLE / "consolidate"), "--catalogue", str(EXAMPLE / "plan" / "catalogue.yaml")]
    return [*cluster, "--delete-emptydir-data", "--tie-break", "name", *more]


def test_the_written_scenario_leaves_the_nodes_that_the_steps_leave(tmp_path: Path) -> None:
    written = tmp_path / "steps.yaml"
    said = CliRunner().invoke(main, ["consolidate", *arguments("-o", "json", "--write-scenario", str(written))])
    assert said.exit_code == 0, said.output
    record = json.loads(said.stdout)
    assert record["timeline"]["finishes"] is True
    gone = {name for step in record["steps"] for name in step["delete"]}
    assert yaml.safe_load(written.read_text())["kind"] == "Scenario"
    played = ["simulate", "-f", str(EXAMPLE / "consolidate"), "-f", str(written), "--tie-break", "name", "-o", "json"]
    after = json.loads(CliRunner().invoke(main, played).stdout)
    assert {one["name"] for one in after["nodes"] if one["state"] == "Gone"} == gone
    assert all(one["state"] in ("Running", "Succeeded", "Gone") for one in after["pods"])


@pytest.mark.parametrize(
    ("more", "told"),
    [
        pytest.param(["--write-scenario", "nowhere/steps.yaml"], "nowhere/steps.yaml", id="no such directory"),
        pytest.param(["--timeline", "--boot", "soon"], "--boot", id="no duration"),
    ],
)
def test_mistakes_are_a_line(more: list[str], told: str) -> None:
    said = CliRunner().invoke(main, ["consolidate", *arguments(*more)])
    assert (said.exit_code, said.stderr.count("\n")) == (2, 1)
    assert told in said.stderr


def test_the_table_of_the_timeline() -> None:
    said = CliRunner().invoke(main, ["consolidate", *arguments("--timeline", "-o", "csv", "--table", "timeline")])
    assert said.stdout.splitlines()[0] == "step,round,delete,began_s,drained_s,ended_s"
    assert len(said.stdout.splitlines()) == 6
