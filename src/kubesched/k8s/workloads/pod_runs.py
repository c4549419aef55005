"""How long a hollow pod runs and how it ends, as its annotations say.

`kubesched.dev/duration` says how long it runs; without it, it runs on. `kubesched.dev/result: Failed` makes it fail at
the end of that time, `kubesched.dev/exit-code` with which code. Simulated and hollow nodes both ask here.
"""

from __future__ import annotations

from kubesched.k8s.model.durations import Duration, DurationError
from kubesched.k8s.model.meta import ObjectMeta
from kubesched.k8s.workloads.pod_states import POD_FAILED, POD_SUCCEEDED

DURATION_ANNOTATION = "kubesched.dev/duration"
RESULT_ANNOTATION = "kubesched.dev/result"
EXIT_CODE_ANNOTATION = "kubesched.dev/exit-code"
_HIGHEST_EXIT_CODE = 255


class AnnotationError(ValueError):
    """An annotation of ours cannot be understood."""


def duration_s(metadata: ObjectMeta) -> float | None:
    """How long a pod with this metadata runs; None for ever. Raises AnnotationError."""
    return seconds_of(metadata, DURATION_ANNOTATION)


def seconds_of(metadata: ObjectMeta, key: str) -> float | None:
    """What an annotation says that holds a duration. Raises AnnotationError."""
    text = (metadata.annotations or {}).get(key)
    if text is None:
        return None
    try:
        found = Duration.parse(text).seconds
    except DurationError as problem:
        raise AnnotationError(f"{key}: {problem}") from None
    if found < 0:
        raise AnnotationError(f'{key}: "{text}" is negative')
    return found


def fails(metadata: ObjectMeta) -> bool:
    """Whether a pod with this metadata ends in failure. Raises AnnotationError."""
    return exit_code(metadata) != 0


def exit_code(metadata: ObjectMeta) -> int:
    """With which its containers end. Raises AnnotationError."""
    annotations = metadata.annotations or {}
    result = annotations.get(RESULT_ANNOTATION)
    if result not in (None, POD_SUCCEEDED, POD_FAILED):
        raise AnnotationError(f'{RESULT_ANNOTATION}: "{result}" is neither {POD_SUCCEEDED} nor {POD_FAILED}')
    text = annotations.get(EXIT_CODE_ANNOTATION)
    if text is None:
        return 1 if result == POD_FAILED else 0
    if not text.isdecimal() or not text.isascii() or int(text[:9]) > _HIGHEST_EXIT_CODE:
        raise AnnotationError(f'{EXIT_CODE_ANNOTATION}: "{text}" is not a number from 0 to {_HIGHEST_EXIT_CODE}')
    if result is not None and (result == POD_FAILED) != (int(text) != 0):
        raise AnnotationError(f'{EXIT_CODE_ANNOTATION}: "{text}" does not go with {RESULT_ANNOTATION}: {result}')
    return int(text)
