"""How tests are shared out between processes: as few sessions of Spark as keep all of them at work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

WITH_SPARK = "tests/spark/"
# So many files with Spark take about as long as a session to start and to warm up.
WORTH_A_SESSION = 8


class FewSessions(LoadFileScheduling):
    """Files are shared out from both ends of their order, in which those with Spark come first.

    A session takes half a minute of processor time until it has warmed up. So every second process begins with the
    first files, and the others with the last, which need none until all that do not are done.
    """

    def _assign_work_unit(self, node: WorkerController) -> None:
        if self.nodes.index(node) % 2 and self.workqueue:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        """Let a process end that would start a session for the last few files."""
        has_session = any(scope.startswith(WITH_SPARK) for scope in self.assigned_work[node])
        are_few = len(self.workqueue) < WORTH_A_SESSION
        if (
            self.nodes.index(node) % 2
            and not (has_session or node.shutting_down)
            and are_few
            and all(scope.startswith(WITH_SPARK) for scope in self.workqueue)
        ):
            node.shutdown()
        else:
            super()._reschedule(node)


def make_scheduler(config: Any, log: Any) -> FewSessions | None:
    """Return the scheduler where files are shared out (``--dist=loadfile``)."""
    return FewSessions(config, log) if config.getoption("dist") == "loadfile" else None
