"""What the audit says about the work of approving."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from sayso.audit import Entry
from sayso.audit.statistics import PersonLoad, ToolUse, summarise


def entry(kind: str, approval: str = "", *, at: int = 0, by: str = "", **data: object) -> Entry:
    body = orjson.dumps({"by": by, "via": "cli", "data": data}).decode()
    return Entry(seq=1, thread="t", n=1, at=at, kind=kind, approval_id=approval, body=body, hash=b"")


def test_an_empty_audit_has_no_rates_and_no_median() -> None:
    empty = summarise([])
    assert (empty.interrupt_rate, empty.hasty_share, empty.median_seconds) == (0.0, 0.0, None)
    assert (empty.tools, empty.people) == ((), ())


def test_a_tool_is_interrupted_as_often_as_people_were_asked_about_its_calls() -> None:
    found = summarise(
        [
            *(entry("allowed", tool="search") for _ in range(3)),
            entry("opened", "a", tool="search"),
            entry("opened", "b", tool="pay"),
            entry("denied", tool="pay"),
        ]
    )
    assert found.tools == (
        ToolUse(tool="search", allowed=3, asked=1),
        ToolUse(tool="pay", asked=1, denied=1),
    )
    assert [tool.interrupt_rate for tool in found.tools] == [0.25, 0.5]
    assert found.interrupt_rate == 2 / 6


def test_the_median_is_over_the_time_from_the_opening_to_each_decision() -> None:
    log = [entry("opened", name, tool="pay") for name in "abc"]
    log += [
        entry("approved", "a", at=1_000, by="ann"),
        entry("rejected", "b", at=9_000, by="ann"),
        entry("responded", "c", at=20_000, by="ben"),
    ]
    found = summarise(log)
    assert found.median_seconds == 9.0
    assert found.decisions == {"approved": 1, "rejected": 1, "responded": 1}


def test_an_approval_in_under_two_seconds_is_hasty_and_a_rejection_never_is() -> None:
    log = [entry("opened", name, tool="pay") for name in "abcd"]
    log += [
        entry("approved", "a", at=1_999, by="ann"),
        entry("approved", "b", at=2_000, by="ann"),
        entry("rejected", "c", at=10, by="ben"),
        entry("edited", "d", at=10, by="ben"),
    ]
    found = summarise(log)
    assert (found.approvals, found.hasty, found.hasty_share) == (3, 2, 2 / 3)
    assert [(each.person, each.hasty) for each in found.people] == [("ann", 1), ("ben", 1)]


def test_each_decision_of_a_quorum_counts_for_its_person() -> None:
    log = [
        entry("opened", "a", tool="pay"),
        entry("approved", "a", at=5_000, by="ann", missing={"finance": 1}),
        entry("approved", "a", at=7_000, by="ben"),
    ]
    found = summarise(log)
    assert found.people == (PersonLoad(person="ann", decisions=1), PersonLoad(person="ben", decisions=1))
    assert found.median_seconds == 6.0


def test_silence_late_answers_and_wrong_codes_are_counted_apart_from_decisions() -> None:
    log = [
        entry("opened", "a", tool="pay"),
        entry("proof_failed", "a", by="ann"),
        entry("expired", "a", at=300_000),
        entry("late", "a", at=301_000, by="ann"),
    ]
    found = summarise(log)
    assert (found.expired, found.late, found.wrong_proofs, found.decisions) == (1, 1, 1, {})
    assert found.people == (PersonLoad(person="ann", late=1),)


def test_the_busiest_person_and_the_most_interrupted_tool_come_first() -> None:
    log = [entry("opened", name, tool="pay" if name == "a" else "mail") for name in "abc"]
    log += [entry("approved", name, at=9_000, by="ann" if name == "a" else "ben") for name in "abc"]
    found = summarise(log)
    assert [tool.tool for tool in found.tools] == ["mail", "pay"]
    assert [each.person for each in found.people] == ["ben", "ann"]


def test_an_entry_whose_body_cannot_be_read_harms_no_other() -> None:
    broken = entry("approved", "a")._replace(body="not json")
    found = summarise([broken, entry("opened", "b", tool="pay"), entry("approved", "b", at=5_000, by="ann")])
    assert found.entries == 3
    assert PersonLoad(person="ann", decisions=1) in found.people


@given(st.lists(st.sampled_from(["allowed", "opened", "denied"]), max_size=40))
def test_every_call_is_counted_once(kinds: list[str]) -> None:
    found = summarise([entry(kind, str(place), tool="t") for place, kind in enumerate(kinds)])
    assert sum(tool.allowed + tool.asked + tool.denied for tool in found.tools) == len(kinds)
