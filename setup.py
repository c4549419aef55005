"""Builds kubesched. All that it says about the package is in pyproject.toml.

With KUBESCHED_COMPILE=1 in the environment, the hot modules are compiled by mypyc, from the same source: the wheel then
has them as extension modules, too. Without it, the wheel is pure Python. See docs/guides/compiled.md.
"""

from __future__ import annotations

import os

from setuptools import setup
from setuptools.extension import Extension

COMPILED = [
    "src/kubesched/scheduler/cluster/cluster.py",
    "src/kubesched/scheduler/cluster/journal.py",
    "src/kubesched/scheduler/cluster/pod_table.py",
    "src/kubesched/scheduler/cluster/signatures.py",
    "src/kubesched/scheduler/cluster/table.py",
    "src/kubesched/scheduler/engine/bind.py",
    "src/kubesched/scheduler/engine/binding_cycles.py",
    "src/kubesched/scheduler/engine/class_cache/cache.py",
    "src/kubesched/scheduler/engine/class_cache/pod_class.py",
    "src/kubesched/scheduler/engine/event_handlers.py",
    "src/kubesched/scheduler/engine/loop.py",
    "src/kubesched/scheduler/newer/queued_group.py",
    "src/kubesched/scheduler/queue/queued_pod.py",
    "src/kubesched/scheduler/queue/sub_queues.py",
]
"""The modules that a pod passes through on its way from the queue to its node; without those whose classes older
schedulers inherit from, which a compiled class does not allow (`cycle`, `scheduling_queue`). Classes that inherit from
compiled ones have to be compiled, too (`queued_group`)."""


def extensions() -> list[Extension]:
    if os.environ.get("KUBESCHED_COMPILE") != "1":
        return []
    from mypyc.build import mypycify

    found: list[Extension] = mypycify([*COMPILED], opt_level="3", group_name="kubesched")
    return found


setup(ext_modules=extensions())
