"""remoting.log of a broker: requests that ended in an exception, such as those that access rules refuse.

The exception is in the lines below. Only the thread in the line's head shows which processor had the request: pulls
have threads of their own (BrokerController#initializeResources). Source: NettyRemotingAbstract.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from mqreplay.decode.logs.form import Form

_PULL_THREAD: Final = "PullMessageThread_"
# PlainPermissionManager#checkPerm with PlainAccessResource#printStr
_LACKS: Final = re.compile(r".*AclException: No (?:default )?permission for (group|topic):([^\s,]{1,255})", re.ASCII)


class RequestFailed(NamedTuple):
    """A request ended in an exception in the broker; ``cause`` is the exception below the line."""

    cause: str | None = None

    def refused(self, thread: str) -> dict[str, str] | None:
        """Return the group or topic for which a pull was refused by access rules; None for another request.

        ``thread`` is that of the line.

        >>> denied = "org.apache.rocketmq.acl.common.AclException: No default permission for group:pay"
        >>> RequestFailed(denied).refused("ERROR PullMessageThread_4"), RequestFailed(denied).refused("")
        ({'consumer_group': 'pay'}, None)
        """
        match = _LACKS.match(self.cause or "")
        if match is None or _PULL_THREAD not in thread:
            return None
        return {"consumer_group" if match[1] == "group" else "topic": match[2]}


FORMS: Final = (Form("process request exception{:text}", RequestFailed, "NettyRemotingAbstract#processRequestCommand"),)
