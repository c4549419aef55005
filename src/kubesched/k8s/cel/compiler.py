"""Turns a checked tree into one closure.

Whatever does not depend on the device is evaluated here, once; if that fails it is left to fail when it is evaluated,
as in cel-go, except for the conversions of literals, which cel-go tries out beforehand too. Metered programs are not
evaluated beforehand, so that they cost what they cost in cel-go.

Next: `program` runs the closure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kubesched.k8s.cel import calls, containers, control_flow, steps
from kubesched.k8s.cel.containers import Qualifier, build_list, build_map, build_struct
from kubesched.k8s.cel.control_flow import Iteration, first_present, optional_map, present_or
from kubesched.k8s.cel.errors import CelCompileError, CelError, CelEvaluationError
from kubesched.k8s.cel.library import DEVICE_VARIABLE
from kubesched.k8s.cel.library.standard import CONVERSIONS
from kubesched.k8s.cel.nodes import (
    CallExpr,
    Expr,
    ListExpr,
    LiteralExpr,
    MacroExpr,
    MacroKind,
    MapExpr,
    NameExpr,
    SelectExpr,
    StructExpr,
)
from kubesched.k8s.cel.steps import FIRST_LOCAL_SLOT, METER_SLOT, UNSET, CelStep, Evaluate, Frame, constant
from kubesched.k8s.cel.values import TypeValue
from kubesched.k8s.patterns import PatternError, compile_pattern

_INDEXES = {"_[_]": False, "_[?_]": True, "_?._": True}
_MAX_PATTERN_INSTRUCTIONS = 50_000
"""How large all literal patterns of an expression may be together."""


class Compiler:
    """Compiles one expression; `n_slots` is then the length that frames must have."""

    def __init__(self, is_metered: bool, variables: Sequence[str] = ()) -> None:
        """`variables` are in the first local slots of a frame, in this order."""
        self._is_metered = is_metered
        self._locals = {name: _variable(FIRST_LOCAL_SLOT + place) for place, name in enumerate(variables)}
        self.n_slots = FIRST_LOCAL_SLOT + len(variables)
        self._n_pattern_instructions = 0

    def compile(self, node: Expr) -> CelStep:
        return replace(self._compile(node), type=node.type)

    def _compile(self, node: Expr) -> CelStep:
        match node:
            case LiteralExpr():
                return constant(node.value, node.type, is_literal=True)
            case NameExpr() | SelectExpr():
                return self._access(node)
            case CallExpr() if node.function in _INDEXES:
                return self._access(node)
            case CallExpr():
                return self._call(node)
            case ListExpr():
                return self._list(node)
            case MapExpr():
                return self._map(node)
            case StructExpr():
                return self._struct(node)
            case _:
                assert isinstance(node, MacroExpr), node
                return self._macro(node)

    # -- constants and costs -----------------------------------------------------------------------------------------

    def _finish(self, run: Evaluate, node: Expr, parts: list[CelStep]) -> CelStep:
        """The step, or its value if all parts are constant."""
        if self._is_metered or not all(part.is_constant for part in parts):
            return CelStep(run, node.type)
        try:
            return constant(run([]), node.type)
        except CelError:
            return CelStep(run, node.type)

    def _charged(self, run: Evaluate, cost: int) -> Evaluate:
        if not self._is_metered or cost == 0:
            return run

        def charged(frame: Frame) -> object:
            frame[METER_SLOT].charge(cost)
            return run(frame)

        return charged

    # -- names and chains --------------------------------------------------------------------------------------------

    def _access(self, node: Expr, base_cost: int = 1) -> CelStep:
        """A chain of selections and indexes, costing 1 per part and 1 for the chain."""
        root, qualifiers, presence = self._unwind(node)
        if isinstance(root, SelectExpr):
            assert root.type_name is not None and not qualifiers
            return constant(TypeValue(root.type_name), root.type)
        cost = (1 if presence is not None else base_cost) + len(qualifiers)
        root_step = self._root(root)
        if root_step is None:
            found = containers.device_chain(qualifiers)
            run = containers.presence(found, presence) if presence is not None else found
            return CelStep(self._charged(run, cost), node.type)
        run = containers.chain(root_step.run, qualifiers)
        run = containers.presence(run, presence) if presence is not None else run
        keys = [qualifier.key for qualifier in qualifiers]
        return self._finish(self._charged(run, cost), node, [root_step, *keys])

    def _unwind(self, node: Expr) -> tuple[Expr, list[Qualifier], str | None]:
        """The root of a chain, its qualifiers in order, and the field whose presence is asked for."""
        presence: str | None = None
        qualifiers: list[Qualifier] = []
        if isinstance(node, SelectExpr) and node.presence:
            presence, node = node.field, node.operand
        while True:
            if isinstance(node, SelectExpr) and node.type_name is None and not node.presence:
                qualifiers.append(Qualifier(constant(node.field, node.type)))
                node = node.operand
            elif isinstance(node, CallExpr) and node.function in _INDEXES:
                qualifiers.append(Qualifier(self._key(node.args[1]), _INDEXES[node.function]))
                node = node.args[0]
            else:
                return node, qualifiers[::-1], presence

    def _key(self, node: Expr) -> CelStep:
        """An index; if it is itself a chain, that costs nothing but its parts."""
        is_chain = isinstance(node, NameExpr | SelectExpr) or (isinstance(node, CallExpr) and node.function in _INDEXES)
        return self._access(node, base_cost=0) if is_chain else self.compile(node)

    def _root(self, node: Expr) -> CelStep | None:
        """The step a chain starts from, None for the device."""
        if not isinstance(node, NameExpr):
            return self.compile(node)
        name = node.name.removeprefix(".")
        if name in self._locals:
            return self._locals[name]
        if name == DEVICE_VARIABLE:
            return None
        return constant(TypeValue(name), node.type)

    # -- calls -------------------------------------------------------------------------------------------------------

    def _call(self, node: CallExpr) -> CelStep:
        special = self._SPECIAL.get(node.function)
        if special is not None:
            return special(self, node)
        assert node.resolved is not None
        arguments = [self.compile(operand) for operand in node.operands]
        types = [operand.type for operand in node.operands]
        self._try_pattern(node, arguments)
        apply = calls.implementation(node.resolved, node.overloads, types)
        run = calls.invoke(apply, arguments)
        if node.resolved.name in CONVERSIONS and len(arguments) == 1 and arguments[0].is_literal:
            return self._convert_literal(run, node)
        return self._finish(self._metered_call(node, apply, arguments) or run, node, arguments)

    def _convert_literal(self, run: Evaluate, node: CallExpr) -> CelStep:
        try:
            return constant(run([]), node.type, is_literal=True)
        except CelEvaluationError as error:
            raise CelCompileError(f"program instantiation failed: {error}") from None

    def _try_pattern(self, node: CallExpr, arguments: list[CelStep]) -> None:
        """A literal pattern is compiled before the first device is seen."""
        if (
            node.function not in steps.PATTERN_FUNCTIONS
            or not arguments[1].is_literal
            or type(arguments[1].value) is not str
        ):
            return
        try:
            self._n_pattern_instructions += compile_pattern(arguments[1].value).n_instructions
            if self._n_pattern_instructions > _MAX_PATTERN_INSTRUCTIONS:
                raise PatternError("expression too large", arguments[1].value)
        except PatternError as error:
            raise CelCompileError(f"program instantiation failed: {error}") from None

    def _metered_call(self, node: CallExpr, apply: Callable[..., object], arguments: list[CelStep]) -> Evaluate | None:
        """The call with its price, which is charged before it is made."""
        if not self._is_metered:
            return None
        price = steps.price_of(node)
        runs = [argument.run for argument in arguments]
        name = node.function
        has_pattern = name in steps.PATTERN_FUNCTIONS

        def run(frame: Frame) -> object:
            values = tuple([argument(frame) for argument in runs])
            meter = frame[METER_SLOT]
            if has_pattern:
                meter.meet_pattern(values[1])
            meter.charge(price(values))
            result = apply(*values)
            meter.charge(steps.price_of_result(name, result))
            return result

        return run

    def _logical(self, node: CallExpr) -> CelStep:
        terms = [self.compile(term) for term in node.args]
        run = control_flow.junction([term.run for term in terms], deciding=node.function == "_||_")
        return self._finish(run, node, terms)

    def _conditional(self, node: CallExpr) -> CelStep:
        condition = self.compile(node.args[0])
        branches = [self._key(branch) for branch in node.args[1:]]
        run = control_flow.conditional(condition.run, branches[0].run, branches[1].run)
        return self._finish(run, node, [condition, *branches])

    def _equality(self, node: CallExpr) -> CelStep:
        left, right = (self.compile(operand) for operand in node.args)
        run = calls.equality(left, right, is_negated=node.function == "_!=_")
        if self._is_metered:
            assert node.resolved is not None and node.resolved.shared is not None
            run = self._metered_call(node, node.resolved.shared, [left, right]) or run
        return self._finish(run, node, [left, right])

    def _fitted(self, node: CallExpr) -> CelStep:
        """An operator, by the operation for its types if they are known."""
        left, right = (self.compile(operand) for operand in node.args)
        assert node.resolved is not None and node.resolved.shared is not None
        run = self._metered_call(node, node.resolved.shared, [left, right])
        run = run or calls.applied(node.function, left, right, node.resolved.shared)
        return self._finish(run, node, [left, right])

    def _membership(self, node: CallExpr) -> CelStep:
        """A constant list is made a set of, as in cel-go, where that costs nothing."""
        element, container = (self.compile(operand) for operand in node.args)
        is_in_list = [candidate.id for candidate in node.overloads] == ["in_list"]
        if is_in_list and container.is_literal:
            if not container.value:
                return constant(False, node.type)
            is_member = calls.membership_in(container.value)
            if is_member is not None:
                return self._finish(calls.invoke(is_member, [element]), node, [element])
        assert node.resolved is not None and node.resolved.shared is not None
        run = self._metered_call(node, node.resolved.shared, [element, container])
        return self._finish(run or calls.invoke(node.resolved.shared, [element, container]), node, [element, container])

    def _or(self, node: CallExpr) -> CelStep:
        left, right = (self.compile(operand) for operand in node.operands)
        combine = first_present if node.function == "or" else present_or
        return self._finish(combine(left.run, right.run), node, [left, right])

    _SPECIAL: dict[str, Callable[[Compiler, CallExpr], CelStep]] = {  # noqa: RUF012 - never changes
        "_&&_": _logical,
        "_||_": _logical,
        "_?_:_": _conditional,
        "_==_": _equality,
        "_!=_": _equality,
        "@in": _membership,
        "or": _or,
        "orValue": _or,
        **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_", "_+_", "_-_", "_*_", "_/_", "_%_"), _fitted),
    }

    # -- aggregates --------------------------------------------------------------------------------------------------

    def _list(self, node: ListExpr) -> CelStep:
        elements = [self.compile(element) for element in node.elements]
        run = build_list(elements, node.optional)
        return self._aggregate(run, node, elements, steps.LIST_COST)

    def _map(self, node: MapExpr) -> CelStep:
        pairs = [(self.compile(entry.key), self.compile(entry.value), entry.is_optional) for entry in node.entries]
        run = build_map(pairs)
        return self._aggregate(run, node, [part for pair in pairs for part in pair[:2]], steps.MAP_COST)

    def _struct(self, node: StructExpr) -> CelStep:
        fields = [(name, self.compile(entry.value), entry.is_optional) for name, entry in node.fields]
        run = build_struct(node.type_name, fields)
        return CelStep(self._charged(run, steps.STRUCT_COST), node.type)

    def _aggregate(self, run: Evaluate, node: Expr, parts: list[CelStep], cost: int) -> CelStep:
        if all(part.is_literal for part in parts):
            try:
                return constant(run([]), node.type, is_literal=True)
            except CelError:
                return CelStep(run, node.type)
        return self._finish(self._charged(run, cost), node, parts)

    # -- macros ------------------------------------------------------------------------------------------------------

    def _macro(self, node: MacroExpr) -> CelStep:
        if node.kind is MacroKind.BIND:
            return self._bind(node)
        if node.kind in (MacroKind.OPTIONAL_MAP, MacroKind.OPTIONAL_FLAT_MAP):
            return self._optional_map(node)
        return self._loop(node)

    def _slot(self) -> int:
        self.n_slots += 1
        return self.n_slots - 1

    def _within(self, variables: dict[str, CelStep], node: Expr) -> CelStep:
        """Compile a node in which some local variables are known."""
        outer = self._locals
        self._locals = {**outer, **variables}
        step = self.compile(node)
        self._locals = outer
        return step

    def _bind(self, node: MacroExpr) -> CelStep:
        """A variable whose value is computed when it is first asked for, if it ever is."""
        value = self.compile(node.subject)
        name = node.variables[0]
        if value.is_constant:
            return self._within({name: value}, node.body)
        slot, compute = self._slot(), value.run

        def read(frame: Frame) -> object:
            known = frame[slot]
            if known is UNSET:
                known = frame[slot] = compute(frame)
            return known

        body = self._within({name: CelStep(read, value.type)}, node.body).run

        def run(frame: Frame) -> object:
            frame[slot] = UNSET
            return body(frame)

        return CelStep(run, node.type)

    def _optional_map(self, node: MacroExpr) -> CelStep:
        subject, slot = self.compile(node.subject), self._slot()
        body = self._within({node.variables[0]: _variable(slot)}, node.body)
        is_flat = node.kind is MacroKind.OPTIONAL_FLAT_MAP
        return CelStep(optional_map(subject.run, slot, body.run, is_flat), node.type)

    def _loop(self, node: MacroExpr) -> CelStep:
        iterated = self.compile(node.subject)
        slots = tuple(self._slot() for _ in node.variables)
        variables = {name: _variable(slot) for name, slot in zip(node.variables, slots, strict=True)}
        body = self._within(variables, node.body).run
        predicate = self._within(variables, node.predicate).run if node.predicate is not None else None
        loop = Iteration(iterated.run, slots, steps.ROUND_COSTS[node.kind] if self._is_metered else 0)
        run = _loop_closure(node.kind, loop, predicate, body)
        return CelStep(self._charged(run, steps.RESULT_COSTS.get(node.kind, 1)), node.type)


def _variable(slot: int) -> CelStep:
    return CelStep(lambda frame: frame[slot])


def _loop_closure(kind: MacroKind, loop: Iteration, predicate: Evaluate | None, body: Evaluate) -> Evaluate:
    if kind is MacroKind.EXISTS_ONE:
        return control_flow.exists_one(loop, body)
    if kind in (MacroKind.ALL, MacroKind.EXISTS):
        return control_flow.quantifier(loop, body, deciding=kind is MacroKind.EXISTS)
    collectors = {
        MacroKind.COLLECT_LIST: control_flow.collect_list,
        MacroKind.COLLECT_MAP: control_flow.collect_map,
        MacroKind.COLLECT_ENTRIES: control_flow.collect_entries,
    }
    return collectors[kind](loop, predicate, body)
