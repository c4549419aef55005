"""A new plugin, with its test: a file that works as it is, to be changed into what is wanted.

Next: `kubesched.cli.plugin`, which writes them.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from string import Template

from kubesched.k8s.errors import KubeschedError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*([-_ ][A-Za-z0-9]+)*")
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+|[0-9]+")


class PluginNameError(KubeschedError, ValueError):
    """What was given cannot name a plugin."""


@dataclass(frozen=True, slots=True)
class NewPlugin:
    """The two files of a new plugin, by name."""

    name: str
    files: dict[str, str]


def new_plugin(name: str) -> NewPlugin:
    """QuietHours, quiet-hours and quiet_hours all name the plugin QuietHours in quiet_hours.py."""
    if not _NAME.fullmatch(name):
        raise PluginNameError(f"{name!r} cannot name a plugin: letters and digits are wanted, as in QuietHours")
    words = [word.lower() for word in _WORD.findall(name)]
    module = "_".join(words)
    class_name = name if name[0].isupper() and name.isalnum() else "".join(word.capitalize() for word in words)
    if keyword.iskeyword(module) or module in ("kubesched", "pytest", "test"):
        raise PluginNameError(f"{name!r} cannot name a plugin: {module}.py could not be imported")
    texts = {"name": class_name, "module": module, "label": f"example.com/{'-'.join(words)}"}
    return NewPlugin(
        class_name,
        {
            f"{module}.py": Template(_PLUGIN).substitute(texts),
            f"test_{module}.py": Template(_TEST).substitute(texts),
        },
    )


_PLUGIN = '''\
"""$name: keeps pods off nodes that are closed to them, and prefers nodes with room for many more pods.

Try it:     kubesched explain POD -f cluster.yaml --plugin $module.py
Check it:   kubesched plugin check $module.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubesched.framework import (
    OK,
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    Handle,
    NodeInfo,
    PodInfo,
    RegisteredEvent,
    Scope,
    Status,
)


@dataclass(frozen=True)
class ${name}Args:
    """What the configuration may say, under pluginConfig: in YAML, spare_pods is sparePods."""

    label: str = "$label"
    spare_pods: int = 0

    def __post_init__(self) -> None:
        if self.spare_pods < 0:
            raise ValueError("sparePods must not be negative")


class $name:
    name = "$name"
    args_type = ${name}Args
    filter_scope = Scope.NODE  # the answer depends on the node's own object: it is kept until that changes
    score_scope = Scope.ROW  # on the node and the pods on it

    def __init__(self, args: ${name}Args, handle: Handle) -> None:
        self.args = args

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """May the pod go to this node? unresolvable: evicting other pods would not help."""
        if node.node.labels.get(self.args.label) == "closed":
            return Status.unresolvable("node(s) were closed")
        return OK

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """How good is this node? 0 to 100."""
        places = max(node.allowed_pods - self.args.spare_pods, 1)
        free = max(places - node.pod_count, 0)
        return 100 * free // places

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        """What can undo a rejection: a new node, or other labels on one."""
        return [RegisteredEvent(ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL))]
'''

_TEST = '''\
"""Run it with pytest."""

from __future__ import annotations

from typing import Any

from $module import $name

import kubesched
from kubesched.plugin_tools.check import check_plugin, subject_of
from kubesched.testing import make

LABEL = "$label"


def place(*objects: dict[str, Any], **args: Any) -> tuple[str, str]:
    """The node that the pod goes to, or why it goes nowhere."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "$name", "args": args}]}],
    }
    decision = kubesched.explain([*objects, make.pod("web")], "default/web", config, plugins=[$name]).decision
    assert decision is not None
    return decision.node_name, decision.message


def test_a_closed_node_is_left_out() -> None:
    node, _ = place(make.node("a", labels={LABEL: "closed"}), make.node("b"))
    assert node == "b"


def test_a_pod_for_which_every_node_is_closed_waits() -> None:
    node, message = place(make.node("a", labels={LABEL: "closed"}))
    assert node == ""
    assert "1 node(s) were closed" in message


def test_the_emptier_node_is_preferred() -> None:
    pods = [make.pod(f"p{number}", on="a") for number in range(20)]
    node, _ = place(make.node("a"), make.node("b"), *pods)
    assert node == "b"


def test_it_passes_the_battery() -> None:
    report = check_plugin(subject_of($name), n_cases=30, costs=False)
    assert report.has_passed, report.as_text()
'''
