"""Tool names: exact, and never like another by accident."""

import re
import unicodedata
from collections.abc import Iterable

_PLAIN = re.compile(r"[!-~]+")


def folded(name: str) -> str:
    """Return the name as a hasty reader sees it: no case, width, spaces or invisible characters."""
    wide = unicodedata.normalize("NFKC", name).casefold()
    return "".join(character for character in wide if character.isalnum() or character in "_-.:/")


def suspicion(tool: str, listed: Iterable[str], folded_names: frozenset[str]) -> str:
    """Return why a name that is not listed exactly needs a person even where patterns allow it.

    Args:
        tool: The name of the call.
        listed: The exact names of the policy.
        folded_names: The same names, folded.
    """
    if tool in listed:
        return ""
    if not _PLAIN.fullmatch(tool):
        return "the tool's name holds spaces or characters outside ASCII"
    return "the tool's name imitates a listed one" if folded(tool) in folded_names else ""
