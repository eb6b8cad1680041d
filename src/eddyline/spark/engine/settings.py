"""Settings of the Spark session that change what queries mean: pinned when an engine is opened.

A session's settings can change at any time, and Spark reads some when a query is analysed and some
while it runs. Queries that were written under one time zone or ANSI mode would go on under another
without an error (`docs/decisions/0018`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from eddyline.errors import EngineError
from eddyline.spark.engine.catalogue import Catalogue

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Settings = Mapping[str, str | None]

TIMEZONE = "spark.sql.session.timeZone"
_NAMES_OF_UTC = frozenset("utc etc/utc gmt etc/gmt z zulu +00:00 utc+0 gmt+0 etc/zulu".split())
BINARY_AS_BYTES = "spark.sql.execution.pyspark.binaryAsBytes"
#: Settings that change the rows or values of some query, with any of their values.
MEANINGFUL = (
    TIMEZONE,
    "spark.sql.timestampType",  # what TIMESTAMP means
    "spark.sql.ansi.enabled",  # errors or NULL; which casts are implicit
    "spark.sql.ansi.doubleQuotedIdentifiers",  # "x" is text or a column
    "spark.sql.ansi.enforceReservedKeywords",
    "spark.sql.ansi.relationPrecedence",
    "spark.sql.parser.escapedStringLiterals",  # what \ means
    "spark.sql.parser.quotedRegexColumnNames",  # `x.*` is a column or many
    "spark.sql.variable.substitute",  # ${x} is replaced
    "spark.sql.lateralColumnAlias.enableImplicitResolution",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.legacy.sizeOfNull",
    "spark.sql.decimalOperations.allowPrecisionLoss",
    "spark.sql.function.concatBinaryAsString",
    "spark.sql.function.eltOutputAsString",
    "spark.sql.jsonGenerator.ignoreNullFields",
    "spark.sql.columnNameOfCorruptRecord",
    "spark.sql.readSideCharPadding",
    BINARY_AS_BYTES,  # what Python functions are given
)
#: Every setting of these groups that is set restores a meaning of an earlier version.
MEANINGFUL_GROUPS = ("spark.sql.legacy.", "spark.sql.ansi.", "spark.sql.parser.")
#: Settings that must have one value, and why.
REQUIRED = {
    "spark.sql.caseSensitive": ("false", "names in an engine are the same in upper and lower case")
}
_CHECKED_MAX = 16


class PinnedSettings:
    """The settings that the queries of one engine were written under.

    Parameters
    ----------
    spark
        The session of the engine; its settings are pinned.
    catalogue
        Keeps them. If its queries were written under other settings, the session is refused.

    """

    def __init__(self, spark: SparkSession, catalogue: Catalogue) -> None:
        current = read_settings(spark)
        _refuse_unusable(spark)
        known = catalogue.settings
        if known is not None and catalogue.names():
            # A name that an earlier version did not pin cannot be compared.
            compared = {n: v for n, v in current.items() if n in known or n not in MEANINGFUL}
            changed = differences(known, {**_get_all(spark, known), **compared})
            if changed:
                raise EngineError(
                    f"the queries of this engine were written under other settings: "
                    f"{_describe(changed, 'was {!r} and is now {!r}')}; before opening it, "
                    f"{_remedy(changed)}, or open a new engine in another folder"
                )
            current = {**current, **known}
        catalogue.set_settings(current)
        self._spark = spark
        self._pinned = current
        self._checked: set[bytes] = set()
        self.check()

    @property
    def timezone(self) -> str:
        """Time zone of the session."""
        return str(self._pinned[TIMEZONE])

    @property
    def binary_as_bytes(self) -> bool:
        """Whether Python functions are given binary values as bytes."""
        return self._pinned[BINARY_AS_BYTES] != "false"

    def check(self, *sessions: SparkSession) -> None:
        """Refuse to go on if the engine's session, or another one, has other settings.

        All settings are fetched as one text; those that matter are compared only if it is new.
        """
        for session in (self._spark, *sessions):
            text = session._jsparkSession.conf().getAll().toString()
            digest = hashlib.sha256(text.encode()).digest()
            if digest in self._checked:
                continue
            self._compare(session)
            if len(self._checked) >= _CHECKED_MAX:
                self._checked.clear()
            self._checked.add(digest)

    def _compare(self, session: SparkSession) -> None:
        _refuse_unusable(session)
        current = {**_get_all(session, self._pinned), **read_settings(session)}
        changed = differences(self._pinned, current)
        if changed:
            raise EngineError(
                f"the session has other settings than when the engine was opened: "
                f"{_describe(changed, 'was {!r} and is now {!r}')}; {_remedy(changed)}"
            )


def read_settings(spark: SparkSession) -> dict[str, str | None]:
    """Return the settings of a session that change what queries mean."""
    names = [name for name in spark.conf.getAll if name.startswith(MEANINGFUL_GROUPS)]
    return _get_all(spark, [*MEANINGFUL, *sorted(names)])


def differences(pinned: Settings, current: Settings) -> dict[str, tuple[str | None, str | None]]:
    """Return the settings that differ, with both values; None stands for one that is not set.

    A setting that is not pinned was not set when the others were.

    Examples
    --------
    >>> differences({"ansi": "true", "zone": "UTC"}, {"ansi": "TRUE", "zone": "Asia/Tokyo"})
    {'zone': ('UTC', 'Asia/Tokyo')}
    >>> differences({}, {"legacy": "true"})
    {'legacy': (None, 'true')}
    >>> differences({"zone": "Etc/UTC"}, {"zone": "UTC"})
    {}

    """
    return {
        name: (pinned.get(name), current.get(name))
        for name in {**pinned, **current}
        if _folded(pinned.get(name)) != _folded(current.get(name))
    }


def _folded(value: str | None) -> str | None:
    """Return a value in a form in which equal ones are equal: UTC has many names."""
    if value is None:
        return None
    return "utc" if value.lower() in _NAMES_OF_UTC else value.lower()


def _get_all(spark: SparkSession, names: Mapping[str, object] | list[str]) -> dict[str, str | None]:
    return {name: _get(spark, name) for name in names}


def _get(spark: SparkSession, name: str) -> str | None:
    """Return the value of a setting, its default included; None if this Spark has none."""
    from pyspark.errors import PySparkException

    try:
        return str(spark.conf.get(name))
    except PySparkException:
        return None


def _refuse_unusable(spark: SparkSession) -> None:
    for name, (value, reason) in REQUIRED.items():
        current = _get(spark, name)
        if _folded(current) != value:
            raise EngineError(
                f"{name} is {current!r}, but {reason}; set it with "
                f"spark.conf.set({name!r}, {value!r})"
            )


def _describe(changed: Mapping[str, tuple[str | None, str | None]], form: str) -> str:
    return ", ".join(f"{name} {form.format(*values)}" for name, values in changed.items())


def _remedy(changed: Mapping[str, tuple[str | None, str | None]]) -> str:
    calls = [
        f"spark.conf.unset({name!r})" if before is None else f"spark.conf.set({name!r}, {before!r})"
        for name, (before, _) in changed.items()
    ]
    return f"set back with {', '.join(calls)}"
