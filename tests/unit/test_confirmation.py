"""What proves that a person saw this action, and what does not."""

import secrets
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyotp.totp import TOTP

from sayso.actions import Action, Json
from sayso.approvals import (
    Approval,
    Challenge,
    DecisionKind,
    Effect,
    Person,
    ProofKind,
    ProofRule,
    Reason,
    Terms,
)
from sayso.confirmation import (
    ALPHABET,
    CODE_LENGTH,
    CODE_WINDOW,
    TRIES,
    Failed,
    Proven,
    check,
    expected_text,
    issue,
    make_code,
    record,
    session_key,
)
from sayso.errors import DecisionRefused, ProofExpired, ProofMissing, ProofWrong

NOW = 1_790_000_000_000
SALT = bytes(range(16))
SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
ANN = Person(id="ann", session="s1")
CODE = "ACDEFG"

RULES = {kind: ProofRule(kind=kind) for kind in ProofKind} | {
    ProofKind.TYPE: ProofRule(kind=ProofKind.TYPE, template="{price}")
}


def action(**args: Json) -> Action:
    return Action(tool="book_flight", args=args or {"price": 1847.0, "flight": "UA 212"}, thread="t")


def approval(kind: ProofKind = ProofKind.CODE, *, seconds: int = 3600, **args: Json) -> Approval:
    terms = Terms(
        effect=Effect.IRREVERSIBLE,
        reasons=(Reason.IRREVERSIBLE,),
        decisions=(DecisionKind.APPROVE,),
        proof=RULES[kind],
    )
    return Approval(
        id="ap_1", action=action(**args), terms=terms, opened_at=NOW, deadline=NOW + seconds * 1000
    )


def with_code(waiting: Approval, *, person: Person = ANN, code: str = CODE, now: int = NOW) -> Approval:
    challenge = issue(waiting, session_key(person), code, SALT, now)
    return replace(waiting, challenges=record(waiting.challenges, challenge))


def after(waiting: Approval, failed: Proven | Failed) -> Approval:
    assert isinstance(failed, Failed)
    assert failed.challenge is not None
    return replace(waiting, challenges=record(waiting.challenges, failed.challenge))


def error_of(result: Proven | Failed) -> DecisionRefused:
    assert isinstance(result, Failed)
    assert result.error.approval_id == "ap_1"
    assert result.error.hint
    return result.error


def test_no_two_letters_of_the_alphabet_are_taken_for_each_other() -> None:
    for alike in ("0O", "1IL", "UV", "2Z", "5S", "8B"):
        assert not set(alike) & set(ALPHABET)
    assert len(set(ALPHABET)) == len(ALPHABET)
    assert ALPHABET.upper() == ALPHABET


def test_a_code_has_six_letters_of_the_alphabet_each_as_likely_as_any() -> None:
    counts: Counter[str] = Counter()
    for _ in range(4000):
        code = make_code(secrets.token_bytes(16))
        assert len(code) == CODE_LENGTH
        counts.update(code)
    assert set(counts) == set(ALPHABET)
    assert max(counts.values()) < 1.35 * min(counts.values())


def test_too_little_entropy_makes_no_code_and_too_short_a_salt_no_challenge() -> None:
    with pytest.raises(ValueError, match="16 random bytes"):
        make_code(bytes(15))
    with pytest.raises(ValueError, match="8 random bytes"):
        issue(approval(), "ann/s1", CODE, bytes(7), NOW)


def test_a_challenge_keeps_only_a_hash_and_ends_with_its_window_or_the_deadline() -> None:
    challenge = issue(approval(), "ann/s1", CODE, SALT, NOW)
    assert CODE not in repr(challenge)
    assert challenge.until == NOW + CODE_WINDOW * 1000
    assert issue(approval(seconds=60), "ann/s1", CODE, SALT, NOW).until == NOW + 60_000


def test_a_click_needs_nothing() -> None:
    assert check(approval(ProofKind.CLICK), ANN, "", NOW) == Proven(kind=ProofKind.CLICK)
    assert check(with_code(approval(ProofKind.CLICK)), ANN, "AAAAAA", NOW) == Proven(kind=ProofKind.CLICK)


@pytest.mark.parametrize("typed", ["ACDEFG", "acdefg", "ACD EFG", " acd-efg "])
def test_the_code_is_taken_in_any_case_with_spaces_and_dashes(typed: str) -> None:
    assert check(with_code(approval()), ANN, typed, NOW) == Proven(kind=ProofKind.CODE)


def test_without_a_code_the_person_is_told_to_ask_for_one() -> None:
    error = error_of(check(approval(), ANN, CODE, NOW))
    assert isinstance(error, ProofMissing)
    assert "ask for a code first" in str(error)


@pytest.mark.parametrize("person", [Person(id="ann", session="s2"), Person(id="bob", session="s1")])
def test_a_code_works_only_in_the_session_it_was_shown_in(person: Person) -> None:
    assert isinstance(error_of(check(with_code(approval()), person, CODE, NOW)), ProofMissing)


def test_a_challenge_moved_to_another_session_or_approval_matches_nothing() -> None:
    waiting = with_code(approval())
    bob = Person(id="bob", session="s1")
    moved = replace(waiting, challenges=(replace(waiting.challenges[0], session=session_key(bob)),))
    assert isinstance(error_of(check(moved, bob, CODE, NOW)), ProofWrong)
    other = replace(waiting, id="ap_2")
    assert isinstance(check(other, ANN, CODE, NOW), Failed)


def test_nobody_can_name_themselves_into_another_session() -> None:
    assert session_key(ANN) == "ann/s1"
    assert session_key(Person(id="ann/s1", session="")) != session_key(Person(id="ann", session="s1/"))


def test_a_wrong_code_counts_and_the_fifth_is_the_last() -> None:
    waiting = with_code(approval())
    for left in range(TRIES - 1, 0, -1):
        result = check(waiting, ANN, "AAAAAA", NOW)
        error = error_of(result)
        assert isinstance(error, ProofWrong)
        assert f"{left} tr" in error.hint
        waiting = after(waiting, result)
    result = check(waiting, ANN, "AAAAAA", NOW)
    assert isinstance(error_of(result), ProofExpired)
    waiting = after(waiting, result)
    assert len(waiting.challenges) == 1
    right = check(waiting, ANN, CODE, NOW)
    assert isinstance(error_of(right), ProofExpired)
    assert isinstance(check(with_code(waiting, code="GFEDCA"), ANN, "GFEDCA", NOW), Proven)


def test_an_empty_answer_is_no_try() -> None:
    result = check(with_code(approval()), ANN, " - ", NOW)
    assert isinstance(error_of(result), ProofMissing)
    assert isinstance(result, Failed)
    assert result.challenge is None


def test_a_code_works_until_its_last_moment_and_not_a_millisecond_longer() -> None:
    waiting = with_code(approval())
    until = waiting.challenges[0].until
    assert isinstance(check(waiting, ANN, CODE, until), Proven)
    assert isinstance(error_of(check(waiting, ANN, CODE, until + 1)), ProofExpired)


def test_only_the_newest_code_counts() -> None:
    waiting = with_code(with_code(approval()), code="GFEDCA")
    assert isinstance(check(waiting, ANN, "GFEDCA", NOW), Proven)
    assert isinstance(error_of(check(waiting, ANN, CODE, NOW)), ProofWrong)


def test_a_new_code_takes_the_place_of_the_old_one_and_leaves_other_sessions_alone() -> None:
    bob = Person(id="bob", session="s1")
    waiting = with_code(with_code(with_code(approval()), person=bob), code="GFEDCA")
    assert [one.session for one in waiting.challenges] == ["bob/s1", "ann/s1"]
    assert isinstance(check(waiting, bob, CODE, NOW), Proven)


def test_a_new_code_does_not_give_back_authenticator_tries() -> None:
    waiting = approval(ProofKind.TOTP)
    for _ in range(TRIES):
        waiting = after(waiting, check(waiting, ANN, wrong_digits(), NOW, totp_secret=SECRET))
    for session in ("", "totp", "/totp", "s1"):
        waiting = with_code(waiting, person=Person(id="ann", session=session))
    assert isinstance(check(waiting, ANN, digits(), NOW, totp_secret=SECRET), Failed)


def test_a_code_shown_before_an_edit_does_not_confirm_the_edited_action() -> None:
    edited = replace(with_code(approval()), edited=action(price=9, flight="UA 212"))
    error = error_of(check(edited, ANN, CODE, NOW))
    assert isinstance(error, ProofExpired)
    assert "edit" in error.message


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{price}", "1847"),
        ("{flight}", "UA 212"),
        ("book {flight} for {price}", "book UA 212 for 1847"),
        ("{who.names[1]}", "Bo"),
        ("{who.names.0}", "Ann"),
        ("{sure}", "true"),
        ("CONFIRM", "CONFIRM"),
        ("{prise}", ""),
        ("{who}", ""),
        ("{nothing}", ""),
        ("{who.names[7]}", ""),
        ("{who.names[-1]}", ""),
        ("{flight[0]}", ""),
        ("{}", ""),
        ("{.price}", ""),
        ("{price", ""),
        ("pay {empty}", ""),
        ("", ""),
    ],
)
def test_a_template_takes_its_values_from_the_action_or_yields_nothing(template: str, text: str) -> None:
    shown = action(
        price=1847.0, flight="UA 212", who={"names": ["Ann", "Bo"]}, sure=True, nothing=None, empty=""
    )
    assert expected_text(template, shown) == text


@pytest.mark.parametrize(
    "typed",
    ["1847", " 1847 ", "1,847", "$1,847.00", "1 847", "1'847", "€ 1847", "1847.0", "1,847 €", "+1847"],
)
def test_a_number_may_be_typed_with_separators_and_a_currency_sign(typed: str) -> None:
    assert check(approval(ProofKind.TYPE), ANN, typed, NOW) == Proven(kind=ProofKind.TYPE)


@pytest.mark.parametrize(
    "typed",
    ["1848", "-1847", "18,47", "1.847", "1847.01", "184", "1847 1847", "1e3", "yes", "١٨٤٧", "1 8 4 7"],
)
def test_another_number_is_wrong(typed: str) -> None:
    assert isinstance(error_of(check(approval(ProofKind.TYPE), ANN, typed, NOW)), ProofWrong)


@pytest.mark.parametrize("typed", ["ua 212", "UA212", "UA 212!", "$UA 212"])
def test_text_must_be_typed_exactly(typed: str) -> None:
    rule = ProofRule(kind=ProofKind.TYPE, template="{flight}")
    waiting = approval(ProofKind.TYPE)
    assert isinstance(check(waiting, ANN, typed, NOW, rule=rule), Failed)
    assert isinstance(check(waiting, ANN, " UA 212\n", NOW, rule=rule), Proven)


@pytest.mark.parametrize("template", ["{prise}", "", "{who}"])
@pytest.mark.parametrize("typed", ["", " ", "None", "null", "{prise}", "{who}"])
def test_a_template_that_names_no_value_matches_nothing(template: str, typed: str) -> None:
    rule = ProofRule(kind=ProofKind.TYPE, template=template)
    assert isinstance(error_of(check(approval(ProofKind.TYPE), ANN, typed, NOW, rule=rule)), ProofMissing)


@given(st.text(max_size=30), st.text(min_size=1, max_size=30))
def test_only_the_value_itself_is_accepted(typed: str, value: str) -> None:
    rule = ProofRule(kind=ProofKind.TYPE, template="{note}")
    result = check(approval(ProofKind.TYPE, note=value), ANN, typed, NOW, rule=rule)
    assert isinstance(result, Proven) == (typed.strip() == value.strip() != "")


def digits(offset: int = 0) -> str:
    return TOTP(SECRET).generate_otp(NOW // 30_000 + offset)


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_an_authenticator_may_be_one_step_off(offset: int) -> None:
    result = check(approval(ProofKind.TOTP), ANN, digits(offset), NOW, totp_secret=SECRET)
    assert result == Proven(kind=ProofKind.TOTP, totp_step=NOW // 30_000 + offset)


@pytest.mark.parametrize("offset", [-2, 2])
def test_an_authenticator_two_steps_off_is_wrong(offset: int) -> None:
    result = check(approval(ProofKind.TOTP), ANN, digits(offset), NOW, totp_secret=SECRET)
    assert isinstance(error_of(result), ProofWrong)


def test_an_authenticator_code_works_once() -> None:
    used = NOW // 30_000
    result = check(approval(ProofKind.TOTP), ANN, digits(), NOW, totp_secret=SECRET, last_totp_step=used)
    assert "already used" in error_of(result).message
    assert isinstance(
        check(approval(ProofKind.TOTP), ANN, digits(1), NOW, totp_secret=SECRET, last_totp_step=used), Proven
    )


@pytest.mark.parametrize("secret", ["", "not base 32!", "JBSWY3DPEHPK3PXP"])
def test_without_a_readable_secret_the_person_and_the_setting_are_named(secret: str) -> None:
    error = error_of(check(approval(ProofKind.TOTP), ANN, digits(), NOW, totp_secret=secret))
    assert isinstance(error, ProofMissing)
    assert "[people.ann] totp" in str(error)


def wrong_digits() -> str:
    return next(f"{n:06}" for n in range(10) if f"{n:06}" not in {digits(-1), digits(), digits(1)})


@pytest.mark.parametrize("kind", [ProofKind.TOTP, ProofKind.CODE, ProofKind.TYPE])
def test_guessing_authenticator_digits_ends_after_five_tries_whatever_is_asked(kind: ProofKind) -> None:
    waiting = approval(kind)
    for session in range(TRIES):
        person = Person(id="ann", session=f"s{session}")
        waiting = after(waiting, check(waiting, person, wrong_digits(), NOW, totp_secret=SECRET))
    assert isinstance(check(waiting, ANN, digits(), NOW, totp_secret=SECRET), Failed)
    later = NOW + CODE_WINDOW * 1000 + 1
    right = TOTP(SECRET).generate_otp(later // 30_000)
    assert isinstance(check(waiting, ANN, right, later, totp_secret=SECRET), Proven)


def test_a_counter_of_tries_is_never_taken_for_a_code() -> None:
    waiting = after(
        approval(ProofKind.TOTP), check(approval(ProofKind.TOTP), ANN, "000000", NOW, totp_secret=SECRET)
    )
    assert isinstance(error_of(check(waiting, ANN, "", NOW, rule=RULES[ProofKind.CODE])), ProofMissing)


def test_a_stronger_proof_than_asked_is_taken_as_what_it_is() -> None:
    for kind in (ProofKind.CLICK, ProofKind.CODE, ProofKind.TYPE):
        result = check(with_code(approval(kind)), ANN, digits(), NOW, totp_secret=SECRET)
        assert isinstance(result, Proven)
        assert result.kind is ProofKind.TOTP
    assert check(with_code(approval(ProofKind.CLICK)), ANN, CODE, NOW) == Proven(kind=ProofKind.CODE)


def test_a_weaker_proof_than_asked_is_never_taken() -> None:
    for kind, typed in [(ProofKind.TYPE, CODE), (ProofKind.TOTP, CODE), (ProofKind.TOTP, "1847")]:
        assert isinstance(check(with_code(approval(kind)), ANN, typed, NOW, totp_secret=SECRET), Failed)
    for kind in (ProofKind.CODE, ProofKind.TYPE, ProofKind.TOTP):
        assert isinstance(check(with_code(approval(kind)), ANN, "", NOW, totp_secret=SECRET), Failed)


@given(st.text(max_size=20))
def test_no_text_but_the_code_passes_for_it(typed: str) -> None:
    waiting = replace(approval(), challenges=(_CHALLENGE,))
    same = "".join(typed.split()).replace("-", "").upper() == CODE
    assert isinstance(check(waiting, ANN, typed, NOW), Proven) == same


_CHALLENGE: Challenge = issue(approval(), session_key(ANN), CODE, SALT, NOW)
