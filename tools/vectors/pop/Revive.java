package org.apache.rocketmq.broker.processor;

import static org.apache.rocketmq.broker.processor.Vectors.below;
import static org.apache.rocketmq.broker.processor.Vectors.list;
import static org.apache.rocketmq.broker.processor.Vectors.map;
import static org.apache.rocketmq.broker.processor.Vectors.offsets;
import static org.apache.rocketmq.broker.processor.Vectors.one;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.commons.lang3.tuple.Triple;
import org.apache.rocketmq.broker.pop.PopConsumerKVStore;
import org.apache.rocketmq.broker.pop.PopConsumerRecord;
import org.apache.rocketmq.broker.pop.PopConsumerService;
import org.apache.rocketmq.common.Pair;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.store.pop.AckMsg;
import org.apache.rocketmq.store.pop.PopCheckPoint;
import org.apache.rocketmq.store.timer.TimerMessageStore;
import sun.reflect.ReflectionFactory;

/** Which messages a pass of the revive service takes, and what it stores where it cannot revive one. */
final class Revive {
    private static final long HOUR = 3_600_000;
    private final Broker broker;

    Revive(Broker broker) {
        this.broker = broker;
    }

    /** A timer that is never behind; its own constructor wants a store on the disk. */
    static class Timer extends TimerMessageStore {
        Timer() throws Exception {
            super(null, null, null, null, null);
        }

        @Override
        public long getDequeueBehind() {
            return 0;
        }

        @Override
        public long getEnqueueBehind() {
            return 0;
        }
    }

    /** The real service, which reads its revive queue and the messages from here. */
    static class Service extends PopReviveService {
        final List<MessageExt> queue = new ArrayList<>();
        final List<Object> revived = new ArrayList<>();

        Service(Broker broker) {
            super(broker.controller, "revive", 0);
            setShouldRunPopRevive(true);
        }

        @Override
        protected List<MessageExt> getReviveMessage(long offset, int queueId) {
            List<MessageExt> read = new ArrayList<>(queue);
            queue.clear();
            return read;
        }

        @Override
        public CompletableFuture<Triple<MessageExt, String, Boolean>> getBizMessage(PopCheckPoint ck, long offset) {
            revived.add(offset);
            return CompletableFuture.completedFuture(Triple.of(null, "", false));
        }
    }

    void cases(Vectors v) throws Exception {
        broker.controller.getTopicConfigManager().getTopicConfigTable().put("T", new TopicConfig("T"));
        SubscriptionGroupConfig group = new SubscriptionGroupConfig();
        group.setGroupName("g");
        broker.controller.getSubscriptionGroupManager().getSubscriptionGroupTable().put("g", group);
        Constructor<?> made = ReflectionFactory.getReflectionFactory().newConstructorForSerialization(Timer.class, Object.class.getDeclaredConstructor());
        broker.store.put("getTimerMessageStore", made.newInstance());
        for (int i = 0; i < 500; i++) {
            pass(v);
            due(v);
            rePut(v);
            behind(v);
            kvRetry(v);
        }
    }

    private static PopCheckPoint checkPoint(long popTime, long invisibleTime, int num, boolean withDiffs) {
        PopCheckPoint ck = new PopCheckPoint();
        ck.setStartOffset(below(1000));
        ck.setPopTime(popTime);
        ck.setInvisibleTime(invisibleTime);
        ck.setNum((byte) num);
        ck.setCId("g");
        ck.setTopic("T");
        ck.setBrokerName("broker-a");
        if (withDiffs) {
            offsets(below(2), num).forEach(diff -> ck.addDiff(diff.intValue()));
        }
        return ck;
    }

    private static Map<String, Object> row(PopCheckPoint ck) {
        return map("startOffset", ck.getStartOffset(), "popTime", ck.getPopTime(), "invisibleTime", ck.getInvisibleTime(), "num", ck.getNum(),
            "diffs", ck.getQueueOffsetDiff(), "rePutTimes", ck.getRePutTimes());
    }

    private void pass(Vectors v) throws Exception {
        PopCheckPoint ck = checkPoint(1_000_000 + below(5000), below(90_000), below(10) == 0 ? 30 + below(40) : 1 + below(6), below(4) != 0);
        Service service = new Service(broker);
        MessageExtBrokerInner message = broker.controller.getPopMessageProcessor().buildCkMsg(ck, 0);
        message.setQueueOffset(1);
        service.queue.add(message);
        List<Long> acks = new ArrayList<>();
        for (int count = below(ck.getNum() + 2); count > 0; count--) {
            acks.add(below(3) == 0 ? ck.getStartOffset() - 2 + below(12) : ck.ackOffsetByIndex((byte) below(ck.getNum())));
        }
        for (long ack : acks) {
            AckMsg ackMsg = new AckMsg();
            ackMsg.setAckOffset(ack);
            ackMsg.setStartOffset(ck.getStartOffset());
            ackMsg.setConsumerGroup("g");
            ackMsg.setTopic("T");
            ackMsg.setPopTime(ck.getPopTime());
            ackMsg.setBrokerName("broker-a");
            MessageExt of = new MessageExt();
            of.setTags("ack");
            of.setBody(RemotingSerializable.toJson(ackMsg, false).getBytes(StandardCharsets.UTF_8));
            of.setQueueOffset(1 + service.queue.size());
            of.setDeliverTimeMs(ck.getReviveTime());
            service.queue.add(of);
        }
        v.line(map("case", "pass", "checkPoint", row(ck), "acks", acks), () -> {
            PopReviveService.ConsumeReviveObj read = new PopReviveService.ConsumeReviveObj();
            service.consumeReviveMessage(read);
            service.mergeAndRevive(read);
            return map("deliverTime", message.getDeliverTimeMs(), "reviveTime", ck.getReviveTime(), "revived", service.revived);
        });
    }

    private void due(Vectors v) throws Exception {
        PopCheckPoint ck = checkPoint(1_000_000, below(90_000), 1, true);
        long endTime = ck.getReviveTime() + one(-1000, 0, 1999, 2000, 2001, 2002, below(5000));
        v.line(map("case", "due", "reviveTime", ck.getReviveTime(), "endTime", endTime), () -> {
            Service service = new Service(broker);
            PopReviveService.ConsumeReviveObj read = new PopReviveService.ConsumeReviveObj();
            read.map.put("", ck);
            read.endTime = endTime;
            service.mergeAndRevive(read);
            return map("due", !service.revived.isEmpty());
        });
    }

    private void rePut(Vectors v) throws Exception {
        long now = System.currentTimeMillis();
        PopCheckPoint ck = checkPoint(now - one(1, 3) * HOUR, one(0L, 60_000L, 2 * HOUR), 1 + below(4), true);
        ck.setRePutTimes(one(null, "0", "3", "15", "16", "17", "18", "127", "x", "", "-1000", String.valueOf(below(20))));
        if ("-1000".equals(ck.getRePutTimes())) {
            ck.setRePutTimes("+2");
        }
        long offset = ck.ackOffsetByIndex((byte) below(ck.getNum()));
        broker.config.setSkipWhenCKRePutReachMaxTimes(below(2) == 0);
        Method rePut = PopReviveService.class.getDeclaredMethod("rePutCK", PopCheckPoint.class, Pair.class);
        rePut.setAccessible(true);
        v.line(map("case", "re_put", "checkPoint", row(ck), "offset", offset, "now", now, "skip", broker.config.isSkipWhenCKRePutReachMaxTimes()), () -> {
            broker.stored.clear();
            rePut.invoke(new Service(broker), ck, new Pair<>(offset, false));
            return map("checkPoint", broker.stored.isEmpty() ? null
                : row(RemotingSerializable.fromJson(new String(broker.stored.get(0).getBody(), StandardCharsets.UTF_8), PopCheckPoint.class)));
        });
    }

    private void behind(Vectors v) throws Exception {
        Service service = new Service(broker);
        boolean hasRevived = below(8) != 0;
        long max = below(100);
        long offset = below(100);
        Broker.field(service, "currentReviveMessageTimestamp").set(service, hasRevived ? 1L : one(-1L, 0L));
        Broker.field(service, "reviveOffset").set(service, offset);
        broker.store.put("getMaxOffsetInQueue", max);
        v.line(map("case", "behind", "max", max, "offset", offset, "hasRevived", hasRevived), () -> map("messages", service.getReviveBehindMessages()));
    }

    private void kvRetry(Vectors v) throws Exception {
        PopConsumerRecord record = new PopConsumerRecord(1_000_000, "g", "T", 0, 0, below(90_000), 5, null);
        record.setAttemptTimes(below(19));
        List<PopConsumerRecord> again = new ArrayList<>();
        long[] upper = new long[1];
        PopConsumerService service = new PopConsumerService(broker.controller) {
            @Override
            public CompletableFuture<Boolean> revive(PopConsumerRecord each) {
                return CompletableFuture.completedFuture(false);
            }
        };
        Broker.field(service, "popConsumerStore").set(service, Proxy.newProxyInstance(getClass().getClassLoader(),
            new Class<?>[] {PopConsumerKVStore.class}, (proxy, method, args) -> {
                if (method.getName().equals("scanExpiredRecords")) {
                    upper[0] = (Long) args[1];
                    return Collections.singletonList(record);
                }
                if (method.getName().equals("writeRecords")) {
                    again.addAll((List<PopConsumerRecord>) args[0]);
                }
                return null;
            }));
        v.line(map("case", "kv_retry", "invisibleTime", record.getInvisibleTime(), "attemptTimes", record.getAttemptTimes(),
            "maxAttemptTimes", broker.config.getPopReviveMaxAttemptTimes()), () -> {
                service.revive(new AtomicLong(0), 10);
                return map("invisibleTime", again.isEmpty() ? null : again.get(0).getInvisibleTime(),
                    "attemptTimes", again.isEmpty() ? null : again.get(0).getAttemptTimes());
            });
    }
}
