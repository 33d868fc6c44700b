"""Run the command line as a process, by ``sbroute`` or ``python -m routing``."""

from __future__ import annotations

import sys

from routing.process import CommandProgress, SignalGuard, is_for_this_process, leave_at_once, say


def script() -> None:
    """Run ``sbroute`` as an installed script or as a wheel task of Databricks.

    A wheel task ignores returned values, so an exit code other than 0 is raised. Code 0 is not, because some
    platforms report every exception as a failure.
    """
    # Handle signals before the imports that take time.
    status = SignalGuard(_put_away).run(_command) if is_for_this_process() else _command_alone()
    if status:
        sys.exit(status)


def _command(progress: CommandProgress) -> int:
    from routing.cli import main

    status = main(progress=progress)
    if progress.is_stuck:
        leave_at_once(status)
    return status


def _command_alone() -> int:
    """Run the command in a process that keeps its signal handlers. Ctrl-C raises KeyboardInterrupt."""
    progress = CommandProgress()
    try:
        return _command(progress)
    except KeyboardInterrupt:
        say(progress.as_line(f"sbroute: interrupted: {progress.text}"))
        return 130


def _put_away() -> None:
    """Remove the lock files, Java's messages and half exports of an interrupted command."""
    # A module that was not loaded has left nothing to remove.
    if "routing.delta.run_lock" in sys.modules:
        from routing.delta.run_lock import give_up

        give_up()
    if "routing.sessions.session" in sys.modules:
        from routing.sessions.session import remove_java_logs

        remove_java_logs()
    if "routing.importing.servers.server_exports" in sys.modules:
        from routing.importing.servers.server_exports import remove_scratch

        remove_scratch()


if __name__ == "__main__":
    script()
