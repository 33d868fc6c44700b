"""Instances and databases that events name, and the tables do not."""

from __future__ import annotations

from routing.errors import quote
from routing.features.reconcile.causes.likeness import nearest
from routing.features.reconcile.groups import CauseKind, GroupAnswers, MismatchCause
from routing.rules.network import EstateNetwork
from routing.terms import Rejection


def find_missing(answers: GroupAnswers, network: EstateNetwork) -> MismatchCause | None:
    """Find the unknown name for which nothing is predicted."""
    if Rejection.UNKNOWN_INSTANCE in answers.rejections:
        return _instance(answers.instance, network)
    if Rejection.UNKNOWN_DATABASE in answers.rejections and answers.database is not None:
        return _database(answers.instance, answers.database, network)
    return None


def _instance(name: str, network: EstateNetwork) -> MismatchCause:
    near = nearest(name, network.instances)
    if near is not None:
        text = f"the tables know no instance {quote(name)}, but {quote(near)}: is it the same?"
        return MismatchCause(CauseKind.NEAR_NAME, f"{text} If so, import under one name (--instance)")
    text = f"the tables know no instance {quote(name)}: import its databases, services, endpoint and routes"
    return MismatchCause(CauseKind.INSTANCE_NOT_IMPORTED, text)


def _database(instance: str, name: str, network: EstateNetwork) -> MismatchCause:
    near = nearest(name, network.instances[instance].databases)
    whole = f"database {quote(name)} of instance {quote(instance)}"
    if near is not None:
        text = f"the tables know no {whole}, but {quote(near)}: is it the same?"
        return MismatchCause(CauseKind.NEAR_NAME, f"{text} If so, import it under one name")
    text = f"the tables know no {whole}: import sys.databases of the instance, and its services and routes"
    return MismatchCause(CauseKind.DATABASE_NOT_IMPORTED, text)
