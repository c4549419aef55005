"""ValidatingAdmissionPolicies and MutatingAdmissionPolicies: CEL that admits, refuses or changes what is written.

Begin with ``policies.py``, which the verbs call. ``matching.py`` says which requests a policy is about,
``evaluation.py`` what its expressions see, ``mutations.py`` puts their results into the object.
"""
