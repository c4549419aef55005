"""VolumeBinding: a pod goes only where its volumes are, can be found, or can be made.

The path of a pod's volumes reads off the files: `claims` sorts the pod's claims, `finding` looks for nodes where all of
them can be met (`affinity` for bound volumes, `matching` for volumes that exist, `provisioning` for volumes that have
to be made), `assumed` remembers what was promised to pods on their way, `binding` has it written. `plugin` joins the
stages; `effects` is what it asks of the world outside; `hints` says when to try a rejected pod again.
"""

from kubesched.scheduler.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
