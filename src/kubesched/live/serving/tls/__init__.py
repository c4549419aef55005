"""Certificates and TLS. `names` reads flags, `self_signed` makes a certificate, `renewing` follows files.

Next: `renewing`.
"""
