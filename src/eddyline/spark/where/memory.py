"""What a filter has learnt, kept in a small file from one program to the next.

The file is a hint, never the truth: whatever is wrong with it costs a warning and the time to learn
again, and a change of the predicates makes it void (docs/decisions/0028).
"""

from __future__ import annotations

import json
import os
import pathlib
import threading
import time
import uuid
import warnings
import zlib
from collections.abc import Sequence
from typing import Any

from eddyline.errors import EddylineError
from eddyline.fabric.knowledge import Knowledge, knowledge_from_dict
from eddyline.fabric.tactics.choose import RoutingPolicy, policy_name
from eddyline.spark.common.predicates import (
    LookupPredicate,
    NativePredicate,
    Predicate,
    PythonPredicate,
    SharedArgument,
)
from eddyline.spark.where.fingerprint import fingerprint
from eddyline.spark.where.stages import Stages

VERSION = 1
SAVED_EVERY_S = 10.0  # at most; a stream has something new with every micro-batch


class Memory:
    """The file of one filter.

    Several programs may use one file: each reads it once, when its filter is made, and replaces it
    as a whole. The one that writes last wins.

    Parameters
    ----------
    path
        A file that this process can write; it need not exist.
    stages
        The predicates.
    policy
        As given to `el.where`: what one policy has learnt is of no use to another.

    """

    def __init__(self, path: str | os.PathLike[str], stages: Stages, policy: RoutingPolicy) -> None:
        if not isinstance(path, str | os.PathLike):
            raise EddylineError(
                f"memory={path!r} is not a path; give the path of a file, as text or a pathlib.Path"
            )
        if pathlib.Path(path).is_dir():
            raise EddylineError(
                f"memory={os.fspath(path)!r} is a folder; give the path of a file, for example "
                f"{os.fspath(pathlib.Path(path) / 'filter.json')!r}"
            )
        if "://" in os.fspath(path):
            raise EddylineError(
                f"memory={os.fspath(path)!r} is an address; give the path of a file that this "
                f"process can write itself, such as one on a mounted disk"
            )
        self.path = pathlib.Path(path).absolute()
        self._predicates = [describe_predicate(predicate) for predicate in stages.routed]
        self._segments = [len(names) for names in stages.segment_names()]
        self._policy = f"{policy_name(policy)} {'' if isinstance(policy, str) else policy!r}"
        self._saved = -SAVED_EVERY_S
        self._lock = threading.Lock()
        self._has_warned = False

    def load(self) -> tuple[Knowledge, ...]:
        """Return what was learnt before; empty, with a warning, if it cannot be used."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ()
        except (OSError, UnicodeDecodeError) as error:
            return self._ignored(f"it cannot be read ({error})")
        try:
            plain = json.loads(text)
            if plain["version"] != VERSION:
                return self._ignored(f"it has version {plain['version']}, not {VERSION}")
            body = plain["learnt"]
            if plain["checksum"] != _checksum(body):
                return self._ignored("it is damaged")
            if (body["predicates"], body["policy"]) != (self._predicates, self._policy):
                return self._ignored("the predicates or the policy have changed since")
            knowledge = tuple(knowledge_from_dict(part) for part in body["knowledge"])
        except EddylineError as error:  # knowledge of another version
            return self._ignored(str(error))
        except (ValueError, KeyError, TypeError, AttributeError):
            return self._ignored("it is damaged")
        orders = [sorted(part.order) for part in knowledge]
        if orders != [list(range(count)) for count in self._segments]:
            return self._ignored("it is damaged")
        return knowledge

    def save(self, knowledge: Sequence[Knowledge], at_once: bool = True) -> None:
        """Replace the file, so that readers see the old one or the new one, never a part.

        Parameters
        ----------
        knowledge
            Of each segment; nothing is written if there is none.
        at_once
            Whether to write even if that was done moments ago.

        """
        with self._lock:
            now = time.monotonic()
            if not knowledge or not (at_once or now - self._saved >= SAVED_EVERY_S):
                return
            self._saved = now
            body = {
                "predicates": self._predicates,
                "policy": self._policy,
                "knowledge": [part.to_dict() for part in knowledge],
            }
            plain = {"version": VERSION, "checksum": _checksum(body), "learnt": body}
            partial = self.path.with_name(f"{self.path.name}.{uuid.uuid4().hex}.partial")
            try:
                partial.write_text(json.dumps(plain, separators=(",", ":")), encoding="utf-8")
                os.replace(partial, self.path)
            except OSError as error:
                partial.unlink(missing_ok=True)
                if not self._has_warned:
                    self._has_warned = True
                    warnings.warn(
                        f"what was learnt is not kept: cannot write {self.path} "
                        f"({error.strerror or error})",
                        stacklevel=2,
                    )

    def _ignored(self, why: str) -> tuple[Knowledge, ...]:
        warnings.warn(
            f"the memory {self.path} is ignored: {why}; everything is learnt again and the file "
            f"is replaced",
            stacklevel=5,
        )
        return ()


def _checksum(body: Any) -> int:
    return zlib.crc32(json.dumps(body, sort_keys=True).encode())


def describe_predicate(predicate: Predicate) -> dict[str, Any]:
    """Return what must be the same for earlier knowledge of a predicate to hold."""
    plain: dict[str, Any] = {"name": predicate.name, "pinned": not predicate.deterministic}
    if isinstance(predicate, PythonPredicate):
        plain["kind"] = predicate.kind
        plain["arguments"] = [_describe_argument(column) for column in predicate.columns]
        plain["function"] = fingerprint(predicate.function)
    elif isinstance(predicate, LookupPredicate):
        plain["kind"] = "anti lookup" if predicate.anti else "lookup"
        plain["arguments"] = [*predicate.columns, *predicate.keys]
    elif isinstance(predicate, NativePredicate):
        plain["kind"] = "spark"
    return plain


def _describe_argument(argument: Any) -> Any:
    if isinstance(argument, SharedArgument):
        return [fingerprint(argument.function), *map(_describe_argument, argument.columns)]
    return str(argument)
