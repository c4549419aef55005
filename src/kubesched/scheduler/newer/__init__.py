"""v1.37, as far as it is known: today's scheduler with the parts that decide otherwise there.

`version` has the plugins among them, and puts all into a configuration and a registry;
`groups` is the cycle of a pod group. Each is today's part with what changed. docs/reference/emulation.md has the list,
and what is not emulated.
"""
