"""The settings of the queue, and its view of a profile: the QueueSort and PreEnqueue plugins, and registered events.

Next: `hints`, which puts the events of all plugins into one table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kubesched.framework.events import EVERY_CHANGE, RegisteredEvent
from kubesched.framework.extension_points import EnqueueExtensions, Plugin, QueuedPod, extension_points_of
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Status

_POINTS_THAT_REJECT = frozenset({"preEnqueue", "preFilter", "filter", "reserve", "permit"})

PreEnqueueCheck = Callable[[PodInfo], Status]
"""Must not raise: a plugin that broke is a status of code ERROR, which holds the pod back, too."""


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """How long pods wait. Kubernetes' defaults."""

    initial_backoff_s: float = 1.0
    max_backoff_s: float = 10.0
    """0 switches backing off off."""
    max_unschedulable_s: float = 300.0
    pop_from_backoff: bool = True
    """Whether a pod may be tried before its backoff is over when there is nothing else to do."""


@dataclass(frozen=True, slots=True)
class QueueProfile:
    """The plugins of one scheduler name, as far as they matter here."""

    sort_key: Callable[[QueuedPod], tuple[float, ...]]
    pre_enqueue: PreEnqueueCheck
    """All preEnqueue plugins: OK, or the status of one that holds the pod back, with its name."""
    events: Mapping[str, Sequence[RegisteredEvent]]
    """By plugin, the events that can undo its rejections."""
    gates: Mapping[str, PreEnqueueCheck] = field(default_factory=dict)
    """PreEnqueue plugins one by one: who held a pod back is asked first the next time."""


def registered_events(plugins: Iterable[Plugin]) -> dict[str, Sequence[RegisteredEvent]]:
    """By plugin, what it registered, or every change for one that does not say. Plugins that cannot reject a pod in a
    way that waits for a change are left out."""
    return {
        plugin.name: plugin.events_to_register() if isinstance(plugin, EnqueueExtensions) else EVERY_CHANGE
        for plugin in plugins
        if extension_points_of(plugin) & _POINTS_THAT_REJECT
    }
