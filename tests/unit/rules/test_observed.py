"""The reasons behind SQL Server's error numbers: the whole table, pair by pair, and as its page prints it."""

from __future__ import annotations

import re

import pytest

from routing.rules.observed import TABLE, TOPICS, NumberAgreement, NumberTopic, compare, topic_of
from routing.terms import ERROR_NUMBERS, MSDB_BROKER_DISABLED, Reason

LETTERS = {
    "A": NumberAgreement.AGREES,
    "c": NumberAgreement.COMPATIBLE,
    "X": NumberAgreement.CONTRADICTS,
    ".": NumberAgreement.SAYS_NOTHING,
}
ORDER = (
    *("LOCAL_SERVICE", "NETWORK_ADDRESS", "MIRROR_ADDRESS", "TRANSPORT_ADDRESS", "ROUTE_REQUESTED", "NO_ROUTE"),
    *("SERVICE_NOT_FOUND", "BROKER_INSTANCE_NOT_FOUND", "BROKER_DISABLED", "SCOPE_BROKER_DISABLED"),
    *("TRANSPORT_ADDRESS_INVALID", "FORWARDING_DISABLED", "HOP_LIMIT", "ROUTING_LOOP", "DIALOG_EXPIRED"),
)
# The reasons in this order: LOCAL_SERVICE; the three that send; what waits or fails here; what is not forwarded;
# DIALOG_EXPIRED.
PASSING, NOTHING = "c ccc ccccccc ccc c", ". ... ....... ... ."
TRANSPORT, SECURITY = "X ccc XXXXXXX ccc c", ". ccc ....... ... c"
TRUTH: dict[int | None, str] = {
    None: NOTHING,
    0: NOTHING,
    15517: NOTHING,
    # Compatible with what a LOCAL route leads nowhere by, too: SQL Server says it of AutoCreatedLocal.
    9750: "X XXX XAccXXc XXX c",
    9793: "X XXX XAccXXc XXX c",
    9761: "X ccc ccXXXXX XXX c",
    # Another conversation asked first, and this one goes on to a LOCAL route meanwhile; or the other way round.
    9770: "X ccc AcccXXX XXX c",
    9789: "X XXX XXXXXXX XXX c",
    9791: "X XXX XXXXXAX XXX c",
    9792: "X XXX XXXXXXX AXX c",
    9795: "X XXX XXXAXXX XXX c",
    9796: "X XXX cXAcXXX XXX c",
    **dict.fromkeys((9787, 9788, 9790, 9794, 9797, 9798, 9771, 9780, 9781, 28075), PASSING),
    **dict.fromkeys((9659, 9660, 9661, 9662, 9743, 9744, 9745, 9746, 9747), NOTHING),
    **dict.fromkeys((9642, 9666, 9748, 9753, 9754, 9755, 9756, 9757, 9758, 9759, 9783), TRANSPORT),
    **dict.fromkeys((28032, 28033, 28071, 28098), TRANSPORT),
    **dict.fromkeys((28001, 28007, *range(28040, 28045), 28049, *range(28061, 28069)), TRANSPORT),
    **dict.fromkeys((9736, 28072, 28073, 28090, 28002, 28003, 28019), PASSING),
    9785: "X ccc XXXXXXc ccc c",
    **dict.fromkeys((9649, 9751, 9752, 9762, 9763, 9764, 9765, 9766, 28022, 28023), SECURITY),
    **dict.fromkeys((28026, 28027, 28028, 28029, 28030, 28031, 28034, 28035, 28036, 28037, 28038), SECURITY),
    **dict.fromkeys((28039, 28045, 28047, 28048, 28059, 28070, 28079, 28080, 28081, 28082), SECURITY),
    **dict.fromkeys((9652, 9727, 9728, 9730, 9731, 9733, 9734, 9735, 9737, 9767, 9768, 11229, 11230), SECURITY),
    **dict.fromkeys((28024, 28025, 28050, 28051, 28054, 28055, 28056, 11231, 11232, 11233, 28000), SECURITY),
    **dict.fromkeys((28052, 28053, 28057, 28058, 28069, 28074), SECURITY),
    **dict.fromkeys((28012, 28013), "c ccc XXXXAXX XXX c"),
    **dict.fromkeys((28014, 28015, 28016, 28017, 28018, 28021), "c ccc XXXXcXX XXX c"),
    **dict.fromkeys((8408, 8409, 9617, 9704, 9749, 11214, *range(11216, 11225)), "c ccc XXXXXXX XXX c"),
    **dict.fromkeys((11225, 11226, 11282, 28004, 28005, 28010, 28011), "c ccc XXXXXXX XXX c"),
    **dict.fromkeys((8425, 8428, 8430, 8437, 8457, 8487, 8498, 9616, 11227, 11228), "c ccc XXXXXXX XXX c"),
    **dict.fromkeys((9719, 9720), ". ... ...c... ... c"),
    **dict.fromkeys((9723, 9772, 9773, 9776, 9777), ". ... ...ccc. ... c"),
    **dict.fromkeys((8494, 11211, 11215, 28020), "c ccc ....... ... c"),
    **dict.fromkeys((8490, 11210), ". ... ..c.... ... ."),
    **dict.fromkeys((8462, 8469, 8470, 8495, 9779, 9784, 11209, 11212, 11213), NOTHING),
    8489: ". ... ....... ... A",
}
# Where the routes of msdb were searched: what is not said here is as above.
IN_MSDB = {
    9789: "X XXX XXXXXAX XXX c",
    9791: "X XXX XXXXXcX XXX c",
    **{number: PASSING for number, line in TRUTH.items() if line in (TRANSPORT, "X ccc XXXXXXc ccc c")},
    28071: PASSING,
}
# The numbers of the views' documentation, by what they are about there.
DOCUMENTED = {
    NumberTopic.ROUTING: (
        9750,
        9793,
        9795,
        9796,
        9792,
        9770,
        9761,
        9788,
        9789,
        9790,
        9791,
        9794,
        9787,
        9797,
        9798,
    ),
    NumberTopic.TRANSPORT: (9783, 9785, 9753, 9754, 9748, 9666, 28071),
    NumberTopic.TARGET: (28012, 28013, 28014, 28015, 28016, 28017, 28018),
    NumberTopic.IDENTITY: (9719, 9720, 9723, 9772, 9773, 9776, 9777),
}


@pytest.mark.parametrize("in_msdb", [False, True])
@pytest.mark.parametrize("number", TRUTH)
def test_each_number_and_reason_has_its_agreement(number: int | None, in_msdb: bool) -> None:
    line = IN_MSDB.get(number, TRUTH[number]) if in_msdb and number is not None else TRUTH[number]
    expected = [LETTERS[letter] for letter in line.replace(" ", "")]
    assert [compare(Reason(reason), number, in_msdb=in_msdb).agreement for reason in ORDER] == expected


def test_the_table_has_every_number_and_reason() -> None:
    assert {number for numbers in TOPICS.values() for number in numbers} == TRUTH.keys() - {None, 0, 15517}
    assert sorted(ORDER) == sorted(map(str, Reason))


def test_a_number_has_one_topic() -> None:
    numbers = [number for found in TOPICS.values() for number in found]
    assert len(numbers) == len(set(numbers))
    assert (topic_of(None), topic_of(15517), topic_of(0)) == (None, None, None)
    for topic, documented in DOCUMENTED.items():
        assert {topic_of(number) for number in documented} == {topic}
    # CREATE ROUTE is refused with these.
    refusals = (9659, 9660, 9661, 9662, 9743, 9744, 9745, 9746, 9747)
    assert {topic_of(number) for number in refusals} == {NumberTopic.ROUTING}
    assert [str(topic_of(number)) for number in (28047, 9731, 9617, 9784)] == [
        *("SECURITY", "SECURITY", "TARGET", "CONVERSATION")
    ]


def test_the_number_that_is_shown_for_a_reason_agrees_with_it() -> None:
    for reason, number in ERROR_NUMBERS.items():
        assert compare(reason, number).agreement == "AGREES", reason
    assert compare(Reason.SCOPE_BROKER_DISABLED, MSDB_BROKER_DISABLED, in_msdb=True).agreement == "AGREES"


def test_compatible_pairs_have_one_sentence_of_explanation() -> None:
    for line in TABLE:
        assert line.why or line.agreement == NumberAgreement.AGREES
        assert line.why is None or re.fullmatch(r"[A-Z][^.]*\.", line.why), line
    assert compare(Reason.NO_ROUTE, None).why == "Not tried yet, or sent and not acknowledged."


def test_every_line_is_the_first_for_some_pair() -> None:
    pairs = [(reason, number, msdb) for reason in Reason for number in TRUTH if number for msdb in (False, True)]
    known_pairs = [pair for pair in pairs if topic_of(pair[1])]
    assert {next(i for i, line in enumerate(TABLE) if line.has(*pair)) for pair in known_pairs} == set(
        range(len(TABLE))
    )
