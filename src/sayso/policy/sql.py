"""What SQL does, read from its syntax tree.

Only what is known to read counts as reading: everything else, and everything that cannot be
parsed, is on the risky side.
"""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

SqlRisk: TypeAlias = Literal["read", "write", "destructive", "unknown"]

_LONGEST = 20_000
_DEEPEST = 200
_DIALECTS = ("", "postgres", "mysql", "sqlite")
_RANK: Mapping[SqlRisk, int] = {"read": 0, "write": 1, "destructive": 2, "unknown": 3}
_EXPLAIN = re.compile(
    r"\s*explain\s+(?:query\s+plan\s+|analyze\s+|verbose\s+|\([a-z0-9_,\s]*\)\s*)*", re.IGNORECASE
)
_AMBIGUOUS = re.compile(
    r"/\*[!+M]|\\['\"`]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\b(?:shutdown|reconfigure|xp_\w+)\b", re.IGNORECASE
)
"""What runs in some database and looks like a comment, a quote or an alias to a parser."""

_READ_PRAGMAS = frozenset(
    [
        "table_info",
        "table_xinfo",
        "table_list",
        "index_list",
        "index_info",
        "index_xinfo",
        "foreign_key_list",
        "database_list",
    ]
)
_PURE = frozenset(
    [
        "age",
        "array_agg",
        "array_length",
        "array_position",
        "btrim",
        "bool_and",
        "bool_or",
        "char_length",
        "cardinality",
        "ceil",
        "date_bin",
        "date_format",
        "date_part",
        "date_trunc",
        "datediff",
        "datetime",
        "dense_rank",
        "every",
        "format",
        "generate_subscripts",
        "ifnull",
        "initcap",
        "instr",
        "json_agg",
        "json_array_elements",
        "json_array_length",
        "json_build_object",
        "json_each",
        "json_extract",
        "json_group_array",
        "json_object",
        "json_object_agg",
        "json_object_keys",
        "json_type",
        "json_valid",
        "jsonb_agg",
        "jsonb_array_elements",
        "jsonb_array_length",
        "jsonb_build_object",
        "jsonb_each",
        "jsonb_object_agg",
        "jsonb_object_keys",
        "jsonb_typeof",
        "julianday",
        "last_insert_rowid",
        "lpad",
        "ltrim",
        "make_date",
        "month",
        "now",
        "nullif",
        "octet_length",
        "percent_rank",
        "position",
        "printf",
        "quarter",
        "rank",
        "regexp_matches",
        "regexp_replace",
        "replace",
        "reverse",
        "rpad",
        "rtrim",
        "split_part",
        "strftime",
        "string_agg",
        "substr",
        "substring",
        "to_char",
        "to_date",
        "to_json",
        "to_jsonb",
        "to_number",
        "to_timestamp",
        "total",
        "trim",
        "trunc",
        "typeof",
        "unixepoch",
        "unnest",
        "upper",
        "version",
        "week",
        "year",
    ]
)


@dataclass(frozen=True, slots=True)
class SqlMatch:
    """What a piece of SQL does.

    Args:
        risk: `read`, `write` (adds or changes), `destructive` (removes, or changes the database
            itself), or `unknown` (cannot be read, or calls something not known to be harmless).
        tables: The tables it names, sorted, as they are written.
    """

    risk: SqlRisk
    tables: tuple[str, ...] = ()

    @property
    def destructive(self) -> bool:
        """Whether it does, or might do, anything but read."""
        return self.risk != "read"


def sql(value: object, dialect: str = "") -> SqlMatch:
    """Read SQL of a dialect; without one, the worst reading of several dialects counts."""
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST or _nests_too_deep(value):
        return SqlMatch("unknown")
    return _read(value, dialect)


@lru_cache(maxsize=256)
def _read(text: str, dialect: str) -> SqlMatch:
    if _AMBIGUOUS.search(text):
        return SqlMatch("unknown")
    body = _EXPLAIN.sub("", text, count=1) if _EXPLAIN.match(text) else text
    found = [
        each for each in (_parsed(body, name) for name in ((dialect,) if dialect else _DIALECTS)) if each
    ]
    if not found:
        return SqlMatch("unknown")
    tables = sorted({table for each in found for table in each.tables})
    return SqlMatch(_worst(each.risk for each in found), tuple(tables))


def _worst(risks: Iterable[SqlRisk]) -> SqlRisk:
    return max(risks, key=_RANK.__getitem__)


def _nests_too_deep(text: str) -> bool:
    return (
        text.count("(") > _DEEPEST
        or len(re.findall(r"\b(?:case|not)\b|[-+~!]\s*(?=[-+~!])", text, re.IGNORECASE)) > _DEEPEST
    )


def _parsed(text: str, dialect: str) -> SqlMatch | None:
    """Read the text in one dialect, or return None when it is not SQL there."""
    import sqlglot  # noqa: PLC0415 - costs a third of a second, and most policies need none
    from sqlglot import exp  # noqa: PLC0415 - see `_parsed`
    from sqlglot.errors import SqlglotError  # noqa: PLC0415 - see `_parsed`

    # Its warnings quote the statement, which may hold what must never reach a log.
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    try:
        trees = sqlglot.parse(text, read=dialect or None)
    except (SqlglotError, ValueError, RecursionError):
        return None
    statements = [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]
    if not statements:
        return None
    nodes = [node for tree in statements for node in tree.walk()]
    risks: list[SqlRisk] = []
    for tree in statements:
        risks.append(_statement_risk(tree))
        risks.extend(risk for node in tree.walk() for risk in _node_risk(node))
    return SqlMatch(_worst(risks), tuple(sorted(_tables(nodes))))


def _statement_risk(tree: object) -> SqlRisk:
    from sqlglot import exp  # noqa: PLC0415 - see `_parsed`

    if isinstance(tree, (exp.Select, exp.SetOperation, exp.Subquery, exp.Values, exp.Show, exp.Describe)):
        return "read"
    if isinstance(tree, exp.Pragma):
        name = getattr(tree.this, "name", "")
        return "read" if name.lower() in _READ_PRAGMAS and not tree.find(exp.EQ) else "write"
    if isinstance(tree, (exp.Insert, exp.Update, exp.Merge, exp.Create, exp.Comment, exp.Set)):
        return "write"
    if isinstance(tree, (exp.Delete, exp.Drop, exp.TruncateTable, exp.Alter, exp.Kill, exp.Copy)):
        return "destructive"
    return "unknown"


def _node_risk(node: object) -> Iterator[SqlRisk]:
    """Yield what makes a part of a statement more than a read."""
    from sqlglot import exp  # noqa: PLC0415 - see `_parsed`

    if isinstance(node, (exp.Delete, exp.Drop, exp.TruncateTable, exp.Alter, exp.Copy, exp.Kill)):
        yield "destructive"
    elif isinstance(node, (exp.Into, exp.Lock, exp.PropertyEQ, exp.NextValueFor)) or (
        isinstance(node, (exp.Insert, exp.Update, exp.Merge, exp.DDL)) and not isinstance(node, exp.Query)
    ):
        yield "write"
    elif isinstance(node, (exp.Command, exp.ReadCSV, exp.ReadParquet)):
        yield "unknown"
    elif isinstance(node, exp.Anonymous):
        qualified = isinstance(node.parent, exp.Dot)
        if qualified or (node.name.lower() not in _PURE and not _names_a_pragma(node)):
            yield "unknown"


def _names_a_pragma(node: object) -> bool:
    from sqlglot import exp  # noqa: PLC0415 - see `_parsed`

    return (
        isinstance(node, exp.Anonymous)
        and isinstance(node.parent, exp.Pragma)
        and node.name.lower() in _READ_PRAGMAS
    )


def _tables(nodes: Sequence[object]) -> set[str]:
    from sqlglot import exp  # noqa: PLC0415 - see `_parsed`

    local = {node.alias for node in nodes if isinstance(node, exp.CTE)}
    found = {
        ".".join(part.name for part in node.parts)
        for node in nodes
        if isinstance(node, exp.Table) and not isinstance(node.this, exp.Func)
    }
    return found - local - {""}
