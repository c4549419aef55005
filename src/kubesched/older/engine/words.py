"""What pods' events said of failed attempts, and victims of their preemptors, by the words of a version.

The message of an unschedulable pod had no word of preemption, and every node counted. Whatever ended a search for a
node was called unschedulable, broken or not. What failed later had words of its own in the event, and often others in
the condition.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Status
from kubesched.older.config import Generation
from kubesched.scheduler.engine.cycle import Decision
from kubesched.scheduler.engine.extender import EXTENDER
from kubesched.scheduler.engine.extender.cycle import ExtendedDiagnosis
from kubesched.scheduler.engine.failure import SCHEDULER_ERROR, UNSCHEDULABLE, FailureWords, Told
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.engine.postfilter import Diagnosis
from kubesched.scheduler.engine.preemption.execution import VictimNote


@dataclass(slots=True)
class OlderDiagnosis(Diagnosis):
    def message(self) -> str:
        if not self.prefilter.status.is_success:
            return rejected_as_a_whole(self)
        return fit_error(len(self.cluster_nodes), {} if self.filtered is None else self.filtered.reason_counts())


def message_with_extenders(diagnosis: ExtendedDiagnosis) -> str:
    """The same of a search in which extenders took part: their reasons stood beside those of the others, and a node
    that they dropped without one was not counted."""
    if not diagnosis.prefilter.status.is_success:
        return rejected_as_a_whole(diagnosis)
    found = diagnosis.explicit().values()
    return fit_error(len(diagnosis.cluster_nodes), Counter(reason for status in found for reason in status.reasons))


def rejected_as_a_whole(diagnosis: Diagnosis) -> str:
    n = len(diagnosis.cluster_nodes)
    return fit_error(n, dict.fromkeys(diagnosis.prefilter.status.reasons, n))


def fit_error(n_nodes: int, counts: Mapping[str, int]) -> str:
    lines = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f"0/{n_nodes} nodes are available: {', '.join(lines)}."


VOLUME_BINDING_FAILED = "VolumeBindingFailed"
BINDING_REJECTED = "BindingRejected"

_TODAY = re.compile(r'running (?P<point>Reserve|PreBind|Bind) plugin "[^"]*": (?P<message>.*)', re.DOTALL)
"""How today's extension points word the failure of a plugin."""


def speak_as_of_then(loop: Scheduler, generation: Generation) -> None:
    """Puts the words of a version in the place of today's."""
    loop.failures.words = WordsOfThen(generation)
    loop.preemptions.note = _victim_note(generation)


class WordsOfThen(FailureWords):
    def __init__(self, generation: Generation) -> None:
        self._generation = generation

    def of_decision(self, decision: Decision) -> Told:
        """The reason is the same for a pod that fits nowhere and for one that something broke over."""
        diagnosis = decision.diagnosis
        if isinstance(diagnosis, ExtendedDiagnosis) and not decision.error:
            message = message_with_extenders(diagnosis)
        else:
            message = decision.message
        return Told(UNSCHEDULABLE, message, message, self._generation.sets_probe_time)

    def of_status(self, pod: PodInfo, status: Status) -> Told:
        return self._late_failure(pod, status)._replace(is_probe=self._generation.sets_probe_time)

    def _late_failure(self, pod: PodInfo, status: Status) -> Told:
        """Of the plugins that ran then, only that of volumes reserves and prepares."""
        if status.plugin == EXTENDER:
            return self._binding_rejected(status.message)
        today = _TODAY.fullmatch(status.message)
        if today is None:
            return super().of_status(pod, status)
        extension_point, message = today["point"], today["message"]
        if extension_point == "Bind":
            return self._binding_rejected(self._bind_error(pod, status.plugin, message))
        if self._generation.volumes_are_a_plugin:
            plugin = f'Reserve in "{status.plugin}"' if extension_point == "Reserve" else f'"{status.plugin}"'
            message = f'error while running {plugin} {extension_point.lower()} plugin for pod "{pod.name}": {message}'
            return Told(SCHEDULER_ERROR, message, message)
        if extension_point == "Reserve":
            return Told(SCHEDULER_ERROR, message, f"AssumePodVolumes failed: {message}")
        by_reason = self._generation.tells_late_failures_by_reason
        return Told(VOLUME_BINDING_FAILED, "" if by_reason else message, message)

    def _bind_error(self, pod: PodInfo, plugin: str, message: str) -> str:
        if not self._generation.binds_by_plugin:
            return message
        return f'plugin "{plugin}" failed to bind pod "{pod.key}": {message}'

    def _binding_rejected(self, message: str) -> Told:
        note = f"Binding rejected: {message}"
        if self._generation.tells_late_failures_by_reason:
            return Told(BINDING_REJECTED, "", note)
        return Told(SCHEDULER_ERROR, note if self._generation.one_message_on_failure else message, note)


def _victim_note(generation: Generation) -> VictimNote:
    def note(preemptor: PodInfo, node_name: str) -> str:
        return generation.victim_note.format(preemptor=preemptor.key, node=node_name)

    return note
