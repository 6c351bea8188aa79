"""Money: exact, and never mixed."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.errors import UsageError
from sayso.policy import Money


@pytest.mark.parametrize(
    ("amount", "currency", "text", "minor"),
    [
        ("1847.00", "USD", "USD 1,847.00", 184_700),
        (400, "USD", "USD 400.00", 40_000),
        (1847, "JPY", "JPY 1,847", 1847),
        ("1.234", "KWD", "KWD 1.234", 1234),
        ("-0.05", "EUR", "EUR -0.05", -5),
        (Decimal("12.5"), "EUR", "EUR 12.50", 1250),
    ],
)
def test_an_amount_has_the_digits_of_its_currency(
    amount: str | int | Decimal, currency: str, text: str, minor: int
) -> None:
    money = Money.of(amount, currency)
    assert (str(money), money.minor) == (text, minor)


@pytest.mark.parametrize(
    ("amount", "currency"),
    [
        ("1.005", "USD"),
        ("1.5", "JPY"),
        ("abc", "USD"),
        ("nan", "USD"),
        ("inf", "USD"),
        ("1e40", "USD"),
        (1.5, "USD"),
        (True, "USD"),
        ("1", "usd"),
        ("1", "DOLLARS"),
        ("1", ""),
    ],
)
def test_what_is_not_exactly_an_amount_is_refused(amount: str, currency: str) -> None:
    with pytest.raises(UsageError):
        Money.of(amount, currency)


def test_minor_units_are_whole() -> None:
    with pytest.raises(UsageError):
        Money(1.5, "USD")  # type: ignore[arg-type]


def test_currencies_never_mix() -> None:
    with pytest.raises(UsageError, match="EUR"):
        Money(1, "EUR").exceeds(Money(1, "USD"))


@given(st.integers(-(10**12), 10**12), st.integers(-(10**12), 10**12))
def test_more_is_more_by_a_single_minor_unit(a: int, b: int) -> None:
    assert Money(a, "USD").exceeds(Money(b, "USD")) == (a > b)


@given(st.decimals(min_value=0, max_value=10**9, places=6))
def test_rounding_up_never_goes_below_the_amount(amount: Decimal) -> None:
    assert Decimal(Money.at_least(amount, "USD").minor) >= amount * 100
