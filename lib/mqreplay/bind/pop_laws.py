"""Laws of POP whose arguments are no Spark types, in a shape that is. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mqreplay.core import pop_order
from mqreplay.core.pop_order import OrderInfo


def check_block(
    offset_list: Sequence[int] | None,
    commit_offset_bit: int,
    attempt_id: str | None,
    pop_time: int,
    stored_invisible_time: int | None,
    offset_next_visible_time: Mapping[int, int] | None,
    request_attempt_id: str | None,
    request_invisible_time: int,
    now: int,
) -> bool:
    """Return pop_order.check_block of an entry of consumerOrderInfo.json."""
    info = OrderInfo(
        attempt_id,
        pop_time,
        stored_invisible_time,
        None if offset_list is None else tuple(offset_list),
        offset_next_visible_time,
        commit_offset_bit=commit_offset_bit,
    )
    return pop_order.check_block(info, request_attempt_id, request_invisible_time, now)


def next_offset(offset_list: Sequence[int] | None, commit_offset_bit: int) -> int:
    """Return pop_order.next_offset of an entry of consumerOrderInfo.json."""
    offsets = None if offset_list is None else tuple(offset_list)
    return pop_order.next_offset(OrderInfo(None, 0, None, offsets, commit_offset_bit=commit_offset_bit))
