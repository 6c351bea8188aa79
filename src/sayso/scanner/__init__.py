"""Secrets in arguments: found by shape and by place, never shown, replaced by what they were."""

from sayso.scanner.findings import Finding, Hit, child, item
from sayso.scanner.redaction import find_secrets, redact, redact_text, scan

__all__ = ["Finding", "Hit", "child", "find_secrets", "item", "redact", "redact_text", "scan"]
