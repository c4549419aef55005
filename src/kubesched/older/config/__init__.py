"""Configurations of older schedulers: Policy, algorithm providers, and component configurations before v1.

Two things can be done with one: `convert` says what it becomes in today's configuration, and what is lost on the way;
`emulation` says what the scheduler of that time made of it, for those who want its very decisions.

Next: `generations` for the facts of each version, `policy` for the Policy file.
"""

from __future__ import annotations

from kubesched.older.config.emulated import (
    AlgorithmSource,
    EmulatedPlugin,
    EmulatedProfile,
    Emulation,
    PolicyConfigMap,
    PolicyFile,
    PolicyReference,
)
from kubesched.older.config.emulation import emulate
from kubesched.older.config.generations import EMULATED_VERSIONS, Generation, emulated_in_config, generation_of

__all__ = [
    "EMULATED_VERSIONS",
    "AlgorithmSource",
    "EmulatedPlugin",
    "EmulatedProfile",
    "Emulation",
    "Generation",
    "PolicyConfigMap",
    "PolicyFile",
    "PolicyReference",
    "emulate",
    "emulated_in_config",
    "generation_of",
]
