"""Tables of records on a PostgreSQL server, by SQLAlchemy; `pip install 'bestarm-bai[server]'`."""

import os
import random
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from bestarm.errors import StorageError
from bestarm.study.records import Record, Records, check_name, check_start, encode, unknown

try:
    import sqlalchemy as sql
    from sqlalchemy.dialects.postgresql import aggregate_order_by, insert
except ImportError:
    raise StorageError("PostgreSQL needs SQLAlchemy and psycopg: pip install 'bestarm-bai[server]'") from None

T = TypeVar("T")

TABLES = sql.MetaData()
STUDIES = sql.Table(
    "bestarm_studies",
    TABLES,
    sql.Column("id", sql.BigInteger, sql.Identity(), primary_key=True),
    sql.Column("name", sql.Text, nullable=False, unique=True),
    sql.Column("length", sql.BigInteger, nullable=False),
)
LOG = sql.Table(
    "bestarm_log",
    TABLES,
    sql.Column("study", sql.BigInteger, primary_key=True, autoincrement=False),
    sql.Column("number", sql.BigInteger, primary_key=True, autoincrement=False),
    sql.Column("record", sql.Text, nullable=False),
)

AGAIN = {
    "40001",
    "40P01",
    "23505",
    "42P07",
    "53300",
}  # lost a race with others, who will be done soon; or all seats taken


class PostgreSQL:
    """Records in two tables of a database. A study's row has the length of its log: writers queue to raise it."""

    def __init__(self, url: str, timeout: float = 60.0) -> None:
        self.url, self.timeout = url, timeout
        try:
            self.place = sql.make_url(url).render_as_string(hide_password=True)
        except sql.exc.ArgumentError as error:
            raise StorageError(f"this is no database URL: {error}") from None
        self._engine: Any = None
        self._process = 0

    def __reduce__(self) -> tuple[type["PostgreSQL"], tuple[str, float]]:
        return PostgreSQL, (self.url, self.timeout)

    def __del__(self) -> None:
        if getattr(self, "_engine", None) is not None and self._process == os.getpid():
            self._engine.dispose()

    def _connect(self) -> Any:
        """Return this process's engine."""
        if self._process != os.getpid():
            if self._engine is not None:
                self._engine.dispose(close=False)  # after a fork: its connections are the parent's
            try:
                engine = sql.create_engine(self.url, max_overflow=-1, pool_pre_ping=True)
            except (ImportError, sql.exc.SQLAlchemyError) as error:
                raise StorageError(f"{self.place} cannot be used: {error}") from None
            self._try(engine, TABLES.create_all)
            self._engine, self._process = engine, os.getpid()
        return self._engine

    def _do(self, work: Callable[[Any], T], alone: bool = False) -> T:
        """Do some work in one transaction, or without any if it is a statement alone."""
        engine = self._connect()
        return self._try(engine.execution_options(isolation_level="AUTOCOMMIT") if alone else engine, work)

    def _try(self, engine: Any, work: Callable[[Any], T]) -> T:
        """Do some work; again if others were in its way."""
        until = time.monotonic() + self.timeout
        while True:
            try:
                with engine.begin() as db:
                    return work(db)
            except sql.exc.DBAPIError as error:
                told = str(error.orig).strip()
                passing = getattr(error.orig, "sqlstate", None) in AGAIN or "too many clients" in told
                if not passing or time.monotonic() > until:
                    raise StorageError(f"the database {self.place} failed: {told}") from error
                time.sleep(random.uniform(0.005, 0.05))

    def names(self) -> list[str]:
        return self._do(lambda db: sorted(db.scalars(sql.select(STUDIES.c.name))), alone=True)

    def create(self, name: str, first: Record) -> bool:
        check_name(name)
        text = encode(first)

        def work(db: Any) -> bool:
            new = insert(STUDIES).values(name=name, length=1).on_conflict_do_nothing().returning(STUDIES.c.id)
            study = db.scalar(new)
            if study is not None:
                db.execute(LOG.insert(), {"study": study, "number": 0, "record": text})
            return study is not None

        return self._do(work)

    def append(self, name: str, records: Sequence[Record], after: int | None = None) -> bool:
        texts = [encode(record) for record in records]

        def work(db: Any) -> bool:
            longer = STUDIES.update().where(STUDIES.c.name == name).values(length=STUDIES.c.length + len(texts))
            if after is not None:
                longer = longer.where(STUDIES.c.length == after)
            found = db.execute(longer.returning(STUDIES.c.id, STUDIES.c.length)).first()
            if found is None:
                if db.scalar(sql.select(STUDIES.c.id).where(STUDIES.c.name == name)) is None:
                    raise unknown(name, self.place)
                return False
            study, length = found[0], found[1] - len(texts)
            rows = [{"study": study, "number": length + i, "record": text} for i, text in enumerate(texts)]
            if rows:
                db.execute(LOG.insert(), rows)
            return True

        return self._do(work)

    def read(self, name: str, start: int = 0) -> Sequence[Record]:
        place = f"{self.place}, study {name!r}"

        mine = STUDIES.outerjoin(LOG, (LOG.c.study == STUDIES.c.id) & (LOG.c.number >= start))
        block = LOG.c.number // sql.literal_column("1000")  # a row for each record costs more than the record
        text = sql.func.string_agg(LOG.c.record, aggregate_order_by(sql.literal_column("chr(10)"), LOG.c.number))
        query = sql.select(STUDIES.c.id, STUDIES.c.length, text).select_from(mine).where(STUDIES.c.name == name)
        query = query.group_by(STUDIES.c.id, STUDIES.c.length, block).order_by(block)
        rows = self._do(lambda db: db.execute(query).all(), alone=True)
        study, length = rows[0][:2] if rows else (None, 0)
        check_start(name, self.place, start, length)
        lines = [line for _, _, joined in rows if joined is not None for line in joined.split("\n")]
        if len(lines) != length - start:
            raise StorageError(f"{place}: {length - start - len(lines)} records are missing")
        return Records(lines, place, start, study)

    def delete(self, name: str) -> bool:
        def work(db: Any) -> bool:
            study = db.scalar(STUDIES.delete().where(STUDIES.c.name == name).returning(STUDIES.c.id))
            if study is not None:
                db.execute(LOG.delete().where(LOG.c.study == study))
            return study is not None

        return self._do(work)
