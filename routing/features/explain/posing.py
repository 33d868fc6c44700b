"""Options of the command → the question that they pose, or what is wrong with it.

Nothing here imports Spark, so that a wrong question is answered at once.
"""

from __future__ import annotations

from datetime import datetime

from routing.features.explain.questions import DescribedMessage, Question, QuestionError, StoredMessage


def question(
    *,
    message_id: str | None,
    instance: str | None,
    database: str | None,
    from_network: bool,
    service: str | None,
    broker_instance: str | None,
    conversation: str | None,
    is_target: bool,
    at: datetime | None,
    now: datetime,
    from_service: str | None = None,
    hops_remaining: int | None = None,
) -> Question:
    """Return the question that the options of the command ask. Raises QuestionError."""
    described = {
        "--database": database is not None,
        "--from-network": from_network,
        "--service": service is not None,
        "--broker-instance": broker_instance is not None,
        "--conversation": conversation is not None,
        "--is-target": is_target,
        "--from-service": from_service is not None,
        "--hops": hops_remaining is not None,
    }
    described_options = [option for option, is_given in described.items() if is_given]
    texts = {
        "--message-id": message_id,
        "--instance": instance,
        "--database": database,
        "--service": service,
        "--broker-instance": broker_instance,
        "--conversation": conversation,
        "--from-service": from_service,
    }
    for option, value in texts.items():
        # Halves of surrogates stand for such bytes; Spark cannot take them.
        if value is not None and any("\ud800" <= character <= "\udfff" for character in value):
            raise QuestionError.no_text(option)
    if message_id is not None:
        if described_options:
            raise QuestionError.mixed(described_options)
        return StoredMessage(message_id, instance, at)
    if described_options == ["--conversation"]:
        return StoredMessage(None, instance, at, conversation)
    if instance is None and not described_options:
        raise QuestionError.neither()
    if from_network and database is not None:
        raise QuestionError.both_origins()
    missing = [] if instance is not None else ["--instance"]
    missing += [] if from_network or database is not None else ["--database or --from-network"]
    missing += [] if service is not None else ["--service"]
    if missing or instance is None or service is None:
        raise QuestionError.incomplete(missing)
    return DescribedMessage(
        instance,
        database,
        service,
        at or now,
        broker_instance,
        conversation,
        is_target,
        from_service,
        hops_remaining,
    )
