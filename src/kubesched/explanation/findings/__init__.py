"""What stands behind a rejection, plugin by plugin: one module for each plugin that has more to say than its reason.

`finding` has the form; `kubesched.explanation.evidence` asks the right module.
"""
