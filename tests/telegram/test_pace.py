"""Telegram's limits: kept for all, and what is owed goes first."""

import threading
from dataclasses import dataclass

from app.telegram.pace import LONGEST_REST_SECONDS, Pace, Urgency
from tests.processes import wait_until

PRIVATE, OTHER, GROUP = 42, 43, -100


@dataclass
class Hand:
    """A clock that is moved by hand."""

    seconds: float = 1000.0

    def __call__(self) -> float:
        return self.seconds


def sent_at_once(pace: Pace, chat: int) -> int:
    """How many messages may go to a chat before one must wait."""
    count = 0
    while not waits(pace, chat):
        count += 1
    return count


class _OneLook(threading.Event):
    """Told to stop as soon as a wait begins."""

    looks = 0

    def is_set(self) -> bool:
        self.looks += 1
        return self.looks > 1


def waits(pace: Pace, chat: int) -> bool:
    """True when a message must wait; else it went."""
    return not pace.wait(chat, Urgency.WORD, _OneLook())


def test_a_chat_gets_a_burst_and_then_one_a_second() -> None:
    hand = Hand()
    pace = Pace(hand)
    assert sent_at_once(pace, PRIVATE) == 10
    hand.seconds += 2
    assert sent_at_once(pace, PRIVATE) == 2
    # Another chat does not wait for this one.
    assert sent_at_once(pace, OTHER) == 10


def test_a_group_gets_twenty_a_minute() -> None:
    hand = Hand()
    pace = Pace(hand)
    sent_at_once(pace, GROUP)
    hand.seconds += 60
    assert sent_at_once(pace, GROUP) <= 20


def test_ct05_when_telegram_asks_to_wait_all_chats_wait() -> None:
    hand = Hand()
    pace = Pace(hand)
    pace.rest(7)
    assert waits(pace, PRIVATE)
    assert waits(pace, GROUP)
    assert not pace.may_change(OTHER)
    hand.seconds += 7
    assert not waits(pace, PRIVATE)


def test_a_rest_is_never_longer_than_an_hour() -> None:
    hand = Hand()
    pace = Pace(hand)
    pace.rest(10**9)
    hand.seconds += LONGEST_REST_SECONDS
    assert not waits(pace, PRIVATE)


def test_ct05_changes_leave_room_for_what_is_new() -> None:
    pace = Pace(Hand())
    changes = 0
    while pace.may_change(PRIVATE):
        changes += 1
    assert 0 < changes <= 5
    assert sent_at_once(pace, PRIVATE) >= 5


def test_replies_go_before_words() -> None:
    hand = Hand()
    pace = Pace(hand)
    pace.rest(5)
    went: list[Urgency] = []
    stopping = threading.Event()

    def go(urgency: Urgency) -> None:
        if pace.wait(PRIVATE, urgency, stopping):
            went.append(urgency)

    threads = []
    for number, urgency in enumerate((Urgency.WORD, Urgency.WORD, Urgency.REPLY), 1):
        threads.append(threading.Thread(target=go, args=(urgency,)))
        threads[-1].start()
        wait_until(lambda number=number: len(pace._waiting) == number, 5, "it waits")  # type: ignore[misc]
    assert not pace.may_change(OTHER)
    hand.seconds += 5
    for thread in threads:
        thread.join(5)
    assert went[0] is Urgency.REPLY
    assert len(went) == 3


def test_a_wait_ends_when_the_bot_stops() -> None:
    pace = Pace(Hand())
    pace.rest(100)
    stopping = threading.Event()
    stopping.set()
    assert not pace.wait(PRIVATE, Urgency.REPLY, stopping)
