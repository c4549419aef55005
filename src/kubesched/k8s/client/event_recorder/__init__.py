"""Events for `kubectl describe`: taken at once, told apart from repetitions, written in the background.

`EventRecorder.record` takes an `EventToRecord`; `choose_form` asks the server which kind of Event it serves.
`EventBroadcaster` is for controllers and kubelets, which write events in the older way.

Next: `recorder`, then `series` and `forms`.
"""

from kubesched.k8s.client.event_recorder.broadcaster import EventBroadcaster, EventSource, RecordEvent
from kubesched.k8s.client.event_recorder.forms import CoreV1Form, EventForm, EventsV1Form, choose_form
from kubesched.k8s.client.event_recorder.record import NORMAL, WARNING, EventToRecord, pod_reference
from kubesched.k8s.client.event_recorder.recorder import EventRecorder

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
