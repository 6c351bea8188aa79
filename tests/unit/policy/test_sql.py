"""Attacks on the reading of SQL."""

import pytest

from sayso.policy import sql


@pytest.mark.parametrize(
    "text",
    [
        "select 1",
        "SELECT a, count(*) FROM t WHERE b = 'delete from t' GROUP BY a HAVING count(*) > 1 ORDER BY 1 LIMIT 5;",
        "with a as (select 1 as x) select * from a join b using (x)",
        "select lower(name), coalesce(a, b), date_trunc('day', at), to_char(at, 'YYYY') from t",
        "(select 1) union all (select 2)",
        "select price::text from t",
        "select * from (select 1 as drop_count) s -- delete",
        "explain select * from t",
        "select case when a > 1 then 'update' else 'b' end from t",
    ],
)
def test_a_plain_read_is_not_destructive(text: str) -> None:
    assert sql(text).risk == "read"
    assert not sql(text).destructive


@pytest.mark.parametrize(
    ("text", "risk"),
    [
        ("insert into t values (1)", "write"),
        ("update t set a = 1", "write"),
        ("create table t (a int)", "write"),
        ("select * into copy from t", "write"),
        ("select * from t for update", "write"),
        ("with n as (insert into t values (1) returning a) select * from n", "write"),
        ("delete from t", "destructive"),
        ("DeLeTe/**/FrOm t", "destructive"),
        ("drop table t", "destructive"),
        ("truncate t", "destructive"),
        ("alter table t drop column a", "destructive"),
        ("select 1; drop table t", "destructive"),
        ("select 1;;; -- x\n drop table t --", "destructive"),
        ("with d as (delete from t returning *) select * from d", "destructive"),
        ("explain analyze delete from t", "destructive"),
        ("EXPLAIN (ANALYZE, BUFFERS) DELETE FROM t", "destructive"),
        ("copy t to program 'sh'", "destructive"),
        ("select 1 from t # c\n; drop table x", "destructive"),
        ("select pg_terminate_backend(1)", "unknown"),
        ("select * from dblink('x', 'drop table t') as r(a int)", "unknown"),
        ("select nextval('s')", "unknown"),
        ("select set_config('a', 'b', false)", "unknown"),
        ("select lo_import('/etc/passwd')", "unknown"),
        ("select load_file('/etc/passwd')", "unknown"),
        ("select pg_catalog.lower(1), evil.lower(2)", "unknown"),
        ("select * from read_csv('/etc/passwd')", "unknown"),
        ("select 1 into outfile '/tmp/x'", "unknown"),
        ("/*!50000 delete from t */", "unknown"),
        ("select 1 /*! into outfile '/tmp/x' */", "unknown"),
        ("select '\\' ; drop table x; -- '", "unknown"),
        ("call wipe()", "unknown"),
        ("do $$ begin delete from t; end $$", "unknown"),
        ("vacuum", "unknown"),
        ("grant all on t to x", "unknown"),
        ("begin", "unknown"),
        ("delet from t", "unknown"),
        ("pragma writable_schema = on", "write"),
        ("select 1 --1; drop table t", "destructive"),
        ("select 1 --1\n; drop table t", "destructive"),
        ("/* /* */ drop table t; -- */ select 1", "destructive"),
        ("select $$; drop table t; select $$", "destructive"),
        ("select [a'] ; drop table t; --']", "destructive"),
        ("select 1; \r drop table t", "destructive"),
        ("select a := 1", "write"),
        ("select 1 shutdown", "unknown"),
        ("select x from t where exists (select pg_sleep(1))", "unknown"),
        ("", "unknown"),
        ("-- nothing", "unknown"),
        ("select 1\x00; drop table t", "unknown"),
        ("select " + "(" * 500 + "1" + ")" * 500, "unknown"),
        ("select '" + "a" * 30_000 + "'", "unknown"),
        (None, "unknown"),
        (["select 1"], "unknown"),
    ],
)
def test_whatever_is_not_a_plain_read_is_on_the_risky_side(text: object, risk: str) -> None:
    assert sql(text).risk == risk
    assert sql(text).destructive


def test_a_dialect_can_be_named() -> None:
    text = "select 1 from t # c\n"
    assert sql("select `a` from `t`", "mysql").risk == "read"
    assert sql(text, "mysql").risk == "read"
    assert sql("select $$ ; drop table x $$", "postgres").risk == "read"


def test_tables_are_named_without_local_names() -> None:
    assert sql("with c as (select * from s.a) select * from c join b using (x)").tables == ("b", "s.a")
