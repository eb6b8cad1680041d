"""Content-based routing: which columns tell rows apart that a filter treats differently."""

from eddyline.content.learns import ContentLearns
from eddyline.content.partition import AttributePartition

__all__ = ["AttributePartition", "ContentLearns"]
