"""What an agent may do now, and why not, in words meant for it."""

from dataclasses import dataclass

from sayso.actions import Action
from sayso.approvals import Approval, Cause, Permit, Status
from sayso.errors import (
    ClaimRefused,
    Denied,
    Expired,
    OutcomeUnknown,
    Refused,
    Rejected,
    SaysoError,
    Withdrawn,
)
from sayso.policy import Outcome, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What an agent may do now, and why.

    Args:
        action: What may run: what was asked for, or what a person changed it to.
        verdict: What policy said when it was asked.
        approval: The approval, when a person was asked.
        permit: The right to run, to be handed back to `complete`.
    """

    action: Action
    verdict: Verdict
    approval: Approval | None = None
    permit: Permit | None = None

    @property
    def may_run(self) -> bool:
        """Whether `action` may run, once, now."""
        return self.permit is not None or (self.approval is None and self.verdict.outcome is Outcome.ALLOW)

    @property
    def was_edited(self) -> bool:
        """Whether a person changed the action."""
        return self.approval is not None and self.approval.edited is not None

    @property
    def response(self) -> str | None:
        """A person's words that are the tool's result, if that is how it ended."""
        approval = self.approval
        if approval is None or approval.status is not Status.RESPONDED or approval.resolution is None:
            return None
        return approval.resolution.message

    @property
    def refusal(self) -> SaysoError | None:
        """Why it may not run, in words meant for the agent; None when it may or was answered."""
        if self.may_run or self.response is not None:
            return None
        if self.approval is None:
            return Denied(
                f"policy denies `{self.action.tool}`: {self.verdict.why}",
                hint="it was not run; do not try it again in this form",
            )
        return refusal_of(self.approval)

    def check(self) -> "Settlement":
        """Return itself, or raise why it may not run.

        Raises:
            Refused: Denied, rejected, expired, withdrawn, or of unknown outcome.
            ClaimRefused: It ran already.
        """
        refusal = self.refusal
        if refusal is not None:
            raise refusal
        return self


def refusal_of(approval: Approval) -> SaysoError:
    """Return why an approval lets nothing run, in words meant for the agent."""
    tool, ended = approval.action.tool, approval.resolution
    message = ended.message if ended else ""
    by = ended.by if ended else ""
    match approval.status:
        case Status.REJECTED:
            reason = f" with reason: {message}" if message else ""
            return _refused(
                Rejected,
                approval,
                f"{by} rejected `{tool}`{reason}",
                "it was not run; do not retry it unless asked to",
            )
        case Status.EXPIRED:
            minutes = f"{approval.terms.window} s"
            return _refused(
                Expired,
                approval,
                f"nobody approved `{tool}` within {minutes}",
                "it was not run; silence is a denial",
            )
        case Status.WITHDRAWN if ended and ended.cause is Cause.POLICY:
            return _refused(Denied, approval, f"policy now denies `{tool}`: {message}", "it was not run")
        case Status.WITHDRAWN:
            return _refused(
                Withdrawn, approval, f"the request for `{tool}` was withdrawn: {message}", "it was not run"
            )
        case Status.UNKNOWN:
            hint = "it is never started again by itself; find out whether it ran"
            return _refused(OutcomeUnknown, approval, f"`{tool}` was started and did not report back", hint)
        case Status.DONE | Status.FAILED | Status.RUNNING:
            problem = f"`{tool}` was started already under approval {approval.id}, which is {approval.status}"
            return ClaimRefused(problem, hint="an approval runs once", approval_id=approval.id)
        case Status.APPROVED:
            problem = f"`{tool}` is approved under {approval.id}, and nobody took the right to run it yet"
            return ClaimRefused(problem, hint="claim it", approval_id=approval.id)
        case _:
            problem = f"`{tool}` still waits for a decision on approval {approval.id}"
            return ClaimRefused(problem, hint="wait for it", approval_id=approval.id)


def _refused(kind: type[Refused], approval: Approval, message: str, hint: str) -> Refused:
    return kind(message, hint=hint, approval_id=approval.id)
