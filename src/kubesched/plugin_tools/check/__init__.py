"""The battery that tries a plugin out: clusters drawn from a seed, every extension point asked, the answers held
against rules.

Read in this order: `battery` (all checks on one plugin, and the smallest case that still breaks a rule), `subject`
(what is tried, and on what), `drawing` (where cases come from), `asking` (how it is asked), `answer_checks` and the
other modules of checks (the rules), `report` (what is reported).
"""

from kubesched.plugin_tools.check.battery import check_plugin
from kubesched.plugin_tools.check.report import BatteryReport, CheckResult, RuleViolation
from kubesched.plugin_tools.check.subject import Subject, subject_of

__all__ = ["BatteryReport", "CheckResult", "RuleViolation", "Subject", "check_plugin", "subject_of"]
