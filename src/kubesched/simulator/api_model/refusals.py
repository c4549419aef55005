"""How kube-apiserver refuses a write, as the answer to an effect."""

from __future__ import annotations

from kubesched.framework.effects import Failed

_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def not_found(resource: str, name: str) -> Failed:
    return Failed(f'{resource} "{name}" not found', is_gone=True)


def conflict(resource: str, name: str, problem: str = _MODIFIED) -> Failed:
    return Failed(f'Operation cannot be fulfilled on {resource} "{name}": {problem}')


def bound_other_uid(key: str, wanted: str, found: str) -> Failed:
    """A binding of a pod, and the one of this name is another one."""
    problem = (
        f"StorageError: invalid object, Code: 4, Key: /registry/pods/{key}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    )
    return conflict("pods", key.rpartition("/")[2], problem)


def patched_other_uid(key: str, wanted: str) -> Failed:
    """A patch of a pod, which includes the condition of an eviction, and the one of this name is another one."""
    name = key.rpartition("/")[2]
    return Failed(f'Pod "{name}" is invalid: metadata.uid: Invalid value: "{wanted}": field is immutable')
