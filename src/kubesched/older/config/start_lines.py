"""What an older scheduler logged about its predicates and priorities while it started, with the verbosity of each line.

What it printed of memory addresses, or in an order of chance, is printed as JSON, or sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from kubesched.older.config import names
from kubesched.older.config.algorithm_source import AUTOSCALER_PROVIDER, DEFAULT_PROVIDER
from kubesched.older.config.emulated import Emulation
from kubesched.older.config.generations import EVEN_PODS_SPREAD, RESOURCE_LIMITS, TAINT_NODES_BY_CONDITION
from kubesched.older.config.policy import Policy, PredicatePolicy, PriorityPolicy
from kubesched.older.config.policy_profile import PolicyReader
from kubesched.older.config.running import extenders_without_keys

Line = tuple[int, str]
"""(V-level, text)"""


def start_lines(emulation: Emulation) -> Iterator[Line]:
    yield from _lines_of_gates(emulation)
    if emulation.source.policy is None:
        yield 2, f"Creating scheduler from algorithm provider '{emulation.source.provider}'"
        if emulation.generation.registers_functions:
            yield _keys(emulation, *_provided(emulation))
    else:
        yield from _lines_of_policy(emulation, emulation.source.policy)


def _lines_of_gates(emulation: Emulation) -> Iterator[Line]:
    generation, gates = emulation.generation, emulation.gates
    if generation.has_predicates and gates.enabled(TAINT_NODES_BY_CONDITION):
        yield 0, "TaintNodesByCondition is enabled, PodToleratesNodeTaints predicate is mandatory"
    if EVEN_PODS_SPREAD in generation.gates and gates.enabled(EVEN_PODS_SPREAD):
        yield 0, "Registering EvenPodsSpread predicate and priority function"
    if gates.enabled(RESOURCE_LIMITS):
        yield 0, "Registering resourcelimits priority function"
    if not generation.gates:
        yield 0, "Registering SelectorSpread plugin"


def _lines_of_policy(emulation: Emulation, policy: Policy) -> Iterator[Line]:
    generation, gates = emulation.generation, emulation.gates
    extenders = extenders_without_keys(emulation)
    shown = msgspec.to_builtins(policy) | ({"extenders": extenders} if extenders else {})
    yield 2, f"Creating scheduler from configuration: {msgspec.json.encode(shown).decode()}"
    if policy.predicates is None:
        yield 2, f"Using predicates from algorithm provider '{DEFAULT_PROVIDER}'"
    known = names.known_predicates(generation, gates)
    for predicate in policy.predicates or ():
        yield 2, f"Registering predicate: {predicate.name}"
        if _is_reused(predicate, known, emulation):
            yield 2, f"Predicate type {predicate.name} already registered, reusing."
    if policy.priorities is None:
        standard = f"Using priorities from algorithm provider '{DEFAULT_PROVIDER}'"
        yield 2, standard if generation.registers_functions else "Using default priorities"
    known = names.known_priorities(generation, gates)
    for priority in policy.priorities or ():
        if priority.name == names.EQUAL_PRIORITY and not generation.has_predicates:
            yield 2, f"Skip registering priority: {priority.name}"
            continue
        yield 2, f"Registering priority: {priority.name}"
        if _is_reused(priority, known, emulation):
            is_alias = priority.name == names.SERVICE_SPREADING_PRIORITY and not generation.registers_functions
            name = names.SELECTOR_SPREAD_PRIORITY if is_alias else priority.name
            yield 2, f"Priority type {name} already registered, reusing."
    lines = [(2, f"Creating extender with config {msgspec.json.encode(extender).decode()}") for extender in extenders]
    keys = _keys(emulation, *PolicyReader(policy, generation, gates).keys())
    yield from (*lines, keys) if generation.registers_functions else (keys, *lines)


def _is_reused(entry: PredicatePolicy | PriorityPolicy, known: frozenset[str], emulation: Emulation) -> bool:
    """Where an argument makes a new function, a name alone is found."""
    return entry.name in known and (entry.argument is None or not emulation.generation.registers_functions)


def _provided(emulation: Emulation) -> tuple[frozenset[str], Mapping[str, int]]:
    priorities = dict(names.default_priorities(emulation.generation, emulation.gates))
    if emulation.source.provider == AUTOSCALER_PROVIDER:
        priorities["MostRequestedPriority"] = priorities.pop("LeastRequestedPriority")
    return names.default_predicates(emulation.generation, emulation.gates), priorities


def _keys(emulation: Emulation, predicates: frozenset[str], priorities: Mapping[str, int]) -> Line:
    """Sets in the form in which Go prints them; weights stand there from 1.18 on."""
    shown = "{}" if emulation.generation.registers_functions else None
    left = " ".join(f"{name}:{{}}" for name in sorted(predicates))
    right = " ".join(f"{name}:{shown or priorities[name]}" for name in sorted(priorities))
    return 2, f"Creating scheduler with fit predicates 'map[{left}]' and priority functions 'map[{right}]'"
