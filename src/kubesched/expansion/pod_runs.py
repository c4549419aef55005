"""How long a pretend pod runs and how it ends, as its annotations say.

`kubesched.dev/duration` says how long it runs; without it, it runs on. `kubesched.dev/result: Failed` makes it fail at
the end of that time. Simulated kubelets and those of a playground both ask here.
"""

from __future__ import annotations

from kubesched.config.durations import Duration, DurationError
from kubesched.expansion.pod_states import POD_FAILED, POD_SUCCEEDED
from kubesched.model.meta import ObjectMeta

DURATION_ANNOTATION = "kubesched.dev/duration"
RESULT_ANNOTATION = "kubesched.dev/result"


class AnnotationError(ValueError):
    """An annotation of ours cannot be understood."""


def duration_s(metadata: ObjectMeta) -> float | None:
    """How long a pod with this metadata runs; None for ever. Raises AnnotationError."""
    text = (metadata.annotations or {}).get(DURATION_ANNOTATION)
    if text is None:
        return None
    try:
        found = Duration.parse(text).seconds
    except DurationError as mistake:
        raise AnnotationError(f"{DURATION_ANNOTATION}: {mistake}") from None
    if found < 0:
        raise AnnotationError(f'{DURATION_ANNOTATION}: "{text}" is negative')
    return found


def fails(metadata: ObjectMeta) -> bool:
    """Whether a pod with this metadata ends in failure. Raises AnnotationError."""
    text = (metadata.annotations or {}).get(RESULT_ANNOTATION, POD_SUCCEEDED)
    if text not in (POD_SUCCEEDED, POD_FAILED):
        raise AnnotationError(f'{RESULT_ANNOTATION}: "{text}" is neither {POD_SUCCEEDED} nor {POD_FAILED}')
    return text == POD_FAILED
