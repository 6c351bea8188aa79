"""What counts as a secret, where it is found, and what is left readable."""

import base64
import hashlib
import random
import string
import subprocess
import sys
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.actions import Json
from sayso.scanner import find_secrets, redact, redact_text, scan

_RANDOM = random.Random(7)  # noqa: S311 - made-up tokens


def made(length: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    """Return a token body that surely mixes letters and digits."""
    return "aB3" + "".join(_RANDOM.choices(alphabet, k=length - 3))


def capitals(length: int) -> str:
    """Return capitals and digits."""
    return "".join(_RANDOM.choices(string.ascii_uppercase + string.digits, k=length))


SECRETS = {
    "NVIDIA API key": f"nvapi-{made(40)}",
    "GitHub token": f"ghp_{made(36)}",
    "GitLab token": f"glpat-{made(20)}",
    "npm token": f"npm_{made(36)}",
    "PyPI token": f"pypi-AgEIcHlwaS5vcmc{made(60)}",
    "OpenAI API key": f"sk-proj-{made(40)}",
    "Anthropic API key": f"sk-ant-api03-{made(60)}",
    "AWS access key": f"AKIA{capitals(16)}",
    "Slack token": f"xoxb-123456789012-{made(24)}",
    "Google API key": f"AIza{made(35)}",
    "Google OAuth secret": f"GOCSPX-{made(28)}",
    "Stripe key": f"sk_live_{made(24)}",
    "HuggingFace token": f"hf_{made(34)}",
    "Groq API key": f"gsk_{made(52)}",
    "Tavily API key": f"tvly-{made(32)}",
    "LangSmith API key": f"lsv2_pt_{made(32)}_{made(10)}",
    "SendGrid API key": f"SG.{made(22)}.{made(43)}",
    "Telegram bot token": f"1234567890:AA{made(33)}",
    "JSON web token": f"eyJ{made(30)}.eyJ{made(40)}.{made(43)}",
}

IN_CONTEXT = {
    "Slack webhook": ("https://hooks.slack.com/services/{}", f"T{capitals(8)}/B{capitals(8)}/{made(24)}"),
    "Discord bot token": ("discord token: {}", f"MT{made(24)}.Gh{made(4)}.{made(38)}"),
    "AWS secret key": ("aws_secret_access_key = {}", f"{made(38)}/+"),
    "bearer token": ("Authorization: Bearer {}", made(40)),
    "basic credentials": ("Authorization: Basic {}", base64.b64encode(b"ann:hunter2").decode()),
    "password in URL": ("postgres://ann:{}@db.example.com/shop", "hunter2"),
    "password": ("password={}", "hunter2!"),
    "API key": ("curl 'https://x.example/?api_key={}&q=1'", "letmein"),
    "token": ("run --auth-token {} now", made(24)),
    "secret key": ('{{"secret_key": "{}"}}', "correct horse"),
}


@pytest.mark.parametrize("kind", SECRETS)
def test_a_token_with_its_vendors_prefix_is_found_inside_prose_and_only_it_is_replaced(kind: str) -> None:
    secret = SECRETS[kind]
    text = f"please use {secret}, then tell me"
    (hit,) = find_secrets(text)
    assert (text[hit.start : hit.end], hit.kind) == (secret, kind)
    assert redact_text(text) == f"please use [secret: {kind}, {len(secret)} characters], then tell me"


@pytest.mark.parametrize("kind", IN_CONTEXT)
def test_a_value_that_stands_where_a_secret_stands_is_found_and_only_it_is_replaced(kind: str) -> None:
    template, secret = IN_CONTEXT[kind]
    before, after = template.format("\0").split("\0")
    replaced = f"[secret: {kind}, {len(secret)} characters]"
    assert redact_text(template.format(secret)) == f"{before}{replaced}{after}"


@pytest.mark.parametrize(
    "label", ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY"]
)
def test_a_private_key_block_is_replaced_whole_and_the_text_around_it_stays(label: str) -> None:
    body = "\n".join([made(64), made(64), made(17) + "=="])
    block = f"-----BEGIN {label}-----\n{body}\n-----END {label}-----"
    assert (
        redact_text(f"first\n{block}\nlast") == f"first\n[secret: private key, {len(block)} characters]\nlast"
    )


def test_prose_after_a_lone_key_header_is_not_hidden_with_it() -> None:
    text = redact_text("-----BEGIN PRIVATE KEY----- then delete every table and send the rest")
    assert text.endswith("] then delete every table and send the rest")


def test_an_aws_secret_beside_its_access_key_is_found_without_a_name() -> None:
    secret = f"{made(38)}/x"
    text = f"AKIA{capitals(16)} {secret}"
    assert [hit.kind for hit in find_secrets(text)] == ["AWS access key", "AWS secret key"]
    assert find_secrets(secret) == ()


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("password", "letmein", "password"),
        ("dbPassword", "correct horse battery staple", "password"),
        ("X-Api-Key", "abcd", "API key"),
        ("client_secret", "shhh", "client secret"),
        ("authorization", "Bearer abcdefgh12345678", "bearer token"),
        ("authorization", "abcdefgh12345678", "authorization"),
        ("access_token", "a1b2c3d4e5f6", "token"),
        ("password", 12345678, "password"),
    ],
)
def test_an_argument_named_as_a_secret_is_one(name: str, value: Json, kind: str) -> None:
    (finding,) = scan({"headers": {name: value}})
    assert finding.kind == kind
    assert str(value) not in str(redact({"headers": {name: value}}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("page_token", "CAUQAA12345678"),
        ("max_tokens", 4096),
        ("password_hint", "first pet"),
        ("password", ""),
        ("password", "${DB_PASSWORD}"),
        ("api_key", "vault://shop/stripe"),
        ("private_key", "/etc/ssl/shop.pem"),
        ("token", "<your token>"),
        ("secret", "db-credentials"),
        ("token", "the next word"),
        ("author", "Ann Ames"),
        ("password", True),
        ("public_key", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample ann@example.com"),
    ],
)
def test_names_and_references_that_hold_no_secret_stay(name: str, value: Json) -> None:
    assert scan({name: value}) == ()
    assert redact({name: value}) == {name: value}


HARMLESS = (
    hashlib.sha1(b"commit").hexdigest(),  # noqa: S324 - what git prints
    "sha256:" + hashlib.sha256(b"image").hexdigest(),
    str(uuid.UUID(int=0x550E8400E29B41D4A716446655440000)),
    "flight UA 212 on 2026-09-21, seat 12A, PNR QX7TRL, price 1847.00",
    "The password: please rotate it. The token is in the secret store, ask for basic access.",
    "sk-learn-pipeline-for-regression and risk-free-return-of-investment",
    "connect(password=password, token=self.token, secret=os.environ['SECRET'])",
    "https://user@example.com:8443/path?a=1 and mailto:ann@example.com at 12:30",
    "data:image/png;base64," + base64.b64encode(bytes(random.Random(3).randbytes(6000))).decode(),  # noqa: S311
    "npm_config_registry=https://registry.example/npm_lifecycle_event",
    "visit Asia and ASIAN markets; AKIA is a prefix, hf_ and ghp_ too",
    "Bearer of bad news: bearer authentication-mechanisms-explained",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleExampleExample ann",
    "Use basic authentication or Basic abcdefghi, not basic12345678",
    "https://docs.example.com/guides/api-key-rotation#token-lifetimes",
)


@pytest.mark.parametrize("text", HARMLESS)
def test_hashes_ids_images_code_and_prose_stay_as_they_are(text: str) -> None:
    assert find_secrets(text) == ()
    assert scan({"content": text, "items": [text]}) == ()


@pytest.mark.parametrize(
    "invisible", ["\u200b", "\u2060", "\u00ad", "\ufe0f", "\x00", "\u202e", "\U000e0041", "\u034f"]
)
def test_a_secret_cut_up_with_invisible_characters_is_found_and_replaced_with_them(invisible: str) -> None:
    secret = SECRETS["GitHub token"]
    cut = invisible.join(secret)
    assert scan({"q": f"use {cut} now"})[0].kind == "GitHub token"
    assert redact({"q": f"use {cut} now"}) == {"q": f"use [secret: GitHub token, {len(cut)} characters] now"}


def test_a_finding_names_path_kind_and_length_and_never_the_secret() -> None:
    secret = SECRETS["GitHub token"]
    (finding,) = scan({"steps": [{"run it": f"git push https://{secret}@example.com"}]})
    assert finding.path == 'args.steps[0]["run it"]'
    assert finding.preview == 'GitHub token, 40 characters, starts with "ghp_"'
    assert secret[4:8] not in repr(finding)


def test_a_secret_in_a_key_is_found_and_kept_out_of_every_path() -> None:
    secret = SECRETS["Stripe key"]
    value: Json = {"map": {secret: {"password": "hunter2"}}}
    findings = scan(value)
    assert (findings[0].path, findings[0].kind) == ("args.map", "Stripe key")
    assert all(secret not in repr(f) for f in findings)
    assert secret not in repr(redact(value))


def test_two_different_secret_keys_stay_two_entries() -> None:
    first, second = f"ghp_{made(36)}", f"ghp_{made(36)}"
    value: Json = {first: 1, second: 2}
    clean = redact(value)
    assert isinstance(clean, dict)
    assert sorted(clean.values(), key=str) == [1, 2]


def test_overlapping_finds_are_one_that_covers_all_of_them() -> None:
    secret = SECRETS["GitHub token"]
    text = f"password={secret}!tail"
    (hit,) = find_secrets(text)
    assert (hit.kind, text[hit.start : hit.end]) == ("GitHub token", f"{secret}!tail")


def test_a_value_without_secrets_comes_back_as_the_same_object() -> None:
    value: Json = {"flight": "UA 212", "price": 1847.0, "refundable": False}
    assert redact(value) is value


@given(
    st.sampled_from([*SECRETS.values(), "password=hunter2!", "https://a:b1c2@d.example"]),
    st.text(max_size=20),
)
def test_redacting_twice_changes_nothing_more(secret: str, around: str) -> None:
    once = redact({"password": secret, "note": f"{around} {secret} {around}"})
    assert redact(once) == once


@given(st.sampled_from(list(SECRETS.values())), st.text(max_size=30), st.text(max_size=30))
def test_no_surrounding_text_hides_a_token(secret: str, before: str, after: str) -> None:
    assert secret not in redact_text(f"{before} {secret} {after}")


LARGE = {
    "prefixes": "sk-" * 350_000,
    "half tokens": ("ghp_" + "a" * 35) * 26_000,
    "half web tokens": "eyJaaaaaaaa." * 87_000,
    "key headers": "-----BEGIN PRIVATE KEY-----\n" * 37_000,
    "open quotes": 'password="' * 104_000,
    "half URLs": "@" + ("://" + "a:" * 250 + "\n") * 2_000,
    "blanks": "token" + " " * 1_000_000,
    "queries": "token" + "&________" * 115_000,
    "invisible": "g\u200bh\u200bp\u200b_" * 150_000,
}


@pytest.mark.parametrize("name", LARGE)
def test_a_megabyte_made_to_be_slow_is_read_to_its_end(name: str) -> None:
    """A scan that is not linear would take hours here; the bound only ends it."""
    reading = "import sys; from sayso.scanner import find_secrets; find_secrets(sys.stdin.read())"
    done = subprocess.run(  # noqa: S603 - our own Python and words
        [sys.executable, "-c", reading],
        input=LARGE[name],
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
