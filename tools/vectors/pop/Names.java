package org.apache.rocketmq.broker.processor;

import static org.apache.rocketmq.broker.processor.Vectors.below;
import static org.apache.rocketmq.broker.processor.Vectors.list;
import static org.apache.rocketmq.broker.processor.Vectors.map;
import static org.apache.rocketmq.broker.processor.Vectors.one;

import java.util.Map;
import org.apache.rocketmq.common.KeyBuilder;
import org.apache.rocketmq.common.consumer.ReceiptHandle;
import org.apache.rocketmq.remoting.protocol.header.ExtraInfoUtil;

/** Names of retry topics, receipts, and the header of an answer: KeyBuilder, ReceiptHandle, ExtraInfoUtil. */
final class Names {
    private static final String[] WORDS = {"a", "a_b", "T", "pay-group", "orders_v2", "%RETRY%g", "x+y", "", "\u8ba2\u5355", "\ud83d\ude00"};
    private static final String[] TOPICS = {"T", "%RETRY%g_T", "%RETRY%g+T", "%RETRY%g", "a+b", "%DLQ%g", ""};
    private static final Object[] NUMBERS = {"0", "5", "1700000000000", "9223372036854775807", "-1", "+7", "007", "x", "", "2147483648", "1.5", "\u0663"};

    private Names() {
    }

    static void retryTopics(Vectors v) throws Exception {
        for (String group : WORDS) {
            for (String topic : WORDS) {
                for (boolean v2 : new boolean[] {false, true}) {
                    v.line(map("case", "build", "topic", topic, "cid", group, "enableRetryV2", v2),
                        () -> map("topic", KeyBuilder.buildPopRetryTopic(topic, group, v2)));
                    parse(v, KeyBuilder.buildPopRetryTopic(topic, group, v2), group);
                }
            }
        }
        for (String topic : list(TOPICS).toArray(new String[0])) {
            parse(v, topic, "g");
        }
        for (String topic : new String[] {"%RETRY%", "%RETRY%+", "%RETRY%a+", "%RETRY%+b", "%RETRY%a+b+c", "%RETRY%a++", "%RETRY", "short", "%RETRY%g"}) {
            parse(v, topic, "group");
            parse(v, topic, "");
        }
    }

    private static void parse(Vectors v, String topic, String cid) throws Exception {
        v.line(map("case", "normal_topic", "topic", topic, "cid", cid), () -> map("topic", KeyBuilder.parseNormalTopic(topic, cid)));
        v.line(map("case", "parse", "topic", topic), () -> map("v2", KeyBuilder.isPopRetryTopicV2(topic),
            "topic", KeyBuilder.parseNormalTopic(topic), "group", KeyBuilder.parseGroup(topic)));
    }

    static void receipts(Vectors v) throws Exception {
        for (int i = 0; i < 600; i++) {
            String text = handle();
            v.line(map("case", "decode", "handle", text), () -> receipt(ReceiptHandle.decode(text)));
            v.line(map("case", "extra_info", "extraInfo", text), () -> extraInfo(text));
        }
        v.line(map("case", "extra_info", "extraInfo", null), () -> extraInfo(null));
        for (String topic : TOPICS) {
            for (long offset : new long[] {-2, 0, 77}) {
                long start = below(1000);
                int revive = one(0, 7, 999);
                v.line(map("case", "build", "ckQueueOffset", start, "topic", topic, "reviveQid", revive, "msgQueueOffset", offset < 0 ? null : offset),
                    () -> map("extraInfo", offset < 0
                        ? ExtraInfoUtil.buildExtraInfo(start, 1700000000000L, 60000, revive, topic, "broker-a", 3)
                        : ExtraInfoUtil.buildExtraInfo(start, 1700000000000L, 60000, revive, topic, "broker-a", 3, offset)));
            }
            for (String mark : new String[] {"0", "1", "2", "3", ""}) {
                v.line(map("case", "real_topic", "mark", mark, "topic", topic, "cid", "g"), () -> map("topic",
                    ExtraInfoUtil.getRealTopic(new String[] {"0", "0", "0", "0", mark}, topic, "g"),
                    "ofHandle", ReceiptHandle.builder().topicType(mark).build().getRealTopic(topic, "g")));
            }
        }
        for (int i = 0; i < 400; i++) {
            String text = info();
            v.line(map("case", "start_offset_info", "info", text), () -> map("map", ExtraInfoUtil.parseStartOffsetInfo(text)));
            v.line(map("case", "msg_offset_info", "info", text), () -> map("map", ExtraInfoUtil.parseMsgOffsetInfo(text)));
            v.line(map("case", "order_count_info", "info", text), () -> map("map", ExtraInfoUtil.parseOrderCountInfo(text)));
        }
    }

    private static Map<String, Object> receipt(ReceiptHandle handle) {
        return map("fields", list(handle.getStartOffset(), handle.getRetrieveTime(), handle.getInvisibleTime(), handle.getReviveQueueId(),
            handle.getTopicType(), handle.getBrokerName(), handle.getQueueId(), handle.getOffset(), handle.getCommitLogOffset()),
            "nextVisibleTime", handle.getNextVisibleTime(), "encoded", handle.encode(), "realTopic", handle.getRealTopic("T", "g"));
    }

    private static Map<String, Object> extraInfo(String text) {
        String[] parts = ExtraInfoUtil.split(text);
        return map("fields", list(ExtraInfoUtil.getCkQueueOffset(parts), ExtraInfoUtil.getPopTime(parts), ExtraInfoUtil.getInvisibleTime(parts),
            ExtraInfoUtil.getReviveQid(parts), ExtraInfoUtil.getRetry(parts), ExtraInfoUtil.getBrokerName(parts), ExtraInfoUtil.getQueueId(parts)),
            "offset", parts.length < 8 ? null : ExtraInfoUtil.getQueueOffset(parts), "order", ExtraInfoUtil.isOrder(parts));
    }

    /** Mostly whole, sometimes short, long, or with text for a number. */
    private static String handle() {
        Object[] fields = {below(1000), 1700000000000L + below(1000), below(90000), one(0, 3, 7, 999), one("0", "1", "2", "3"),
            one("broker-a", "b_1", ""), below(8), below(5000), below(1 << 30), "more"};
        if (below(3) == 0) {
            fields[one(0, 1, 2, 3, 6, 7, 8)] = one(NUMBERS);
        }
        StringBuilder text = new StringBuilder();
        int count = below(3) == 0 ? below(11) : one(7, 8, 9);
        for (int i = 0; i < count; i++) {
            text.append(i == 0 ? "" : " ").append(fields[i]);
        }
        return text + (below(20) == 0 ? "  " : "");
    }

    private static String info() {
        StringBuilder text = new StringBuilder();
        int count = below(5);
        for (int i = 0; i < count; i++) {
            text.append(i == 0 ? "" : ";").append(one("0", "1", "2")).append(" ").append(one("0", "1", "2", "3", "qo2%5"));
            if (below(12) != 0) {
                text.append(" ").append(below(100));
                for (int more = below(4) == 0 ? below(3) : 0; more > 0; more--) {
                    text.append(",").append(below(30) == 0 ? one(NUMBERS) : below(100));
                }
            }
        }
        return text + (below(15) == 0 ? one(";", ",", " ") : "");
    }
}
