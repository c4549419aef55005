"""Extenders: HTTP services that filter, score, preempt and bind for pods that interest them.

A pod that interests an extender takes a cycle that pauses (`cycle`) while the extender is asked; other pods go on
meanwhile. About the pods of a group they are asked before it is tried (`group_advice`). One extender, what is said to
it and what it says, is `http_extender`; what it is asked at each extension point, and what follows, is `verbs`.

Nothing here opens a connection: calls are effects (`framework.effects.CallExtender`).
"""

from kubesched.scheduler.engine.extender.cycle import PausedCycles
from kubesched.scheduler.engine.extender.group_advice import GroupPauses, MissingAdviceError, PausedGroup
from kubesched.scheduler.engine.extender.http_extender import EXTENDER, HTTPExtender, build_extenders, refused

__all__ = [
    "EXTENDER",
    "GroupPauses",
    "HTTPExtender",
    "MissingAdviceError",
    "PausedCycles",
    "PausedGroup",
    "build_extenders",
    "refused",
]
