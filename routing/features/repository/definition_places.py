"""The file of a finding, and the line where a script's statement says what it is about."""

from __future__ import annotations

from collections.abc import Mapping

from routing.features.check.subjects import Spot, SubjectKey, subject_key
from routing.features.lint.lint_finding import LintFinding
from routing.rules.text import collated

_NAMED = ("routes", "services", "databases")


class DefinitionPlaces:
    """The places of definitions in files, found for findings."""

    def __init__(self, spots: Mapping[SubjectKey, Spot]) -> None:
        self._spots = spots
        self._by_name: dict[tuple[str, str, str], Spot] = {}
        self._first: dict[str, Spot] = {}
        for (view, instance, _, name), spot in spots.items():
            if name:
                self._by_name.setdefault((view, instance, name), spot)
            self._first.setdefault(instance, spot)

    def spot_of(self, finding: LintFinding) -> Spot | None:
        """Return the place of a finding's route, service or database; else of its instance."""
        instance, database, name = finding.instance_name, finding.database_name, finding.object
        if instance is None:
            return None
        if name:
            # A service of an instance stands in any of its databases.
            for view in _NAMED:
                spot = self._spots.get(
                    subject_key(view, instance, None if view == "databases" else database, name)
                )
                spot = spot or (database is None and self._by_name.get((view, instance, collated(name)))) or None
                if spot is not None:
                    return spot
        if database:
            exact = [subject_key("databases", instance, None, database)]
            for key in (*exact, *(subject_key(view, instance, database, None) for view in _NAMED)):
                if key in self._spots:
                    return self._spots[key]
        return self._first.get(instance)
