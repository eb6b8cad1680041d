"""Content-based routing: which columns classify rows that a filter treats differently."""

from eddyline.content.learns import NO_ATTRIBUTE, ContentLearns
from eddyline.content.options import ContentOptions
from eddyline.content.routes import routes_by_rank

__all__ = ["NO_ATTRIBUTE", "ContentLearns", "ContentOptions", "routes_by_rank"]
