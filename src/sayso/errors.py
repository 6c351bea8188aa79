"""Everything Sayso raises. Each error says what is wrong, where, and what to do next.

    SaysoError
    ├── Refused             the action must not run (raised to the agent)
    │   ├── Denied          policy said no
    │   ├── Rejected        a person said no
    │   ├── Expired         nobody answered in time
    │   ├── Withdrawn       the request was taken back
    │   └── OutcomeUnknown  it may have run; a person or a check must find out first
    ├── DecisionRefused     a person's answer was not taken (nothing was saved)
    │   ├── NotFound · AlreadyDecided · Late · NotAllowed · NotPermitted
    │   ├── ProofMissing · ProofWrong · ProofExpired
    │   └── DigestMismatch · PartsUnopened · InvalidEdit
    ├── ClaimRefused        the right to run was not given
    ├── UsageError          the caller's mistake
    │   ├── InvalidAction · PolicyError · ConfigError · MissingExtra
    └── StoreError
        ├── StoreUnavailable · StoreReadOnly · StoreFull · StoreLocked
        └── SchemaTooNew · SchemaTooOld · StoreDamaged

`code` is stable and meant for programs; the message is meant for people.
"""

from typing import ClassVar


class SaysoError(Exception):
    """The base of everything Sayso raises.

    Args:
        message: What is wrong and where.
        hint: What to do next; shown after the message.
        approval_id: The approval it is about, when there is one.
    """

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str = "", approval_id: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.approval_id = approval_id

    def __str__(self) -> str:
        """Return the message and the hint as one text."""
        if not self.hint:
            return self.message
        return f"{self.message}\n{self.hint}" if "\n" in self.message else f"{self.message}; {self.hint}"

    def __reduce__(self) -> tuple[object, ...]:
        """Survive pickling with the keyword fields."""
        return (_rebuild, (type(self), self.message, self.hint, self.approval_id))


def _rebuild(kind: type[SaysoError], message: str, hint: str, approval_id: str) -> SaysoError:
    return kind(message, hint=hint, approval_id=approval_id)


class Refused(SaysoError):
    """The action must not run."""

    code = "refused"


class Denied(Refused):
    """Policy denied the action; no person was asked."""

    code = "denied"


class Rejected(Refused):
    """A person rejected the action."""

    code = "rejected"


class Expired(Refused):
    """Nobody decided before the deadline; silence is a denial."""

    code = "expired"


class Withdrawn(Refused):
    """The request was taken back before anybody decided."""

    code = "withdrawn"


class OutcomeUnknown(Refused):
    """The action was started and may have run; it is never started again by itself."""

    code = "outcome_unknown"


class DecisionRefused(SaysoError):
    """A decision was not taken; nothing was saved and it can be given again."""

    code = "decision_refused"


class NotFound(DecisionRefused):
    """There is no such approval."""

    code = "not_found"


class AlreadyDecided(DecisionRefused):
    """Somebody else decided first."""

    code = "already_decided"


class Late(DecisionRefused):
    """The deadline had passed; the decision is on record and changes nothing."""

    code = "late"


class NotAllowed(DecisionRefused):
    """This kind of decision is not among those the policy allows here."""

    code = "not_allowed"


class NotPermitted(DecisionRefused):
    """This person may not decide this approval."""

    code = "not_permitted"


class ProofMissing(DecisionRefused):
    """The stakes ask for proof, and none was given."""

    code = "proof_missing"


class ProofWrong(DecisionRefused):
    """The proof given does not match."""

    code = "proof_wrong"


class ProofExpired(DecisionRefused):
    """The confirmation code is too old or was tried too often."""

    code = "proof_expired"


class DigestMismatch(DecisionRefused):
    """What the person was shown is not what is stored."""

    code = "digest_mismatch"


class PartsUnopened(DecisionRefused):
    """Parts of the action were not shown yet."""

    code = "parts_unopened"


class InvalidEdit(DecisionRefused):
    """The edited arguments do not fit the tool, or policy denies them."""

    code = "invalid_edit"


class ClaimRefused(SaysoError):
    """The right to run was not given: spent, lost, or about another action."""

    code = "claim_refused"


class UsageError(SaysoError):
    """The caller asked for something that cannot be."""

    code = "usage"


class InvalidAction(UsageError):
    """The action cannot be put in canonical form, so nobody could approve exactly it."""

    code = "invalid_action"


class PolicyError(UsageError):
    """A policy has mistakes; all of them are named, with file and line."""

    code = "policy"


class ConfigError(UsageError):
    """A setting is missing, misspelt or out of range."""

    code = "config"


class MissingExtra(UsageError):
    """An optional part of Sayso is not installed."""

    code = "missing_extra"

    @classmethod
    def of(cls, package: str, extra: str) -> "MissingExtra":
        """Name the package that is missing and the line that installs it."""
        return cls(f"`{package}` is not installed", hint=f'install it with: pip install "sayso[{extra}]"')


class StoreError(SaysoError):
    """The store could not do what was asked; nothing was changed."""

    code = "store"


class StoreUnavailable(StoreError):
    """The store cannot be reached or opened."""

    code = "store_unavailable"


class StoreReadOnly(StoreError):
    """The store's file or folder cannot be written."""

    code = "store_read_only"


class StoreFull(StoreError):
    """The disk that holds the store is full."""

    code = "store_full"


class StoreLocked(StoreError):
    """Another program held the store's file for too long."""

    code = "store_locked"


class SchemaTooNew(StoreError):
    """The store was written by a newer Sayso."""

    code = "schema_too_new"


class SchemaTooOld(StoreError):
    """The store must be migrated before this Sayso can use it."""

    code = "schema_too_old"


class StoreDamaged(StoreError):
    """What the store holds does not match its own digests."""

    code = "store_damaged"
