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

_new = _own_api.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_pointer_in = _own_api.PyCapsule_GetPointer
_pointer_in.restype = ctypes.c_void_p
_pointer_in.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
_name_of = _own_api.PyCapsule_GetName
_name_of.restype = ctypes.c_char_p
_name_of.argtypes = (ctypes.c_void_p,)


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

_in_capsules: dict[int, Any] = {}
"""Structures by address, as long as their capsule is there."""


def in_capsule(structure: ArrowSchema | ArrowArrayStream) -> object:
    """The structure in the capsule that libraries expect it in."""
    name = SCHEMA_CAPSULE if isinstance(structure, ArrowSchema) else STREAM_CAPSULE
    address = ctypes.addressof(structure)
    _in_capsules[address] = structure
    capsule: object = _new(address, name, ctypes.cast(_destructor, ctypes.c_void_p))
    return capsule


def _destroy(capsule: int) -> None:
    """Called by Python when a capsule goes; by its address, because the object itself must not be touched any more."""
    structure = _in_capsules.pop(_pointer_in(capsule, _name_of(capsule)), None)
    if structure is not None and structure.release:
        structure.release(ctypes.byref(structure))


_destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_destroy)
