"""store.log: when a broker marked its disk as full, and took the mark away. Source: DefaultMessageStore.

The clean-up of the commit log and of the consume queues writes a line only when the mark changes
(CleanCommitLogService#isSpaceToDelete, CleanConsumeQueueService; RunningFlags#getAndMakeDiskFull).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mqreplay.decode.logs.form import Form


class DiskMarked(NamedTuple):
    """The broker marked a disk: ``ratio`` is the used share, 0 to 1, of the disk that ``figure`` of its table names."""

    figure: str
    ratio: str


def _form(text: str, figure: str, source: str) -> Form:
    return Form(
        text, DiskMarked, f"DefaultMessageStore.{source}", constants={"figure": figure}, signs=(", so mark disk",)
    )


_COMMIT_LOG, _CONSUME_QUEUE = "commitLogDiskRatio", "consumeQueueDiskRatio"
_CLEAN: Final = "CleanCommitLogService#isSpaceToDelete"
FORMS: Final = (
    _form("physic disk maybe full soon {ratio}, so mark disk full{:text}", _COMMIT_LOG, _CLEAN),
    _form("physic disk space OK {ratio}, so mark disk ok{:text}", _COMMIT_LOG, _CLEAN),
    _form(
        "physic disk of commitLog maybe full soon, used {ratio}, so mark disk full",
        _COMMIT_LOG,
        "CleanCommitLogService#isSpaceFull",
    ),
    _form(
        "physic disk space of commitLog OK {ratio}, so mark disk ok",
        _COMMIT_LOG,
        "CleanCommitLogService#isSpaceFull",
    ),
    _form("logics disk maybe full soon {ratio}, so mark disk full{:text}", _CONSUME_QUEUE, _CLEAN),
    _form("logics disk space OK {ratio}, so mark disk ok{:text}", _CONSUME_QUEUE, _CLEAN),
)
