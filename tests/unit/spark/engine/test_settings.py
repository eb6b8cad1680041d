"""Pinned settings, with a session that is only a dictionary."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
from pyspark.errors import PySparkException

from eddyline.errors import EngineError
from eddyline.spark.engine.catalogue import Catalogue
from eddyline.spark.engine.settings import MEANINGFUL, TIMEZONE, PinnedSettings

DEFAULTS = {
    **dict.fromkeys(MEANINGFUL, "false"),
    TIMEZONE: "UTC",
    "spark.sql.caseSensitive": "false",
}


class FakeSession:
    """The parts of a session that settings are read from; counts what is asked for."""

    def __init__(self, **settings: str) -> None:
        self.getAll = dict(settings)
        self.asked = 0

    @property
    def conf(self) -> Any:
        return self

    def get(self, name: str) -> str:
        self.asked += 1
        value = self.getAll.get(name, DEFAULTS.get(name))
        if value is None:
            raise PySparkException(f"no setting {name}")
        return value

    @property
    def _jsparkSession(self) -> Any:
        return FakeConf(str(self.getAll))


class FakeConf:
    """The settings of a session as Spark's own objects show them."""

    def __init__(self, text: str) -> None:
        self.text = text

    def conf(self) -> FakeConf:
        return self

    def getAll(self) -> FakeConf:
        return self

    def toString(self) -> str:
        return self.text


def pinned(session: Any, folder: pathlib.Path) -> PinnedSettings:
    return PinnedSettings(session, Catalogue(folder))


def test_a_check_asks_for_single_settings_only_after_a_change(tmp_path: pathlib.Path) -> None:
    session = FakeSession()
    settings = pinned(session, tmp_path)
    asked = session.asked
    for _ in range(5):
        settings.check()
    assert session.asked == asked
    session.getAll["spark.sql.shuffle.partitions"] = "7"  # changes no meaning
    settings.check()
    assert session.asked > asked
    session.getAll[TIMEZONE] = "Asia/Tokyo"
    for _ in range(2):  # a refused text is not taken for a checked one
        with pytest.raises(EngineError, match=f"{TIMEZONE} was 'UTC' and is now 'Asia/Tokyo'"):
            settings.check()
    session.getAll[TIMEZONE] = "UTC"
    settings.check()


def test_another_session_is_checked_too(tmp_path: pathlib.Path) -> None:
    settings = pinned(FakeSession(), tmp_path)
    settings.check(FakeSession())  # type: ignore[arg-type]
    with pytest.raises(EngineError, match=r"unset\('spark.sql.legacy.x'\)"):
        settings.check(FakeSession(**{"spark.sql.legacy.x": "1"}))  # type: ignore[arg-type]


def test_a_setting_of_a_pinned_group_that_was_set_before_must_stay(tmp_path: pathlib.Path) -> None:
    name = "spark.sql.legacy.x"
    catalogue = Catalogue(tmp_path)
    catalogue.add_queries([("q", "SELECT 1", "count")])
    PinnedSettings(FakeSession(**{name: "TRUE"}), catalogue)  # type: ignore[arg-type]
    pinned(FakeSession(**{name: "true"}), tmp_path)
    with pytest.raises(EngineError, match=f"set\\('{name}', 'TRUE'\\), or open a new engine"):
        pinned(FakeSession(), tmp_path)
    assert Catalogue(tmp_path).settings[name] == "TRUE"  # type: ignore[index]


def test_a_catalogue_of_an_earlier_version_takes_the_settings_it_is_opened_under(
    tmp_path: pathlib.Path,
) -> None:
    Catalogue(tmp_path).add_queries([("q", "SELECT 1", "count")])
    pinned(FakeSession(**{TIMEZONE: "Asia/Tokyo"}), tmp_path)
    with pytest.raises(EngineError, match="was 'Asia/Tokyo' and is now 'UTC'"):
        pinned(FakeSession(), tmp_path)


def test_a_setting_that_an_earlier_version_did_not_pin_is_not_compared(
    tmp_path: pathlib.Path,
) -> None:
    catalogue = Catalogue(tmp_path)
    catalogue.add_queries([("q", "SELECT 1", "count")])
    catalogue.set_settings({TIMEZONE: "UTC"})
    pinned(FakeSession(), tmp_path).check()
    with pytest.raises(EngineError, match="sizeOfNull was 'false' and is now 'true'"):
        pinned(FakeSession(**{"spark.sql.legacy.sizeOfNull": "true"}), tmp_path)
