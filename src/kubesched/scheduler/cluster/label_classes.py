"""Label classes: the distinct (namespace, labels) among pods, and which of them a selector picks.

A selector is asked once per class, not once per pod; and an index by label value keeps even that small when every
pod has labels of its own (stateful sets, jobs).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model.selectors import Selector

_encode = msgspec.json.Encoder().encode

_Question = tuple[Selector, frozenset[str] | None]


class LabelClasses:
    """Numbers for (namespace, labels). Answers to selectors are kept, and extended as new classes appear."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._namespaces: list[str] = []
        self._labels: list[dict[str, str]] = []
        self._by_pair: dict[tuple[str, str], list[int]] = {}
        self._answers: dict[_Question, BoolArray] = {}

    def __len__(self) -> int:
        return len(self._labels)

    def intern(self, namespace: str, labels: dict[str, str] | None) -> int:
        key = _encode((namespace, labels))
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._labels)
            self._namespaces.append(namespace)
            self._labels.append(labels or {})
            for pair in (labels or {}).items():
                self._by_pair.setdefault(pair, []).append(number)
        return number

    def picked_by(self, selector: Selector, namespaces: frozenset[str] | None) -> BoolArray:
        """(n_classes,) which classes the selector picks in these namespaces (None: in all)."""
        question = (selector, namespaces)
        known = self._answers.get(question)
        n = len(self._labels)
        if known is not None and len(known) == n:
            return known
        answer = np.zeros(n, dtype=np.bool_)
        start = 0
        if known is not None:
            start = len(known)
            answer[:start] = known
        for number in self._candidates(selector, start):
            if namespaces is None or self._namespaces[number] in namespaces:
                answer[number] = selector.matches(self._labels[number])
        self._answers[question] = answer
        return answer

    def _candidates(self, selector: Selector, start: int) -> Iterable[int]:
        """Classes from `start` on that may match: those with a value the most selective requirement asks for."""
        if selector.nothing:
            return ()
        best: list[int] | None = None
        for requirement in selector.requirements:
            if requirement.operator == "In":
                found = [n for value in requirement.values for n in self._by_pair.get((requirement.key, value), ())]
                if best is None or len(found) < len(best):
                    best = found
        if best is None:
            return range(start, len(self._labels))
        return (number for number in best if number >= start)
