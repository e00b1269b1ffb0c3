"""Output schemas (`--json`), made from the types that commands print.

A command prints a named tuple (`Session.show`), so its class says all that a schema needs: names
and types of the fields, the docstring, and the comment beside a field, which describes it.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from contextlib import suppress
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict  # which pydantic wants before Python 3.12

from loki_memory.browse.audit import Audit
from loki_memory.browse.doctor import Diagnosis
from loki_memory.browse.graph import Graph
from loki_memory.browse.metrics import Metrics
from loki_memory.browse.purge import Purged, Tainted
from loki_memory.browse.status import Garbage, Stats, Status
from loki_memory.browse.topics import Branch, Timeline, Topics
from loki_memory.browse.trust import BroughtMemories
from loki_memory.cli import (
    browse,
    common,
    daemon,
    history,
    import_export,
    install,
    learn,
    maintain,
    merge_driver,
    output,
    read,
    recall,
    review,
    serve,
    sessions,
    start,
    team,
    write,
)
from loki_memory.consolidation.run import Deduplicated
from loki_memory.daemon.background import BackgroundState
from loki_memory.editing.removal import Forgotten
from loki_memory.history.bisect import BisectTurn
from loki_memory.history.blame import Blame
from loki_memory.history.branch_mode import Exchanged
from loki_memory.history.inline_commit import Committed
from loki_memory.history.revert import Reverted
from loki_memory.ingest.local_archive import Exported
from loki_memory.ingest.pause import Pause
from loki_memory.ingest.replay import Replay
from loki_memory.ingest.run import Ingested
from loki_memory.injection.context import TaskContext
from loki_memory.integrity.verify import Verified
from loki_memory.interop.export_memory import ClearedMemory, ExportedMemory
from loki_memory.interop.transfer import Transferred
from loki_memory.journal.tally import Economics
from loki_memory.seed.seeding import SeedPlan
from loki_memory.server.tokens import NewToken

_COMMENTED = re.compile(r"^    (\w+): .*  # (?!noqa)(.+)$", re.MULTILINE)

# The types that each command prints with `--json`; a failing command prints an `error`.
OUTPUTS: dict[str, Any] = {
    "record": sessions.RecordedEpisodes,
    "remember": common.StoredRecords,
    "lesson": common.StoredRecords,
    "correct": common.StoredRecords,
    "supersede": common.StoredRecords,
    "reject": common.StoredRecords,
    "forget": Forgotten,
    "purge": Purged,
    "taint": Tainted,
    "quarantine": write.QuarantineOutput,
    "restore": common.StoredRecords,
    "archive": write.ArchivedRecord,
    "pin": common.StoredRecords,
    "link": common.StoredRecords,
    "copy": Transferred,
    "move": Transferred,
    "consolidate": learn.ConsolidateOutput,
    "ingest": Ingested | sessions.IngestPlan,
    "staged": sessions.StagedSessions,
    "replay": Replay,
    "import": import_export.ImportOutput | import_export.ImportedArchive,
    "export": Exported | ExportedMemory | import_export.ExportedHtml,
    "recall": recall.RecallOutput,
    "context": TaskContext,
    "continuity": recall.ContinuityOutput,
    "feedback": learn.FeedbackOutput,
    "topics": Topics,
    "timeline": Timeline,
    "graph": Graph,
    "explore": Branch,
    "traverse": browse.TraversedMemories,
    "status": Status,
    "show": read.ShownRecord,
    "list": read.Listing,
    "learnings": read.Listing,
    "skills": read.Listing | learn.PublishedSkills | read.ShownRecord | common.StoredRecords,
    "stats": Stats | Economics | Metrics,
    "ledger": team.Ledgers | team.ResumeOutput | team.AcceptedHandoff | common.StoredRecords,
    "handoff": team.Handoffs | team.HandoffPlan | team.AcceptedHandoff | common.StoredRecords,
    "mcp": serve.ClientConfiguration,
    "serve": serve.ServerAddress,
    "token": serve.TokenList | NewToken,
    "hook": daemon.HookOutput,
    "injections": sessions.Injections,
    "pause": Pause,
    "resume": sessions.ResumedCapture,
    "diff": review.ReviewOutput,
    "review": review.ReviewOutput,
    "check": review.CheckOutput,
    "verify": Verified,
    "commit": Committed,
    "pull": Exchanged,
    "push": Exchanged,
    "log": history.LogOutput,
    "blame": Blame,
    "bisect": BisectTurn,
    "revert": Reverted,
    "resolve": history.ResolveOutput,
    "merge-driver": merge_driver.MergeOutput,
    "seed": SeedPlan,
    "init": start.InitOutput,
    "watch": BackgroundState | daemon.LoggedLine,
    "daemon": daemon.DaemonOutput | daemon.LogLines,
    "sync": maintain.ChangedFiles,
    "rebuild": maintain.ChangedFiles,
    "doctor": Diagnosis,
    "trust": BroughtMemories,
    "gc": Garbage,
    "audit": Audit,
    "dedupe": Deduplicated,
    "clear": ClearedMemory,
    "install": install.InstallOutput,
    "uninstall": install.InstallOutput,
    "config": maintain.ConfigOutput,
    "ui": serve.UiAddress,
    "demo": start.DemoOutput,
    "completion": maintain.CompletionScript,
    "version": maintain.VersionOutput,
    "error": output.ErrorOutput,
}


def output_schema(printed: Any) -> dict[str, Any]:
    """The schema of what `--json` prints for a type, or for one of several types."""
    return TypeAdapter(_as_json(printed, {})).json_schema()


def _as_json(shape: Any, objects: dict[Any, Any]) -> Any:
    """Replace each named tuple in a type by the object that it is printed as."""
    if shape in objects:
        return objects[shape]
    if is_typeddict(shape) or hasattr(shape, "_fields"):
        return _object(shape, objects)
    origin, inner = get_origin(shape), get_args(shape)
    if origin in {None, Literal}:
        return shape
    if origin is tuple:  # of any length
        return list[_as_json(inner[0], objects)]  # type: ignore[misc]
    made = tuple(_as_json(part, objects) for part in inner)
    return Union[made] if origin in {Union, UnionType} else origin[made]  # noqa: UP007 - of parts


def _object(shape: Any, objects: dict[Any, Any]) -> Any:
    """The object with the fields of a named tuple; all are printed, those with a default too."""
    objects[shape] = shape.__name__  # until it is made: a tree refers to itself by its name
    notes, fields = _comments(shape), {}
    optional = getattr(shape, "__optional_keys__", ())
    for name, hint in get_type_hints(shape, localns=_names(shape.__module__)).items():
        field: Any = Annotated[_as_json(hint, objects), Field(description=notes.get(name))]
        fields[name] = NotRequired[field] if name in optional else field
    typed_dict: Any = TypedDict
    objects[shape] = typed_dict(shape.__name__, fields)
    objects[shape].__doc__ = shape.__doc__
    return objects[shape]


def _names(module: str) -> dict[str, Any]:
    """The names of a module, with those that it imports for annotations only."""
    names = dict(vars(sys.modules[module]))
    for statement in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(statement, ast.If):  # TYPE_CHECKING
            exec(compile(ast.Module(statement.body, []), module, "exec"), names)  # noqa: S102
    return names


def _comments(shape: type) -> dict[str, str]:
    """The comments beside fields, by the names of the fields."""
    notes: dict[str, str] = {}
    for part in shape.__mro__:
        with suppress(OSError, TypeError):  # made by a call, or built in: there is no source
            notes |= _COMMENTED.findall(inspect.getsource(part))
    return notes
