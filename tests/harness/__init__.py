"""What our own tests and tools are run in: worlds with faults, scripted servers, load. Not part of the package."""
