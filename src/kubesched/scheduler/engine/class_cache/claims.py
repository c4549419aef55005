"""Classes of pods with claims: what the claims ask is part of the class, the claims themselves are not.

Of each plugin that looks at claims a class knows its question, or that it has none: then it is asked about each pod's
own claims (`asked_anew`). A question that is new, and perhaps that of a single pod, is not worth a class.

Next: `cache`, which keeps them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field

from kubesched.framework.claim_questions import ClaimQuestion, LooksAtClaims
from kubesched.framework.extension_points import PreScore
from kubesched.framework.pod_info import PodInfo
from kubesched.scheduler.engine.profile import Profile

_MOST_QUESTIONS = 4096


@dataclass(frozen=True, slots=True)
class ClaimPlugins:
    """The plugins that look at the claims of a class."""

    questions: Mapping[str, ClaimQuestion] = field(default_factory=dict)
    """By name, of those that say what is asked."""
    answering: tuple[LooksAtClaims, ...] = ()
    """These."""
    own: tuple[LooksAtClaims, ...] = ()
    """The others, which are asked about each pod's own claims."""
    scoring: tuple[PreScore, ...] = ()
    """Those of the others that take part in PreScore."""
    names: Collection[str] = frozenset()
    """Of all."""


NO_CLAIMS = ClaimPlugins()


class QuestionBook:
    """What the claims of pods ask. Knows which questions were asked before."""

    def __init__(self, profile: Profile) -> None:
        self._plugins = profile.claim_plugins
        self._asked: OrderedDict[Hashable, None] = OrderedDict()

    def questions_of(self, pod: PodInfo) -> Mapping[str, ClaimQuestion]:
        """By plugin; without those that are asked about this pod alone."""
        found = {}
        for name, plugin in self._plugins.items():
            question = plugin.question_of(pod)
            if question is not None and self._was_asked_before((name, question)):
                found[name] = question
        return found

    def plugins_for(self, questions: Mapping[str, ClaimQuestion]) -> ClaimPlugins:
        plugins = self._plugins
        own = tuple(plugin for name, plugin in plugins.items() if name not in questions)
        return ClaimPlugins(
            questions,
            answering=tuple(plugins[name] for name in questions),
            own=own,
            scoring=tuple(plugin for plugin in own if isinstance(plugin, PreScore)),
            names=frozenset(plugins),
        )

    def _was_asked_before(self, question: Hashable) -> bool:
        asked = self._asked
        if question in asked:
            asked.move_to_end(question)
            return True
        asked[question] = None
        if len(asked) > _MOST_QUESTIONS:
            asked.popitem(last=False)
        return False


def has_claims(pod: PodInfo) -> bool:
    """Whether the pod has claims, for volumes or devices."""
    spec = pod.spec
    if spec.resource_claims:
        return True
    return any(volume.persistent_volume_claim or volume.ephemeral for volume in spec.volumes or ())
