"""What to do where SQL Server itself reports trouble: words by what its number is about."""

from __future__ import annotations

from routing.rules.observed import Topic

ADVICE: dict[Topic, str] = {
    Topic.ROUTING: "SQL Server routed it otherwise than these exports say. Export the routes of the sending"
    " database and of msdb, sys.databases and sys.services again, all at one time, and compare.",
    Topic.TRANSPORT: "The routing is right, the connection fails. From the sending server, see that the name in"
    " the address resolves, that a firewall lets its port through, and that the Service Broker endpoint there is"
    " STARTED and listens on that port (sys.tcp_endpoints); sys.dm_broker_connections shows what stands.",
    Topic.SECURITY: "The routing is right, the two sides do not trust each other. At the endpoints, see that both"
    " use the same kind of authentication and encryption, that certificates are in date, and that the other side's"
    " login may CONNECT; for the dialog, see the remote service binding, the users' certificates, the master key.",
    Topic.TARGET: "The routing is right, the target cannot take it. There, see whether the queue is enabled (a"
    " poison message turns it off: sys.service_queues), the broker of the database is on, the database is online,"
    " and the contract is one of the service's.",
    Topic.IDENTITY: "A database was attached, restored or copied, and its broker id is doubled or not its own."
    " Find out which of the databases with this id its dialogs are meant for before any broker is enabled; a new"
    " id ends all its dialogs.",
    Topic.CONVERSATION: "The other side has ended the conversation: nothing more is delivered in it. END"
    " CONVERSATION here too, and begin a new one where there is more to say.",
}


def advice_on(topic: Topic) -> str:
    """What to do about what SQL Server's number is about (`observed.topic_of`)."""
    return ADVICE[topic]
