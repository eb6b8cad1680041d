"""Content-based routing: which columns tell rows apart that a filter treats differently."""

from eddyline.attributes.partition import AttributePartition
from eddyline.content.learns import ContentLearns

__all__ = ["AttributePartition", "ContentLearns"]
