"""What `kubesched run` says about pods and nodes: kube-scheduler's lines, at its levels.

Next: `scheduling`, which writes them.
"""

from __future__ import annotations

import logging

from kubesched.k8s.connections.log_lines import LogLine


def _names(pairs: str) -> tuple[str, ...]:
    return tuple(name.replace("·", " ") for name in pairs.split())


def info(message: str, v: int, pairs: str, when: str, *, is_ours: bool = False) -> LogLine:
    """A line that `-v` asks for."""
    return LogLine(message, v, _names(pairs), when, is_ours=is_ours)


def error(message: str, pairs: str, when: str, *, is_ours: bool = False) -> LogLine:
    """A line that is always written."""
    return LogLine(message, 0, _names(pairs), when, logging.ERROR, is_ours)


# -- facts -------------------------------------------------------------------------------------------------------------

NODE_ADDED = info("Add event for node", 3, "node", "A node was added.")
NODE_UPDATED = info("Update event for node", 4, "node", "A node changed.")
NODE_DELETED = info("Delete event for node", 3, "node", "A node was deleted.")
NODE_IN_TREE = info("Added node to NodeTree", 2, "node zone", "The node counts from here on.")
NODE_OUT_OF_TREE = info("Removed node from NodeTree", 2, "node zone", "The node no longer counts.")
SCHEDULED_POD_ADDED = info("Add event for scheduled pod", 3, "pod", "A pod was bound to a node, by any scheduler.")
SCHEDULED_POD_UPDATED = info("Update event for scheduled pod", 4, "pod", "A pod on a node changed.")
SCHEDULED_POD_DELETED = info("Delete event for scheduled pod", 3, "pod", "A pod left its node, or has finished.")
UNSCHEDULED_POD_ADDED = info("Add event for unscheduled pod", 3, "pod", "A pod of ours is to be scheduled.")
UNSCHEDULED_POD_UPDATED = info("Update event for unscheduled pod", 4, "pod", "It changed.")
UNSCHEDULED_POD_DELETED = info("Delete event for unscheduled pod", 3, "pod", "It was deleted, or bound.")

# -- the queue ---------------------------------------------------------------------------------------------------------

MOVED = info("Pod moved to an internal scheduling queue", 5, "pod event queue", "The pod is now in this queue.")
MOVED_GATED = info(
    "Pod moved to an internal scheduling queue, because the pod is gated",
    5,
    "pod event queue",
    "A PreEnqueue plugin holds it back.",
)
REQUEUED = info(
    "Pod moved to an internal scheduling queue",
    3,
    "pod event queue schedulingCycle hint unschedulable·plugins",
    "After a failed attempt; what rejected the pod decides which changes bring it back.",
)
GATED = info("Status after running PreEnqueue plugin", 4, "pod plugin status", "A pod is gated.")
GATE_FAILED = error("Unexpected error running PreEnqueue plugin", "err pod plugin", "A PreEnqueue plugin failed.")
HINT_FAILED = error(
    "QueueingHintFn returns error", "err event plugin pod", "A plugin's hint broke; the pod is tried again."
)

# -- an attempt --------------------------------------------------------------------------------------------------------

ABOUT_TO_TRY = info("About to try and schedule pod", 4, "pod", "The pod was taken from the queue.")
ATTEMPTING = info("Attempting to schedule pod", 3, "pod", "An attempt begins.")
SKIPPED = info("Skip schedule deleting pod", 3, "pod", "The pod is being deleted.")
PRE_FILTER_STATUS = info(
    "Status after running PreFilter plugins for pod", 5, "pod status", "A PreFilter plugin rejected it."
)
POST_FILTER_STATUS = info(
    "Status after running PostFilter plugins for pod", 5, "pod status", "No node fits; what could be done about it."
)
POST_FILTER_FAILED = error(
    "Status after running PostFilter plugins for pod", "pod status", "A PostFilter plugin failed."
)
PLUGIN_SCORE = info(
    "Plugin scored node for pod",
    10,
    "pod plugin node score",
    "One plugin's score of one feasible node, normalised and weighted.",
)
FINAL_SCORE = info("Calculated node's final score for pod", 10, "pod node score", "The sum for one feasible node.")
SELECTING_FAILED = error("Error selecting node for pod", "err pod", "A plugin or an extender failed.")
NO_FIT = info("Unable to schedule pod; no fit; waiting", 2, "pod err", "No node fits; `err` is the pod's condition.")
NO_NODES = info(
    "Unable to schedule pod; no nodes are registered to the cluster; waiting", 2, "pod", "There is no node at all."
)
RETRYING = error(
    "Error scheduling pod; retrying", "err pod", "The attempt failed by an error; after a backoff it is tried again."
)
POD_GONE = info("Pod doesn't exist in informer cache", 0, "pod err", "It was deleted while it was tried.")
POD_ASSIGNED = info(
    "Pod has been assigned to node. Abort adding it back to queue.", 0, "pod node", "Another scheduler bound it."
)
POD_RECREATED = info(
    "Pod was recreated while handling scheduling failure. Skip requeueing and status updates.",
    2,
    "pod oldUID newUID",
    "Another pod of that name is there now.",
)
STATUS_CHANGED = info(
    "Updating pod condition and nominated node name",
    3,
    "pod conditionType conditionStatus conditionReason nominatedNodeName nominatingMode",
    "The pod's status is written.",
)

# -- preemption --------------------------------------------------------------------------------------------------------

NO_PREEMPTION = info(
    "No PostFilter plugins are registered, so no preemption will be performed", 3, "", "Preemption is off."
)
NOT_ELIGIBLE = info("Pod is not eligible for preemption", 5, "pod reason", "It may not preempt, or not again yet.")
DRY_RUN = info(
    "Dry run the preemption",
    5,
    "pod potentialNodesNumber pdbsNumber offset candidatesNumber",
    "Nodes where evictions may help are tried.",
)
NO_POTENTIAL_NODE = info("Preemption will not help schedule pod on any node", 3, "pod", "Evictions help on no node.")
NO_CANDIDATE = info(
    "No preemption candidate is found; preemption is not helpful for scheduling", 2, "pod", "No eviction would help."
)
TARGET = info("the target node for the preemption is determined", 2, "pod node", "Victims are evicted on this node.")
PREEMPTION_STARTED = info(
    "Start the preemption asynchronously",
    2,
    "preemptor node numVictims numVictimsToDelete",
    "The evictions start.",
)
VICTIM_EVICTED = info("Preemptor Pod preempted victim Pod", 2, "preemptor victim node", "A victim was evicted.")
VICTIM_GONE = info("Victim Pod is already deleted", 2, "preemptor victim node", "It was deleted in the meantime.")
WAITING_VICTIM = info(
    "Preemptor preempted a waiting pod", 2, "preemptor waitingPod node", "A victim waited for a permit: no eviction."
)
PRE_BIND_VICTIM = info(
    "Preemptor rejected a pod in preBind", 2, "preemptor podInPreBind node", "A victim was not bound yet: no eviction."
)
EVICTION_FAILED = error("Tried to preempted pod", "err pod preemptor", "A victim could not be evicted.")
PREEMPTION_ENDED = info(
    "Async Preemption finished completely",
    2,
    "preemptor node result",
    "All victims were evicted, or one eviction failed.",
)

# -- from a node to a binding ------------------------------------------------------------------------------------------

ASSUME_VOLUMES = info("AssumePodVolumes", 4, "pod node", "Volumes are reserved for the pod.")
TRYING_VOLUMES = info("Trying to bind volumes for pod", 5, "pod", "PreBind of VolumeBinding begins.")
VOLUMES_BOUND = info("Success binding volumes for pod", 5, "pod", "It succeeded.")
VOLUMES_FAILED = info("Failed to bind volumes for pod", 5, "pod err", "It failed.")
REJECTED = info("Pod rejected by plugin", 4, "pod plugin status", "By a Reserve or Permit plugin.")
PRE_BIND_REJECTED = info("Pod rejected by PreBind plugin", 4, "pod node plugin status", "By a PreBind plugin.")
BIND_REJECTED = info("Pod rejected by Bind plugin", 4, "pod node plugin status", "By a Bind plugin.")
ASKED_TO_WAIT = info("One or more plugins asked to wait and no plugin rejected pod", 4, "pod", "By Permit plugins.")
WAITING = info("Pod waiting on permit", 4, "pod", "The pod has its node, and waits.")
WAIT_REJECTED = info(
    "Pod rejected while waiting on permit", 4, "pod status", "A plugin rejected it, or the timeout expired."
)
WAIT_FAILED = error("Failed waiting on permit for pod", "err pod", "The wait ended with an error.")
ATTEMPTING_TO_BIND = info("Attempting to bind pod to node", 3, "pod node", "The binding is written.")
BIND_FAILED = info("Failed to bind pod", 1, "pod", "The binding was rejected, or could not be written.")
BOUND = info(
    "Successfully bound pod to node",
    2,
    "pod node evaluatedNodes feasibleNodes",
    "The pod has its node; how many nodes were looked at, and how many of them fit.",
)
AFTER_FLUSH = info(
    "Pod scheduled after flush from unschedulablePods",
    4,
    "pod",
    "No event had brought it back: a hint may have missed one.",
)
UNDONE = info("Unreserved pod", 4, "pod node status", "The binding failed; its resources are free.", is_ours=True)

# -- trouble -----------------------------------------------------------------------------------------------------------

PLUGIN_FAILED = error(
    "Plugin failed",
    "err plugin pod node",
    "A plugin answered with an error; one that broke is told with its stack, once a minute for each place, "
    "with `repeated` for those not written.",
)
NOBODY_ANSWERED = error(
    "An effect was not answered; reading the object to settle it",
    "what about waited tries",
    "The loop waited for an answer that would never have come: a bug.",
    is_ours=True,
)
CLASS_MISSES = info(
    "Pods have too many different signatures for the class cache; every pod is evaluated on every node",
    1,
    "profile missed decided",
    "Nine of ten decisions or more had to be made from scratch.",
    is_ours=True,
)

# -- pod groups --------------------------------------------------------------------------------------------------------

GROUP_ATTEMPTING = info("Attempting to schedule pod group", 3, "podGroup", "Its pods are tried together.")
GROUP_TRYING = info(
    "Running a pod group scheduling algorithm", 5, "podGroup unscheduledPodsCount", "So many pods of it."
)
GROUP_POD_ATTEMPTING = info("Attempting to schedule a pod belonging to a pod group", 4, "podGroup pod", "One of them.")
PLACEMENT_TRIED = info("Assuming placement in snapshot", 4, "podGroup placement", "They are tried on its nodes alone.")
GROUP_SCHEDULED = info(
    "Successfully scheduled a pod group", 2, "podGroup scheduledPods unschedulablePods", "The group fits."
)
GROUP_WAITS = info(
    "Pod group is waiting for preemption", 2, "podGroup unschedulablePods", "It fits once victims have left."
)
GROUP_UNSCHEDULABLE = info("Unable to schedule a pod group", 2, "podGroup unschedulablePods", "It does not fit.")
GROUP_ERROR = error("Error scheduling pod group", "err podGroup errorPods", "Something failed over one of its pods.")
GROUP_MISSING = error("Failed to get PodGroup for status update", "podGroup", "Pods name a PodGroup that is not there.")
