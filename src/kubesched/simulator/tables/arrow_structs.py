"""The structures of Arrow's C data interface, and the capsules they travel in.

A capsule owns its structure until somebody takes it over, which shows by `release` being empty; if nobody does, the
capsule releases it when it goes.

Next: `arrow`, which fills them.
"""

from __future__ import annotations

import ctypes
from typing import Any

_own_api = ctypes.PyDLL("", handle=ctypes.pythonapi._handle)
"""Python's C functions, of our own: signatures set on `ctypes.pythonapi` would be everybody's."""

_new_capsule = _own_api.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class ArrowSchema(ctypes.Structure):
    """Fields below, because they speak of the structure itself."""


class ArrowArray(ctypes.Structure):
    """Fields below."""


class ArrowArrayStream(ctypes.Structure):
    """Fields below."""


ReleaseSchema = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowSchema))
ReleaseArray = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowArray))
ReleaseStream = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowArrayStream))
GetSchema = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ArrowArrayStream), ctypes.POINTER(ArrowSchema))
GetNext = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ArrowArrayStream), ctypes.POINTER(ArrowArray))
GetLastError = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ArrowArrayStream))

ArrowSchema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))),
    ("dictionary", ctypes.POINTER(ArrowSchema)),
    ("release", ReleaseSchema),
    ("private_data", ctypes.c_void_p),
]
ArrowArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))),
    ("dictionary", ctypes.POINTER(ArrowArray)),
    ("release", ReleaseArray),
    ("private_data", ctypes.c_void_p),
]
ArrowArrayStream._fields_ = [
    ("get_schema", GetSchema),
    ("get_next", GetNext),
    ("get_last_error", GetLastError),
    ("release", ReleaseStream),
    ("private_data", ctypes.c_void_p),
]

SCHEMA_CAPSULE = b"arrow_schema"
STREAM_CAPSULE = b"arrow_array_stream"

_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)

_alive: dict[int, Any] = {}
"""Structures with their destructors, by the structure's address."""

_spent: list[int] = []
"""Addresses of those whose capsule is gone. A destructor cannot be thrown away while it runs, but any time later."""


def in_capsule(structure: ArrowSchema | ArrowArrayStream) -> object:
    """The structure in the capsule that libraries expect it in."""
    while _spent:
        _alive.pop(_spent.pop(), None)
    address = ctypes.addressof(structure)

    def destroy(_: int) -> None:
        if structure.release:
            structure.release(ctypes.byref(structure))
        _spent.append(address)

    destructor = _Destructor(destroy)
    _alive[address] = (structure, destructor)
    name = SCHEMA_CAPSULE if isinstance(structure, ArrowSchema) else STREAM_CAPSULE
    capsule: object = _new_capsule(address, name, ctypes.cast(destructor, ctypes.c_void_p))
    return capsule
