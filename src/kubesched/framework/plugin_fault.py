"""What a plugin from outside did wrong: raised by whatever stands in front of it, worded by the stage that asked.

Next: `kubesched.scheduler.plugin_loading.checked_plugin`, which raises it; `kubesched.scheduler.engine.plugin_call`,
which names the plugin.
"""

from __future__ import annotations


class PluginFault(Exception):  # noqa: N818  the plugin's fault, not an error of ours
    """A plugin raised, or gave an answer of the wrong kind."""


class InvalidScore(PluginFault):
    """A score that is not within the range after normalising."""

    def __init__(self, score: int) -> None:
        super().__init__(f"score {score} is out of range")
        self.score = score
