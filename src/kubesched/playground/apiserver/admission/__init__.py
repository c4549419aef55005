"""ValidatingAdmissionPolicies and MutatingAdmissionPolicies: CEL that admits, refuses or changes what is written.

Begin with ``policies.py``, which the verbs call. ``evaluation.py`` says which requests a policy is
about, what its expressions see, and puts their results into the object.
"""
