"""Classes of pods with claims: what the claims ask is part of the class, the claims themselves are not.

Of each plugin that looks at claims a class knows its question, or that it has none: then it is asked about each pod's
own claims (`asked_anew`). A question that is new, and perhaps that of a single pod, is not worth a class.

Next: `cache`, which keeps them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from kubesched.framework.caching import ClaimQuestion, LooksAtClaims, Scope
from kubesched.framework.extension_points import PreScore
from kubesched.framework.pod_info import PodInfo, PodSignature
from kubesched.scheduler.engine.profile import Profile

_MOST_QUESTIONS = 4096


@dataclass(frozen=True, slots=True)
class ClaimPlugins:
    """The plugins that look at the claims of a class."""

    questions: Mapping[str, ClaimQuestion] = field(default_factory=dict)
    """By name, of those that say what is asked."""
    answering: tuple[LooksAtClaims, ...] = ()
    """These plugins."""
    own: tuple[LooksAtClaims, ...] = ()
    """The others, which are asked about each pod's own claims."""
    scoring: tuple[PreScore, ...] = ()
    """Those of the others that take part in PreScore."""
    names: Collection[str] = frozenset()
    """Of all."""


NO_CLAIMS = ClaimPlugins()


Questions = Mapping[str, ClaimQuestion]
"""By the name of the plugin; without those that are asked about this pod alone."""


class QuestionBook:
    """What the claims of pods ask. Knows which questions were asked before."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._looking: WeakKeyDictionary[PodSignature, Mapping[str, LooksAtClaims]] = WeakKeyDictionary()
        self._asked: OrderedDict[Hashable, int] = OrderedDict()
        """Questions that were asked, by plugin and what is asked; and a number for each."""
        self._n_asked = 0

    def questions_of(self, pod: PodInfo) -> tuple[Hashable, Questions]:
        """A key that is the same for pods that ask the same, and the questions."""
        found = {}
        numbers = []
        for name, plugin in self._plugins_looking_at(pod).items():
            question = plugin.question_of(pod)
            number = 0 if question is None else self._number((name, question.asked))
            numbers.append(number)
            if question is not None and number:
                found[name] = question
        return (pod.signature.without_claims, *numbers), found

    def plugins_for(self, pod: PodInfo, questions: Questions) -> ClaimPlugins:
        plugins = self._plugins_looking_at(pod)
        own = tuple(plugin for name, plugin in plugins.items() if name not in questions)
        return ClaimPlugins(
            questions,
            answering=tuple(plugins[name] for name in questions),
            own=own,
            scoring=tuple(plugin for plugin in own if isinstance(plugin, PreScore)),
            names=frozenset(plugins),
        )

    def _plugins_looking_at(self, pod: PodInfo) -> Mapping[str, LooksAtClaims]:
        """Those for which a pod like this has claims. The others have nothing to say, whatever its claims are."""
        signature = pod.signature.without_claims
        found = self._looking.get(signature)
        if found is None:
            steps = {step.name: step for step in self._profile.filter}
            plugins = self._profile.claim_plugins
            found = {
                name: plugin
                for name, plugin in plugins.items()
                if name not in steps or steps[name].scope_for(pod) is not Scope.NODE
            }
            self._looking[signature] = found
        return found

    def _number(self, question: Hashable) -> int:
        """0 for a question that was not asked before."""
        asked = self._asked
        number = asked.get(question)
        if number is not None:
            asked.move_to_end(question)
            return number
        self._n_asked += 1
        asked[question] = self._n_asked
        if len(asked) > _MOST_QUESTIONS:
            asked.popitem(last=False)
        return 0


def has_claims(pod: PodInfo) -> bool:
    """Whether the pod has claims, for volumes or devices."""
    spec = pod.spec
    if spec.resource_claims:
        return True
    return any(volume.persistent_volume_claim or volume.ephemeral for volume in spec.volumes or ())
