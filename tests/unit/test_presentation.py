"""What a reviewer is shown: all of it, in visible characters, the same on every surface."""

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import cast
from unicodedata import category

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sayso.actions import Action, Json, Origin, canonical
from sayso.approvals import (
    Approval,
    DecisionKind,
    Effect,
    ProofKind,
    ProofRule,
    Reason,
    Silence,
    Terms,
)
from sayso.presentation import ChangeKind, Field, Presentation, diff, present, visible
from sayso.scanner import scan

NOW = 1_790_000_000_000
GITHUB = "ghp_" + "aB3" * 12
DANGEROUS = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})


def mark(text: str) -> str:
    """Return what Sayso writes inside a text."""
    return f"\u2039{text}\u203a"


def approval(args: dict[str, Json] | None = None, **changes: object) -> Approval:
    action = Action(
        tool="book_flight",
        args={"flight": "UA 212", "price": 1847.0, "refundable": False} if args is None else args,
        thread="trip",
        agents=("assistant", "researcher"),
        requested_by="ann",
    )
    terms = Terms(
        effect=Effect.IRREVERSIBLE,
        reasons=(Reason.IRREVERSIBLE, Reason.HIGH_COST),
        decisions=(DecisionKind.APPROVE, DecisionKind.REJECT),
    )
    waiting = Approval(id="ap_1", action=action, terms=terms, opened_at=NOW, deadline=NOW + 300_000)
    return replace(waiting, **changes)  # pyright: ignore[reportArgumentType]


def field_of(shown: Presentation, path: str) -> Field:
    return next(field for field in shown.fields if field.path == path)


def one(text: str, *, limit: int = 2000) -> Field:
    return field_of(present(approval({"note": text}), NOW, limit=limit), "args.note")


def texts(value: object) -> Iterator[tuple[str, bool]]:
    """Yield every text of a record, and whether it may hold line feeds."""
    if is_dataclass(value):
        for part in fields(value):
            inner = getattr(value, part.name)
            lines = isinstance(value, Field) and part.name in {"text", "before"}
            yield from ((inner, lines),) if isinstance(inner, str) else texts(inner)
    elif isinstance(value, tuple):
        for inner in cast("tuple[object, ...]", value):
            yield from ((inner, False),) if isinstance(inner, str) else texts(inner)


def assert_safe(shown: Presentation) -> None:
    for text, lines in texts(shown):
        allowed = "\n" if lines else ""
        assert not [c for c in text if category(c) in DANGEROUS and c not in allowed], ascii(text)


# --- the card


def test_the_headline_says_plainly_what_would_run() -> None:
    shown = present(approval(), NOW)
    assert shown.headline == 'book_flight would run with flight "UA 212", price 1847, refundable false'
    assert present(approval({}), NOW).headline == "book_flight would run without arguments"


def test_a_value_cannot_pass_for_other_values_in_the_headline() -> None:
    shown = present(approval({"flight": 'UA", price 1, x "\n'}), NOW)
    line_feed = mark("U+000A LINE FEED")
    assert shown.headline == f'book_flight would run with flight "UA\\", price 1, x \\"{line_feed}"'


def test_the_card_names_who_asks_why_what_silence_means_and_what_approving_takes() -> None:
    terms = replace(
        approval().terms, quorum=(("travel", 1), ("finance", 2)), proof=ProofRule(kind=ProofKind.CODE)
    )
    shown = present(approval(terms=terms, why="price above 400"), NOW + 10_500)
    assert shown.asked_by == "assistant > researcher, requested by ann"
    assert shown.why == "price above 400"
    assert shown.reasons == ("it cannot be undone", "it costs more than may be spent without asking")
    assert shown.silence == "No answer by 14:18:20 UTC means it will NOT run."
    assert shown.quorum == "It needs 1 approval from travel and 2 approvals from finance."
    assert (shown.proof.kind, shown.proof.sentence[:25]) == (ProofKind.CODE, "To approve, ask for a cod")
    assert shown.seconds_left == 289


@pytest.mark.parametrize("kind", ProofKind)
def test_every_proof_has_a_sentence(kind: ProofKind) -> None:
    terms = replace(approval().terms, proof=ProofRule(kind=kind, template="{price}"))
    sentence = present(approval(terms=terms), NOW).proof.sentence
    assert sentence.endswith(".")
    assert ("the value of price" in sentence) == (kind is ProofKind.TYPE)


def test_silence_that_allows_says_so_and_another_day_is_named() -> None:
    terms = replace(approval().terms, effect=Effect.REVERSIBLE, silence=Silence.ALLOW)
    shown = present(approval(terms=terms, deadline=NOW + 86_400_000), NOW)
    assert shown.silence == "No answer by 2026-09-22 14:13:20 UTC means it will run."


def test_a_single_group_and_an_unsure_agent_are_named_plainly() -> None:
    terms = replace(approval().terms, quorum=(("travel", 1),), reasons=(Reason.LOW_CONFIDENCE,))
    shown = present(approval(terms=terms, action=replace(approval().action, confidence=0.55)), NOW)
    assert shown.quorum == "It needs 1 approval from travel."
    assert shown.reasons == ("the agent is not sure enough: it says 55%",)
    assert present(approval(), NOW).quorum == "One person who may decide is enough."


def test_a_deadline_beyond_the_calendar_is_still_named() -> None:
    assert "milliseconds after 1970" in present(approval(deadline=2**52), NOW).silence


def test_two_keys_that_held_secrets_of_one_kind_keep_two_places() -> None:
    shown = present(approval({GITHUB: 1, GITHUB.replace("aB3", "cD4"): 2}), NOW)
    assert len({field.path for field in shown.fields}) == 2


def test_the_time_left_is_never_negative_and_not_part_of_the_digest() -> None:
    early, late = present(approval(), NOW), present(approval(), NOW + 999_000_000)
    assert late.seconds_left == 0
    assert early.digest == late.digest


@pytest.mark.parametrize(
    "changed",
    [
        approval({"flight": "UA 213"}),
        approval(description="be careful"),
        approval(why="because"),
        approval(deadline=NOW + 301_000),
        approval(id="ap_2"),
        approval(terms=replace(approval().terms, decisions=(DecisionKind.REJECT,))),
        approval(terms=replace(approval().terms, effect=Effect.REVERSIBLE)),
        approval(terms=replace(approval().terms, quorum=(("travel", 1),))),
        approval(edited=approval({"flight": "UA 213"}).action),
    ],
)
def test_the_digest_covers_all_that_is_shown(changed: Approval) -> None:
    assert present(changed, NOW).digest != present(approval(), NOW).digest


def test_a_changed_field_note_or_gap_changes_the_digest() -> None:
    action = replace(approval().action, origins={"flight": Origin.WEB})
    assert present(approval(action=action), NOW).digest != present(approval(), NOW).digest
    waiting = approval({"note": "x" * 500})
    assert present(waiting, NOW, limit=100).digest != present(waiting, NOW, limit=101).digest


def test_opening_a_part_changes_what_is_shown_and_the_digest() -> None:
    waiting = approval({"note": "x" * 5000})
    closed = present(waiting, NOW)
    opened = present(waiting, NOW, opened=frozenset({"args.note"}))
    assert closed.hidden == ("args.note",)
    assert opened.hidden == ()
    assert field_of(opened, "args.note").text == '"' + "x" * 5000 + '"'
    assert closed.digest != opened.digest
    assert closed.action_digest == opened.action_digest == waiting.action.digest


def test_the_order_the_arguments_came_in_changes_nothing() -> None:
    assert present(approval({"a": 1, "b": 2}), NOW) == present(approval({"b": 2, "a": 1}), NOW)


def test_an_argument_from_outside_is_marked_and_warned_of() -> None:
    action = replace(approval().action, origins={"flight": Origin.WEB, "price": Origin.USER})
    shown = present(approval(action=action), NOW)
    assert field_of(shown, "args.flight").notes == (
        "came from the web: somebody outside may have written it",
    )
    assert shown.warnings == ("args.flight: came from the web: somebody outside may have written it",)


def test_facts_the_action_rests_on_are_shown() -> None:
    shown = present(approval(action=replace(approval().action, facts={"balance": 10})), NOW)
    assert field_of(shown, "facts.balance").text == "10"


# --- edits


def test_an_edit_shows_what_each_value_was() -> None:
    edited = Action(tool="hold_flight", args={"flight": "UA 212", "price": 900, "note": "x"}, thread="trip")
    shown = present(approval(edited=edited), NOW)
    assert shown.headline.startswith("After an edit, hold_flight would run with ")
    assert [(f.path, f.text, f.before) for f in shown.fields] == [
        ("tool", '"hold_flight"', '"book_flight"'),
        ("args.flight", '"UA 212"', None),
        ("args.note", '"x"', mark("not there")),
        ("args.price", "900", "1847"),
        ("args.refundable", mark("taken out"), "false"),
    ]


def test_a_long_old_value_is_hidden_under_the_same_path_as_the_new_one() -> None:
    waiting = approval({"note": "x" * 300}, edited=approval({"note": "y"}).action)
    closed = field_of(present(waiting, NOW, limit=100), "args.note")
    assert closed.hidden_characters == 202
    opened = present(waiting, NOW, limit=100, opened=frozenset({"args.note"}))
    assert (opened.hidden, field_of(opened, "args.note").before) == ((), '"' + "x" * 300 + '"')


def test_a_difference_names_what_was_added_removed_and_changed() -> None:
    changes = diff({"a": 1, "b": {"c": "x"}, "same": [1]}, {"a": 2, "b": {"d": "x"}, "same": [1]})
    assert [(c.path, c.before, c.after, c.kind) for c in changes] == [
        ("args.a", "1", "2", ChangeKind.CHANGED),
        ("args.b.c", '"x"', "", ChangeKind.REMOVED),
        ("args.b.d", "", '"x"', ChangeKind.ADDED),
    ]
    assert diff({"a": 1}, {"a": 1.0}) == ()


def test_a_secret_that_changes_is_a_change_though_both_look_the_same() -> None:
    (change,) = diff({"password": "hunter2"}, {"password": "hunter3"})
    assert change.before == change.after == f'"{mark("secret: password, 7 characters")}"'


# --- nothing hidden


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("\u202e", "U+202E RIGHT-TO-LEFT OVERRIDE"),
        ("\u200b\u200b", "U+200B ZERO WIDTH SPACE \u00d72"),
        ("\x1b", "U+001B ESCAPE"),
        ("\r", "U+000D CARRIAGE RETURN"),
        ("\t\t\t", "U+0009 TAB \u00d73"),
        ("\x9b", "U+009B CONTROL"),
        ("\u2028", "U+2028 LINE SEPARATOR"),
        ("\u00a0", "U+00A0 NO-BREAK SPACE"),
        ("\ue000", "U+E000 PRIVATE USE"),
        ("\U000e0041", "U+E0041 TAG LATIN CAPITAL LETTER A"),
        ("\ufe0f", "U+FE0F VARIATION SELECTOR-16"),
        ("\u3164", "U+3164 HANGUL FILLER"),
        ("\u2039", "U+2039 SINGLE LEFT-POINTING ANGLE QUOTATION MARK"),
        (" " * 40, "40 spaces"),
    ],
)
def test_what_has_no_ink_is_spelled_out(hidden: str, shown: str) -> None:
    assert one(f"a{hidden}b").text == f'"a{mark(shown)}b"'


def test_padding_by_empty_lines_and_trailing_blanks_is_spelled_out() -> None:
    assert one("a\n\nb").text == '"a\n\nb"'
    assert one("a" + "\n" * 9 + "b").text == f'"a\n{mark("8 empty lines")}\nb"'
    assert one("a  \nb").text == f'"a{mark("2 spaces")}\nb"'
    assert one("a" + "\n" * 9 + "b").notes == ("padding that would push text out of sight",)


def test_a_combining_mark_cannot_cover_what_sayso_writes() -> None:
    accent = mark("U+0301 COMBINING ACUTE ACCENT")
    assert one("\u0301a").text == f'"{accent}a"'
    assert one("a" + "\u0301" * 4).text == f'"a\u0301\u0301\u0301{accent}"'


def test_lone_surrogates_in_the_authors_words_do_not_break_the_card() -> None:
    shown = present(approval(description="a\ud800\nb", why="\udfff"), NOW)
    assert shown.description is not None
    assert shown.description.text == f"a{mark('U+D800 SURROGATE')}\nb"
    assert_safe(shown)


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("\u202eabc\u202c", "2 characters that would change the reading direction"),
        ("\x1b[31m", "1 character that would control the terminal"),
        ("a\u200bb\u200db", "2 characters that cannot be seen"),
        ("a\u3000b", "1 character made to look like a space"),
        (
            "price \u05d0\u05d1",
            "right-to-left letters: parts may appear in another order than they are stored",
        ),
        ("cafe\u0301", "letters put together from parts, which look the same as other letters"),
    ],
)
def test_a_text_that_hides_something_is_warned_of(text: str, note: str) -> None:
    shown = present(approval({"note": text}), NOW)
    assert field_of(shown, "args.note").notes == (note,)
    assert shown.warnings == (f"args.note: {note}",)


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n\treturn 1\r\n",
        "r\u00e9sum\u00e9.pdf",
        "T\u30b7\u30e3\u30c4",
        "price 100",
        "\u043f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440",
    ],
)
def test_ordinary_code_and_languages_raise_no_warning(text: str) -> None:
    assert present(approval({"note": text}), NOW).warnings == ()


# --- look-alikes


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("p\u0430ypal", f"p{mark('U+0430')}ypal mixes Cyrillic and Latin letters; it looks like paypal"),
        ("https://p\u0430ypal.com/x", "is really xn--pypal-4ve.com and looks like paypal.com"),
        ("ann@p\u0430ypal.com", "is really xn--pypal-4ve.com and looks like paypal.com"),
        ("see \u0430\u0440\u0440\u04cf\u0435.com", "looks like apple.com"),
        ("https://m\u00fcnchen.de/", f"host m{mark('U+00FC')}nchen.de is really xn--mnchen-3ya.de"),
        ("https://xn--pypal-4ve.com", f"is displayed as p{mark('U+0430')}ypal.com"),
        ("https://paypal.com@evil.example/x", "this goes to evil.example"),
        ("https://paypal.com\u2215login.evil.example", "looks like paypal.com/login.evil.example"),
        ("https://" + "\u00e4" * 280, "is longer than any host name can be"),
        ("https://a\x07\u0430.com", f"host a{mark('U+0007')}{mark('U+0430')}.com is really ?.com"),
        ("https://xn--\x1b.com", f"host xn--{mark('U+001B')}.com is displayed as"),
        ("xn--99999999999.com", "is displayed as xn--99999999999.com"),
        ("\uff50\uff41\uff59", "is not written in plain letters; it looks like pay"),
    ],
)
def test_what_looks_like_something_else_is_flagged(text: str, note: str) -> None:
    notes = one(text).notes
    assert any(note in found for found in notes), notes
    assert_safe(present(approval({"note": text}), NOW))


@pytest.mark.parametrize("place", ["tool", "thread", "agent", "requested_by", "why", "description"])
def test_look_alikes_and_hidden_characters_are_flagged_wherever_a_name_is_shown(place: str) -> None:
    odd = "p\u0430ypal\u202e"
    action = approval().action
    by_place = {
        "tool": approval(action=replace(action, tool=odd)),
        "thread": approval(action=replace(action, thread=odd)),
        "agent": approval(action=replace(action, agents=(odd,))),
        "requested_by": approval(action=replace(action, requested_by=odd)),
        "why": approval(why=odd),
        "description": approval(description=odd),
    }
    shown = present(by_place[place], NOW)
    label = "agents[0]" if place == "agent" else place
    assert [w.partition(":")[0] for w in shown.warnings] == [label, label]
    assert_safe(shown)


def test_a_tool_named_wholly_in_look_alike_letters_is_flagged() -> None:
    action = replace(approval().action, tool="\u0441\u043e\u0440\u0443")
    assert "looks like copy" in present(approval(action=action), NOW).warnings[0]


def test_an_agent_name_cannot_pass_for_a_longer_path() -> None:
    action = replace(approval().action, agents=("root > admin", "x"))
    assert present(approval(action=action), NOW).asked_by == '"root > admin" > x, requested by ann'


@given(st.text(max_size=40), st.sampled_from(["https://{}.com", "xn--{}.com", "{}@{}.com", "https://a.b@{}"]))
def test_a_note_about_a_host_holds_no_dangerous_character(text: str, template: str) -> None:
    words = template.format(text, text)
    assert_safe(present(approval(why=words, description=words), NOW))


def test_many_look_alikes_are_counted() -> None:
    words = " ".join(f"p\u0430{letter}al" for letter in "bcdefghijklmnop")
    assert one(words).notes[-1] == "and 7 more look-alikes"


# --- secrets


def test_a_secret_is_never_shown_and_the_field_says_so() -> None:
    action = replace(
        approval({"cmd": f"push {GITHUB}", GITHUB: 1}).action, requested_by=GITHUB, tool=f"t {GITHUB}"
    )
    shown = present(approval(action=action, why=GITHUB, description=GITHUB), NOW)
    assert GITHUB not in repr(shown)
    cmd = field_of(shown, "args.cmd")
    assert cmd.text == f'"push {mark("secret: GitHub token, 40 characters")}"'
    assert cmd.notes == ("a secret is not shown: GitHub token, 40 characters",)


def test_a_numeric_password_is_taken_out_as_an_integer_and_as_a_float() -> None:
    for value in (12345678, 12345678.0):
        shown = present(approval({"password": value}), NOW)
        assert field_of(shown, "args.password").text == mark("secret: password, 8 characters")


def test_a_text_cannot_pass_itself_off_as_a_taken_out_secret() -> None:
    assert one("[secret: password, 7 characters]").notes == ()
    assert mark("secret: x") not in one("\u2039secret: x\u203a").text


def test_the_password_of_a_url_is_taken_out_and_its_host_still_judged() -> None:
    shown = one("https://ann:hunter2@p\u0430ypal.com")
    assert "hunter2" not in repr(shown)
    assert any("looks like paypal.com" in note for note in shown.notes)


# --- size


def test_a_long_text_keeps_head_and_tail_and_names_the_gap() -> None:
    shown = one("a" * 3000 + "z" * 3000, limit=1000)
    assert shown.text.startswith('"aaa')
    assert shown.text.endswith('zzz"')
    assert mark("5,002 characters not shown") in shown.text
    assert shown.hidden_characters == 5002


def test_a_cut_never_goes_through_a_marker() -> None:
    for size in range(5, 80):
        shown = one("\u202eab" * 50, limit=size)
        assert shown.text.count("\u2039") == shown.text.count("\u203a")


def test_values_beyond_a_hundred_are_folded_under_a_path_that_can_be_opened() -> None:
    waiting = approval({"rows": list(range(250))})
    closed = present(waiting, NOW)
    assert len(closed.fields) == 101
    assert closed.fields[-1].text == mark("150 more values not shown")
    assert closed.hidden == ("args.*",)
    opened = present(waiting, NOW, opened=frozenset({"args.*"}))
    assert [f.text for f in opened.fields] == [str(n) for n in range(250)]
    assert opened.hidden == ()


def test_an_argument_cannot_take_the_name_of_the_fold() -> None:
    assert [f.path for f in present(approval({"*": 1, "a.b": 2, 'x"]["y': 3}), NOW).fields] == [
        'args["*"]',
        'args["a.b"]',
        'args["x\\"][\\"y"]',
    ]


def test_a_long_key_is_named_in_short_and_shown_in_full() -> None:
    key = "k" * 500
    shown = present(approval({key: 1}), NOW)
    assert shown.fields[0].text == f'"{key}"'
    assert shown.fields[1].text == "1"
    assert shown.fields[0].path.startswith(shown.fields[1].path)
    assert len(shown.fields[1].path) < 200


def test_empty_lists_and_objects_are_shown() -> None:
    assert [f.text for f in present(approval({"a": [], "b": {}, "c": None, "d": ""}), NOW).fields] == [
        "[]",
        "{}",
        "null",
        '""',
    ]


# --- properties

TRICKY = st.text(
    st.one_of(
        st.sampled_from('ab \n\t\r"\\\u2039\u203a\u202e\u200b\u0301\u00d7U+1\x1b\u00a0\ufe0f\u0430@:/.'),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=60,
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(-(2**53) + 1, 2**53 - 1)
    | TRICKY,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TRICKY, inner, max_size=4),
    max_leaves=12,
)
ARGS = st.dictionaries(TRICKY, VALUES, max_size=4)


def all_of(waiting: Approval, limit: int = 2000) -> Presentation:
    opened: frozenset[str] = frozenset()
    while True:
        shown = present(waiting, NOW, opened=opened, limit=limit)
        if not shown.hidden:
            return shown
        opened |= frozenset(shown.hidden)


@given(st.text(), st.text())
def test_two_different_texts_never_look_the_same(one_text: str, other: str) -> None:
    for lines in (False, True):
        assert (visible(one_text, lines=lines) == visible(other, lines=lines)) == (one_text == other)


@given(TRICKY, st.integers(0, 60), TRICKY)
def test_inserting_anything_is_seen(text: str, place: int, inserted: str) -> None:
    changed = text[:place] + inserted + text[place:]
    for lines in (False, True):
        assert (visible(changed, lines=lines) == visible(text, lines=lines)) == (changed == text)


@settings(max_examples=200)
@given(ARGS, ARGS)
def test_two_different_sets_of_arguments_never_look_the_same_once_opened(
    one_set: dict[str, Json], other: dict[str, Json]
) -> None:
    if scan(one_set) or scan(other):
        return
    same = canonical(one_set) == canonical(other)
    first, second = all_of(approval(one_set), limit=20), all_of(approval(other), limit=20)
    assert ([(f.path, f.text) for f in first.fields] == [(f.path, f.text) for f in second.fields]) == same
    assert bool(diff(one_set, other)) == (not same)


@settings(max_examples=200)
@given(ARGS, st.text(min_size=1, max_size=40), st.text(max_size=200), st.integers(0, 100))
def test_no_dangerous_character_is_left_in_any_text(
    args: dict[str, Json], name: str, words: str, limit: int
) -> None:
    name = name.encode("utf-8", "ignore").decode() or "x"
    action = Action(tool=name, args=args, thread=name, agents=(name, name), requested_by=words)
    terms = replace(
        approval().terms, quorum=((name, 1),), rule=name, proof=ProofRule(kind=ProofKind.TYPE, template=words)
    )
    waiting = approval(
        action=action,
        why=words,
        description=words,
        terms=terms,
        edited=replace(action, args={"a": words.encode("utf-8", "ignore").decode()}),
    )
    assert_safe(present(waiting, NOW, limit=limit))
    assert_safe(present(replace(waiting, edited=None), NOW, limit=limit))


@given(TRICKY, st.integers(0, 80))
def test_what_is_shown_and_what_is_declared_hidden_are_together_all_of_it(text: str, limit: int) -> None:
    waiting = approval({"note": text})
    whole = field_of(present(waiting, NOW, opened=frozenset({"args.note"})), "args.note").text
    cut = field_of(present(waiting, NOW, limit=limit), "args.note")
    if not cut.hidden_characters:
        assert cut.text == whole
        return
    gap = mark(f"{cut.hidden_characters:,} characters not shown")
    head, _, tail = cut.text.partition(gap)
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len(head) + len(tail) + cut.hidden_characters == len(whole)


def exact(text: str) -> int | float:
    """Read a whole number as what it was: an integer within 2^53, else a float."""
    return int(text) if abs(int(text)) < 2**53 else float(text)


@given(ARGS)
def test_the_card_is_the_same_after_a_round_trip_through_storage(args: dict[str, Json]) -> None:
    waiting = approval(args)
    stored = approval(json.loads(waiting.action.canonical_args, parse_int=exact))
    assert present(waiting, NOW) == present(stored, NOW)
