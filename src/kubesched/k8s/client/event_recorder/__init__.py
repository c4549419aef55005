"""Events for `kubectl describe`: taken at once, told apart from repetitions, written in the background.

`EventRecorder.record` takes an `EventToRecord`; `choose_form` asks the server which kind of Event it serves.
`EventBroadcaster` is for controllers and kubelets, which write events in the older way.

Next: `recorder`, then `events`.
"""

from kubesched.k8s.client.event_recorder.events import (
    NORMAL,
    WARNING,
    CoreV1Form,
    EventForm,
    EventsV1Form,
    EventToRecord,
    choose_form,
    pod_reference,
)
from kubesched.k8s.client.event_recorder.recorder import EventBroadcaster, EventRecorder, EventSource, RecordEvent

__all__ = [
    "NORMAL",
    "WARNING",
    "CoreV1Form",
    "EventBroadcaster",
    "EventForm",
    "EventRecorder",
    "EventSource",
    "EventToRecord",
    "EventsV1Form",
    "RecordEvent",
    "choose_form",
    "pod_reference",
]
