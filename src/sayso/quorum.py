"""Whether enough people agree: k of n within each group, every group, one seat a person."""

from sayso.approvals import Approval, Decision, DecisionKind

AGREES = frozenset({DecisionKind.APPROVE, DecisionKind.EDIT})
"""The answers that count towards a quorum."""


def missing(approval: Approval) -> dict[str, int]:
    """Return how many more approvals each group owes; a person counts for one group only."""
    quorum = dict(approval.terms.quorum)
    if not quorum:
        return {} if counted(approval) else {"anyone": 1}
    seats = [group for group, needed in quorum.items() for _ in range(needed)]
    taken: dict[int, int] = {}
    people = counted(approval)
    for person in range(len(people)):
        _seat(person, people, seats, taken, set())
    owed: dict[str, int] = {}
    for seat, group in enumerate(seats):
        if seat not in taken:
            owed[group] = owed.get(group, 0) + 1
    return owed


def counted(approval: Approval) -> list[Decision]:
    """Return the approvals that are about the action as it now stands, one a person."""
    digest = approval.effective.digest
    agreed = (given for given in approval.decisions if given.kind in AGREES and given.digest == digest)
    return list({given.person.id: given for given in agreed}.values())


def _seat(
    person: int, people: list[Decision], seats: list[str], taken: dict[int, int], tried: set[int]
) -> bool:
    """Give this person a free seat of their groups, moving others where that makes room."""
    for seat, group in enumerate(seats):
        if seat in tried or group not in people[person].person.groups:
            continue
        tried.add(seat)
        if seat not in taken or _seat(taken[seat], people, seats, taken, tried):
            taken[seat] = person
            return True
    return False
