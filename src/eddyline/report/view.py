"""How a report is shown: the same for every kind of report."""

from __future__ import annotations

import abc
import pathlib

from rich.console import RenderableType

from eddyline.report import html, text
from eddyline.report.document import Document


class View(abc.ABC):
    """Base of everything that prints as a report and shows itself in a notebook.

    Examples
    --------
    >>> class Greeting(View):
    ...     def document(self) -> Document:
    ...         return Document("hello", ["three rows"])
    >>> Greeting()
    hello
    three rows

    """

    @abc.abstractmethod
    def document(self) -> Document:
        """Return what is to be shown, without any markup."""

    def __rich__(self) -> RenderableType:
        return text.render(self.document())

    def __str__(self) -> str:
        return text.to_text(self.document())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html.fragment(self.document())

    def to_html(self, path: str | pathlib.Path) -> pathlib.Path:
        """Write a page that needs no network and no other file; return its path."""
        target = pathlib.Path(path)
        target.write_text(html.page(self.document()), encoding="utf-8")
        return target
