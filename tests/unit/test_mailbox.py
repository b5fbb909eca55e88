from __future__ import annotations

import threading

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from realtime.mailbox import Handoff, Mailbox
from tests.fakes import drain


class MailboxMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.box: Mailbox[int] = Mailbox()
        self.next_item = 0
        self.newest_read = -1
        self.closed = False

    @rule()
    def put(self) -> None:
        expected = 1 if self.box.pending or self.closed else 0
        assert self.box.put(self.next_item) == expected
        self.next_item += 1

    @rule()
    def get(self) -> None:
        pending = self.box.pending
        item = self.box.get(0)
        assert (item is not None) == bool(pending)
        if item is not None:
            assert item > self.newest_read
            if not self.closed:
                assert item == self.next_item - 1
            self.newest_read = item

    @precondition(lambda self: not self.closed)
    @rule(really=st.sampled_from([True, False, False]))
    def close(self, really: bool) -> None:
        if really:
            self.box.close()
            self.closed = True

    @invariant()
    def at_most_one_is_kept_and_every_item_is_accounted_for(self) -> None:
        assert self.box.pending in (0, 1)
        assert self.box.taken + self.box.dropped + self.box.pending == self.box.put_count == self.next_item
        assert self.box.ended == (self.closed and not self.box.pending)


MailboxMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestMailbox = MailboxMachine.TestCase


class HandoffMachine(RuleBasedStateMachine):
    DEPTH = 2

    def __init__(self) -> None:
        super().__init__()
        self.edge: Handoff[int] = Handoff(self.DEPTH, wait=False)
        self.model: list[int] = []
        self.next_item = 0

    @rule()
    def put(self) -> None:
        refused = len(self.model) == self.DEPTH
        assert self.edge.put(self.next_item) == int(refused)
        if not refused:
            self.model.append(self.next_item)
        self.next_item += 1

    @rule()
    def get(self) -> None:
        assert self.edge.get(0) == (self.model.pop(0) if self.model else None)

    @invariant()
    def never_more_than_its_depth(self) -> None:
        assert self.edge.pending == len(self.model) <= self.DEPTH


HandoffMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
TestHandoff = HandoffMachine.TestCase


def test_closing_wakes_a_waiting_reader() -> None:
    box: Mailbox[int] = Mailbox()
    read: list[int | None] = []
    reader = threading.Thread(target=lambda: read.append(box.get(60)))
    reader.start()
    box.close()
    reader.join(10)
    assert read == [None]


def test_closing_wakes_a_writer_that_waits_for_room() -> None:
    edge: Handoff[int] = Handoff(1, wait=True)
    assert edge.put(0) == 0
    lost: list[int] = []
    writer = threading.Thread(target=lambda: lost.append(edge.put(1)))
    writer.start()
    edge.close()
    writer.join(10)
    assert lost == [1]
    assert list(drain(edge)) == [0]


def test_what_was_put_before_the_end_can_still_be_read() -> None:
    box: Mailbox[str] = Mailbox()
    box.put("last")
    box.close()
    assert not box.ended
    assert list(drain(box)) == ["last"]


def test_two_threads_lose_nothing_without_counting_it() -> None:
    box: Mailbox[int] = Mailbox()
    count = 5000

    def write() -> None:
        for item in range(count):
            box.put(item)
        box.close()

    writer = threading.Thread(target=write)
    writer.start()
    read = list(drain(box))
    writer.join()
    assert read == sorted(set(read))
    assert read[-1] == count - 1
    assert len(read) + box.dropped == count


def test_a_hand_off_that_waits_passes_everything_in_order() -> None:
    edge: Handoff[int] = Handoff(2, wait=True)

    def write() -> None:
        for item in range(2000):
            assert edge.put(item) == 0
        edge.close()

    writer = threading.Thread(target=write)
    writer.start()
    assert list(drain(edge)) == list(range(2000))
    writer.join()
