"""The advice that RocketMQ appends to an error message (FAQUrl), which changed its address with 5.1.0."""

from __future__ import annotations

from mqreplay.core.version import CLIENT_4, at_least
from mqreplay.words.errors import MQClientError


def default_faq_url(version: str = CLIENT_4) -> str:
    """Return the page in the FAQ constants of a version: FAQUrl#UNEXPECTED_EXCEPTION_URL.

    >>> default_faq_url(), default_faq_url("5.3.3")
    ('http://rocketmq.apache.org/docs/faq/', 'https://rocketmq.apache.org/docs/bestPractice/06FAQ')
    """
    if at_least(version, "5.1.0"):
        return "https://rocketmq.apache.org/docs/bestPractice/06FAQ"
    return "http://rocketmq.apache.org/docs/faq/"


def suggest_todo(version: str = CLIENT_4) -> str:
    """Return the end of a message with its own page (FAQUrl#suggestTodo), starting with a line break.

    >>> suggest_todo()
    '\\nSee http://rocketmq.apache.org/docs/faq/ for further details.'
    """
    return f"\nSee {default_faq_url(version)} for further details."


def attach_default_url(error_message: str, version: str = CLIENT_4) -> str:
    """Return the message with the page appended, unless it already names one (FAQUrl#attachDefaultURL).

    >>> attach_default_url("CODE: 1  DESC: no")
    'CODE: 1  DESC: no\\nFor more information, please visit the url, http://rocketmq.apache.org/docs/faq/'
    """
    if "\nSee " in error_message:
        return error_message
    return f"{error_message}\nFor more information, please visit the url, {default_faq_url(version)}"


def client_exception(response_code: int, error_message: str, version: str = CLIENT_4) -> MQClientError:
    """Return the error for ``new MQClientException(responseCode, errorMessage)``: MQClientException#<init>.

    >>> client_exception(22, "not found").message.splitlines()[0]
    'CODE: 22  DESC: not found'
    """
    message = attach_default_url(f"CODE: {response_code}  DESC: {error_message}", version)
    return MQClientError(message, response_code)
