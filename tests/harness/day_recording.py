"""A day on a cluster as a recording, and what it takes to replay it: `make bench-replay DAY="--pods 10000"`.

Pods of fifty workloads come over 24 hours, run for a while and end; our own scheduler binds them. Then the recording is
replayed, and its size, the time and the memory are printed.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Iterator
from heapq import merge
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from kubesched.k8s.model.core import (
    Container,
    Node,
    NodeStatus,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    TopologySpreadConstraint,
)
from kubesched.k8s.model.meta import KubeObject, LabelSelector, ObjectMeta, ResourceList
from kubesched.live.recorder import InformerStream, write_to
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.engine.score import Seeded
from kubesched.simulator.recording.lines import STRUCTS, RecordingWriter
from kubesched.simulator.recording.reader import ObjectSeen, Recorded, Synced
from kubesched.simulator.replay.closed import PodLife, ReplayWorld
from kubesched.simulator.replay.library import open_replay

DAY_S = 86_400.0
START_S = 1_767_225_600.0
N_WORKLOADS = 50


def nodes(n: int) -> Iterator[Node]:
    for i in range(n):
        amounts: ResourceList = {"cpu": "32", "memory": "128Gi", "pods": "110"}
        labels = {"kubernetes.io/hostname": f"node-{i}", "topology.kubernetes.io/zone": "abc"[i % 3]}
        yield Node(ObjectMeta(name=f"node-{i}", uid=f"n{i}", labels=labels), status=NodeStatus(allocatable=amounts))


def pod(i: int, dice: Random) -> Pod:
    workload = dice.randrange(N_WORKLOADS)
    labels = {"app": f"app-{workload}"}
    requests: ResourceList = {"cpu": f"{250 * (1 + workload % 4)}m", "memory": f"{512 * (1 + workload % 3)}Mi"}
    spread = (
        TopologySpreadConstraint(
            2, "topology.kubernetes.io/zone", "ScheduleAnyway", LabelSelector(match_labels=labels)
        ),
    )
    spec = PodSpec(
        containers=(Container(name="c", image=f"app:{workload}", resources=ResourceRequirements(requests=requests)),),
        topology_spread_constraints=spread if workload % 5 == 0 else None,
        priority=0,
    )
    return Pod(ObjectMeta(name=f"pod-{i}", namespace="shop", uid=f"p{i}", labels=labels), spec, PodStatus("Pending"))


def write_day(path: Path, n_nodes: int, n_pods: int, seed: int = 1) -> None:
    dice = Random(seed)
    arrivals = sorted(START_S + 1 + dice.random() * DAY_S for _ in range(n_pods))
    pods = [pod(i, dice) for i in range(n_pods)]
    ends = [at_s + dice.expovariate(1 / 3600.0) for at_s in arrivals]
    lives = {
        one.metadata.uid: PodLife(one.key, at_s, bound_s=at_s, ended_s=end_s)
        for one, at_s, end_s in zip(pods, arrivals, ends, strict=True)
    }
    config = GivenConfiguration.read(None, None, None, None).as_of_today().config
    world = ReplayWorld(build_loop(config, Seeded(seed)), lives)
    writer = RecordingWriter(path, sorted(STRUCTS), START_S)
    stream = InformerStream(write_to(writer), now_s=lambda: world.now_s)

    def tell(before: KubeObject | None, after: KubeObject | None) -> None:
        if after is not None:
            stream.put(after)
        elif before is not None:
            stream.remove(before)

    world.store.listen(tell)
    for node in nodes(n_nodes):
        world.take(ObjectSeen(START_S, node, is_initial=True))
    stream.synced()
    came: Iterator[Recorded] = (ObjectSeen(at_s, one) for at_s, one in zip(arrivals, pods, strict=True))
    went: Iterator[Recorded] = iter([Synced(START_S + DAY_S + 2)])
    for event in merge(came, went, key=lambda one: one.at_s):
        world.take(event)
        writer.flush(event.at_s)
    writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=100_000)
    asked = parser.parse_args()
    with TemporaryDirectory() as directory:
        path = Path(directory) / "day.jsonl.gz"
        began_s = time.process_time()
        write_day(path, asked.nodes, asked.pods)
        made_s = time.process_time() - began_s
        size = path.stat().st_size
        config = GivenConfiguration.read(None, None, None, None).as_of_today().config
        began_s = time.process_time()
        found = open_replay(path, config)
        took_s = time.process_time() - began_s
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(
        f"{asked.nodes} nodes, {found.n_decided} bindings in a day: {size / 1e6:.1f} MB, made in {made_s:.0f} s\n"
        f"open replay: {took_s:.0f} s; at most {most:.0f} MB of memory, the making included (seconds are of CPU)\n"
        f"{found.headline}\n"
    )


if __name__ == "__main__":
    main()
