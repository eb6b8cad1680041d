"""Methods of index migration, one to a file."""

from eddyline.index.migration.all_partitions import MigrateAll
from eddyline.index.migration.migration import Migration, PartitionUse, SearchCost
from eddyline.index.migration.nothing import MigrateNothing
from eddyline.index.migration.partial import MigratePartial

#: Every migration by its name. The conformance suite covers all of them.
MIGRATIONS: dict[str, type[Migration]] = {
    migration.name: migration for migration in (MigrateAll, MigrateNothing, MigratePartial)
}

__all__ = [
    "MIGRATIONS",
    "MigrateAll",
    "MigrateNothing",
    "MigratePartial",
    "Migration",
    "PartitionUse",
    "SearchCost",
]
