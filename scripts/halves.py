"""Which cases may be fitted to, and which are left out of every fit (scripts/fit)."""
import hashlib


def is_fitted(case_id):
    return int(hashlib.sha1(case_id.encode()).hexdigest()[0], 16) < 8
