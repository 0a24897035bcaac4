"""The fields of a recording's files that hold names, and how each is replaced.

A field that is not listed loses its text: a name that nobody expected must not get through.
"""

from __future__ import annotations

from typing import Final

from mqreplay.decode.kinds import KINDS


def by_field(text: str) -> dict[str, str]:
    """Return how each field is replaced, from lines ``how: field field ...``.

    >>> by_field("topic: topic t\\ngroup: c")
    {'topic': 'topic', 't': 'topic', 'c': 'group'}
    """
    lines = (line.partition(": ") for line in text.strip().splitlines())
    return {field: how for how, _, fields in lines for field in fields.split()}


# Texts that RocketMQ or a recorder chooses from a fixed list.
_FIXED: Final = """
kind mode source status send_status response_name name language consumeType consume_type messageModel message_model
consumeFromWhere consume_from_where expressionType expression_type flow_control topicFilterType type topic_type scope
brokerVersionDesc rocketmq_version request r retry bitSet b consumeMode start_offset_info msg_offset_info isForce event
jstackEnable timestamp unitMode delayLevel maxReconsumeTimes offset queueId IS_SUB_CHANGE IS_SUPPORT_HEART_BEAT_V2
message.type isC lo zone process popShareQueueNum attribute startOffset version x_groupSysFlag x_topicSysFlag
"""
FIXED: Final = frozenset(_FIXED.split())
# How the text of a field is replaced: the name of a method or kind of Names, or of a function of texts.py.
STRINGS: Final = by_field(
    """
topic: topic origin_topic originTopic queue_topic topicName t groupTopicMap
group: consumer_group producer_group consumerGroup producerGroup group groupName closed_group groups producer_groups c
group: topicGroupTable
broker: broker_name brokerName bname mq_all mq_divided clusterAddrTable
cluster: cluster brokerClusterName clusterName
client: client_id clientId clientID cid_all consumerIdList other_client_id
address: broker_addr brokerAddr namesrv_addr name_servers client_addr clientAddr addr masterAddr master_addr proxy_addr
address: brokerAddrs haServerAddr filterServerTable
message_id: msg_id offset_msg_id origin_msg_id originMsgId
keys: keys key
tag: tags tagsSet
expression: subString sub_string expression
text: error remark detail
strategy: strategy strategyName
attempt: attempt_id a invoke_id
receipt: extra_info extraInfo
wire_properties: properties
"""
)
# Objects whose keys are names: how the keys are replaced, and the field that their values count as.
TABLES: Final = {
    "offsetTable": ("topic_at_group", "offsets"),
    "pullOffsetTable": ("topic_at_group", "offsets"),
    "resetOffsetTable": ("topic_at_group", "offsets"),
    "changed": ("topic_at_group", "offsets"),
    "removed": ("topic_at_group", "offsets"),
    "orderInfo": ("topic_at_group", "entry"),
    "groupTopicMap": ("group", "groupTopicMap"),
    "topicConfigTable": ("topic", "entry"),
    "subscriptionGroupTable": ("group", "entry"),
    "forbiddenTable": ("group", "forbidden"),
    "forbidden": ("topic", "entry"),
    "brokerAddrTable": ("broker", "entry"),
    "clusterAddrTable": ("cluster", "clusterAddrTable"),
    "brokers": ("broker_and_id", "entry"),
    "subscriptionTable": ("topic", "entry"),
    "statusTable": ("topic", "entry"),
    "filterServerTable": ("address", "filterServerTable"),
    "topicQueueMappingByBroker": ("broker", "entry"),
    "messageRequestModeMap": ("topic", "requestModes"),
    "requestModes": ("group", "entry"),
    "topicQueueMappingInfoMap": ("topic", "entry"),
}
# Objects with settings or figures: their keys stay, and their texts are replaced as settings.
SETTING_FIELDS: Final = frozenset({"properties", "runtime", "attributes"})
# Text that is JSON itself.
NESTED: Final = frozenset({"body", "request", "response", "request_body"})
# Settings that are names.
SETTING_NAMES: Final = by_field(
    """
broker: brokerName
cluster: brokerClusterName
address: namesrvAddr PROP_NAMESERVER_ADDR brokerIP1 brokerIP2 bindAddress controllerAddr clientIP haMasterAddress
address: metricsPromExporterHost metricsGrpcExporterTarget
group: consumerGroup
topic: msgTraceTopicName
strategy: allocateMessageQueueStrategy
"""
)
_OTHER_FIELDS: Final = """
accessMessageInMemoryMaxRatio ack acks addr assignments attributes batch behind_bytes body brokerAddrTable
brokerAddrs brokerDatas brokerId brokerOffset broker_datas brokers bufferRange cachedMsgCount cachedMsgMaxOffset
cachedMsgMinOffset cachedMsgSizeInMiB cached_first cached_last cached_msgs changed classFilterMode clientAddr clientID
clusterAddrTable cm codeSet commitOffset commit_offset connectionSet consumeBroadcastEnable consumeEnable
consumeFromMinEnable consumeMessageOrderly consumeTimeoutMinute consumeTps consumerConnection consumerDataSet
consumerIdList consumerOffset counter currentLeaderNode dataVersion defaultGroup droped dropped
effective_accessMessageInMemoryMaxRatio enableActingMaster enableSubGroup entry ext extFields filterServerTable
forbiddenTable full groupRetryPolicy groupSysFlag groupTopicMap haClientRuntimeInfo haConnectionInfo header
heartbeatFingerprint i inSync inSyncSlaveNums it jstack lastConsumeTimestamp lastLockTimestamp lastPopTimestamp
lastPullTimestamp lastReadTimestamp lastTimestamp lastUpdateTimestamp lastWriteTimestamp last_pull_ts locked lockOKMQSet
mappingDataVersion master masterCommitLogMaxOffset masterFlushOffset maxOffset max_offset memory_offset messageQueue
messageQueueAssignments messageRequestModeMap messages minOffset min_offset mqPopTable mqSet mqTable
notifyConsumerIdsChangedEnable oc offsetTable offsets order ot orderTopicConf perm physical_memory_bytes popTime
previous_ts producerDataSet properties pt pull_from_broker_id q queue queueDatas queueId queue_datas queues
readQueueNums reconsume_times removed request requestModes response response_bytes retryMaxTimes retryQueueNums rq
runtime slaveAckOffset so stateVersion store_ts subVersion subscriptionDataSet subscriptionGroupTable subscriptionSet
subscriptionTable table timestamp timestatmp topicConfigTable topicQueueMappingByBroker topicQueueMappingInfo
topicSysFlag topicSynFlag totalQueues transactionMsgCount transactionMsgMaxOffset transactionMsgMinOffset
transferFromWhere transferredByteInSecond tryUnlockTimes unitMode userConsumerInfo value waitAckCount
whichBrokerWhenConsumeSlowly withoutSub writeQueueNums statusTable topicGroupTable l o cid_all_size mq_all_size diff
consumeFailedMsgs consumeFailedTPS consumeOKTPS consumeRT onlyThisBroker
pullRT pullTPS response_ext topicPutTps topicQueueMappingDetailMap
"""
FIELDS: Final = frozenset(
    {
        *(column for kind in KINDS.values() for column in kind.columns),
        *(column for kind in KINDS.values() if kind.plain is not None for column in kind.plain.types),
        *FIXED,
        *STRINGS,
        *TABLES,
        *SETTING_FIELDS,
        *NESTED,
        *_OTHER_FIELDS.split(),
    }
)


def table_of(kind: str, field: str) -> str:
    """Return the name of a field in TABLES and SETTING_FIELDS, which depends on the kind of file for ``table`` alone.

    >>> table_of("broker_runtime", "table"), table_of("pop_orders", "table"), table_of("topics", "topicConfigTable")
    ('runtime', 'orderInfo', 'topicConfigTable')
    """
    if field == "table":
        return "orderInfo" if kind == "pop_orders" else "runtime"
    return field
