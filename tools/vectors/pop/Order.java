package org.apache.rocketmq.broker.processor;

import static org.apache.rocketmq.broker.processor.Vectors.below;
import static org.apache.rocketmq.broker.processor.Vectors.list;
import static org.apache.rocketmq.broker.processor.Vectors.map;
import static org.apache.rocketmq.broker.processor.Vectors.offsets;
import static org.apache.rocketmq.broker.processor.Vectors.one;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** What a broker remembers of ordered POP, step by step. The class moved after 5.3.3, so it is called by name. */
final class Order {
    private static final long MINUTE = 60_000;
    private static final Class<?> MANAGER = named("offset.ConsumerOrderInfoManager", "pop.orderly.QueueLevelConsumerManager");

    private Order() {
    }

    private static Class<?> named(String older, String newer) {
        String rooms = "org.apache.rocketmq.broker.";
        try {
            return Class.forName(rooms + newer);
        } catch (ClassNotFoundException inOlder) {
            try {
                return Class.forName(rooms + older);
            } catch (ClassNotFoundException neither) {
                throw new IllegalStateException(neither);
            }
        }
    }

    private static Object call(Object on, String name, Object... args) throws Exception {
        for (Method method : on.getClass().getMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == args.length) {
                return method.invoke(on, args);
            }
        }
        throw new NoSuchMethodException(name);
    }

    static void cases(Vectors v) throws Exception {
        for (int i = 0; i < 700; i++) {
            Object manager = MANAGER.getConstructor().newInstance();
            List<Object> steps = new ArrayList<>();
            List<Object> answers = new ArrayList<>();
            long now = System.currentTimeMillis();
            long popTime = 0;
            long first = below(1000);
            int count = 1;
            int length = 2 + below(12);
            for (int step = 0; step < length; step++) {
                int kind = popTime == 0 && below(5) != 0 ? 0 : below(6);
                if (kind == 0) {
                    String attempt = one(null, "a", "a", "b");
                    popTime = now - one(0, 1, 10, 90) * MINUTE;
                    first += below(3);
                    count = below(12) == 0 ? 60 + below(8) : 1 + below(5);
                    long invisible = one(0, 2, 30, 120) * MINUTE;
                    List<Long> queueOffsets = offsets(first, count);
                    steps.add(list("update", attempt, popTime, invisible, queueOffsets));
                    call(manager, "update", attempt, false, "T", "g", 0, popTime, invisible, queueOffsets, new StringBuilder());
                    answers.add(null);
                } else if (kind <= 2) {
                    long offset = first + below(count + 2);
                    long of = below(6) == 0 ? popTime - 1 : popTime;
                    steps.add(list("ack", offset, of));
                    answers.add(call(manager, "commitAndNext", "T", "g", 0, offset, of));
                } else if (kind == 3) {
                    long offset = first + below(count + 2);
                    long of = below(6) == 0 ? popTime - 1 : popTime;
                    long visible = now + one(-50, -1, 1, 45) * MINUTE;
                    steps.add(list("change", offset, of, visible));
                    call(manager, "updateNextVisibleTime", "T", "g", 0, offset, of, visible);
                    answers.add(null);
                } else {
                    String attempt = one(null, "a", "b", "c");
                    long invisible = one(1, 20) * MINUTE;
                    steps.add(list("block", attempt, invisible));
                    answers.add(call(manager, "checkBlock", attempt, "T", "g", 0, invisible));
                }
            }
            Object record = record(manager);
            v.line(map("case", "steps", "now", now, "steps", steps), () -> map("answers", answers, "record", state(record, now)));
        }
    }

    private static Object record(Object manager) throws Exception {
        Map<?, ?> queues = (Map<?, ?>) ((Map<?, ?>) call(manager, "getTable")).get("T@g");
        return queues == null ? null : queues.get(0);
    }

    private static Object state(Object record, long now) throws Exception {
        if (record == null) {
            return null;
        }
        Long free = (Long) call(record, "getLockFreeTimestamp");
        boolean isFree = free != null && free >= now && free < now + MINUTE / 2;
        return map("popTime", call(record, "getPopTime"), "attemptId", call(record, "getAttemptId"),
            "invisibleTime", call(record, "getInvisibleTime"), "offsetList", call(record, "getOffsetList"),
            "nextVisibleTime", texts(call(record, "getOffsetNextVisibleTime")), "consumedCount", texts(call(record, "getOffsetConsumedCount")),
            "commitOffsetBit", call(record, "getCommitOffsetBit"), "nextOffset", call(record, "getNextOffset"),
            "lockFree", isFree ? "now" : free);
    }

    private static Object texts(Object table) {
        if (table == null) {
            return null;
        }
        Map<String, Object> made = new TreeMap<>();
        ((Map<?, ?>) table).forEach((key, value) -> made.put(key.toString(), value));
        return made;
    }
}
