"""The battery that tries a plugin out: clusters drawn from a seed, every extension point asked, the answers held
against rules.

Read in this order: `battery` (all checks on one plugin), `subject` (what is tried), `drawing` and `changes` (on what),
`trial` (how it is asked), `checks` (one module per rule), `shrinking` (the smallest case that still breaks a rule),
`cost` (what a question costs), `report` (what is told). `template` writes a new plugin with its test.
"""

from kubesched.plugin_tools.check.battery import check_plugin
from kubesched.plugin_tools.check.report import BatteryReport, CheckResult, RuleViolation
from kubesched.plugin_tools.check.subject import Subject, subject_of

__all__ = ["BatteryReport", "CheckResult", "RuleViolation", "Subject", "check_plugin", "subject_of"]
