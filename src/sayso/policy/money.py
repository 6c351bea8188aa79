"""Amounts of money in whole minor units, so that no rounding can move a limit."""

import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, InvalidOperation

from sayso.errors import UsageError

_DIGITS: dict[str, int] = (
    dict.fromkeys(
        [
            "BIF",
            "CLP",
            "DJF",
            "GNF",
            "ISK",
            "JPY",
            "KMF",
            "KRW",
            "PYG",
            "RWF",
            "UGX",
            "UYI",
            "VND",
            "VUV",
            "XAF",
            "XOF",
            "XPF",
        ],
        0,
    )
    | dict.fromkeys(["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"], 3)
    | dict.fromkeys(["CLF", "UYW"], 4)
)
_LARGEST = Decimal(10) ** 18


@dataclass(frozen=True, slots=True)
class Money:
    """An amount in one currency; amounts in different currencies never compare.

    Args:
        minor: Whole minor units: cents, or yen where there are none.
        currency: The ISO 4217 code, three capital letters.

    Raises:
        UsageError: The code is not three capital letters, or the amount is not a whole number.
    """

    minor: int
    currency: str

    def __post_init__(self) -> None:
        """Refuse what is not a whole number of a currency."""
        if type(self.minor) is not int:
            raise UsageError(
                f"`minor` must be a whole number of minor units, got {type(self.minor).__name__}",
                hint='use Money.of("1847.00", "USD") for an amount in major units',
            )
        if not is_currency(self.currency):
            raise UsageError(
                f"{self.currency!r} is not a currency", hint="use a code such as USD, EUR or JPY"
            )

    @classmethod
    def of(cls, amount: str | int | Decimal, currency: str) -> "Money":
        """Return an amount given in major units, exactly.

        Raises:
            UsageError: The amount is not a number, or has more digits than the currency.
        """
        exact = _scaled(amount, currency)
        if exact != exact.to_integral_value():
            raise UsageError(
                f"{amount} has more digits than {currency} has ({_digits(currency)})",
                hint="round it first",
            )
        return cls(int(exact), currency)

    @classmethod
    def at_least(cls, amount: str | int | Decimal, currency: str) -> "Money":
        """Return the smallest amount of the currency that is not below `amount` (major units).

        Raises:
            UsageError: The amount is not a number.
        """
        return cls(int(_scaled(amount, currency).to_integral_value(ROUND_CEILING)), currency)

    def exceeds(self, limit: "Money") -> bool:
        """Return whether this is more than `limit`.

        Raises:
            UsageError: The two are in different currencies.
        """
        if self.currency != limit.currency:
            raise UsageError(
                f"{self.currency} and {limit.currency} do not compare",
                hint="state the cost and its limit in one currency",
            )
        return self.minor > limit.minor

    def __str__(self) -> str:
        """Return the amount as `USD 1,847.00`, with the digits its currency has."""
        digits = _digits(self.currency)
        return f"{self.currency} {Decimal(self.minor).scaleb(-digits):,.{digits}f}"


def is_currency(code: object) -> bool:
    """Return whether `code` has the form of an ISO 4217 code."""
    return isinstance(code, str) and re.fullmatch("[A-Z]{3}", code) is not None


def _digits(currency: str) -> int:
    return _DIGITS.get(currency, 2)


def _scaled(amount: object, currency: str) -> Decimal:
    if isinstance(amount, bool) or not isinstance(amount, (str, int, Decimal)):
        raise UsageError(
            f"an amount must be text, an int or a Decimal, got {type(amount).__name__}",
            hint="a float cannot hold every amount exactly; pass it as text",
        )
    try:
        value = Decimal(amount)
    except InvalidOperation:
        raise UsageError(f"{amount!r} is not an amount", hint='write it as "1847.00"') from None
    if not value.is_finite() or abs(value) >= _LARGEST:
        raise UsageError(f"{amount} is not an amount", hint="amounts are finite and below 10^18")
    return value.scaleb(_digits(currency))
