"""Pods that wait for a node: in which order they are tried, and what brings back those that failed.

Read in this order: `scheduling_queue` (the whole, and what can be looked at), `sub_queues` (active, backoff,
unschedulable, and in flight), `queued_pod` (what is remembered of a pod), `hints` (what an event means for a pod),
`changes` (which events a changed object makes), `profile` (what the queue is told).
"""

from kubesched.scheduler.queue.profile import QueueProfile, QueueSettings, registered_events
from kubesched.scheduler.queue.queued_pod import QueuedPodInfo
from kubesched.scheduler.queue.scheduling_queue import SchedulingQueue

__all__ = ["QueueProfile", "QueueSettings", "QueuedPodInfo", "SchedulingQueue", "registered_events"]
