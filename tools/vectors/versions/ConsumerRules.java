package org.apache.rocketmq.client.impl.factory;

import static org.apache.rocketmq.client.impl.factory.VersionVectors.field;
import static org.apache.rocketmq.client.impl.factory.VersionVectors.map;
import static org.apache.rocketmq.client.impl.factory.VersionVectors.set;

import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.store.OffsetStore;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.client.consumer.store.RemoteBrokerOffsetStore;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.impl.MQAdminImpl;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.client.impl.consumer.ConsumeMessageOrderlyService;
import org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl;
import org.apache.rocketmq.client.impl.consumer.PullAPIWrapper;
import org.apache.rocketmq.client.impl.consumer.RebalancePushImpl;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.RemotingClient;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/** What a consumer decides by itself: where it pulls, where it begins, and what it sends back. */
final class ConsumerRules {
    private ConsumerRules() {
    }

    static Object recalculate(JSONObject asked) {
        PullAPIWrapper wrapper = new PullAPIWrapper(new MQClientInstance(new ClientConfig(), 0, "c"), "g", false);
        List<Object> results = new ArrayList<>();
        for (Object each : asked.getJSONArray("ops")) {
            JSONObject op = (JSONObject) each;
            JSONArray mq = op.getJSONArray("mq");
            MessageQueue queue = mq == null ? null : new MessageQueue(mq.getString(0), mq.getString(1), mq.getIntValue(2));
            Object result = null;
            switch (op.getString("op")) {
                case "recalculate":
                    result = wrapper.recalculatePullFromWhichNode(queue);
                    break;
                case "updatePullFromWhichNode":
                    wrapper.updatePullFromWhichNode(queue, op.getLongValue("v"));
                    break;
                case "setDefaultBrokerId":
                    wrapper.setDefaultBrokerId(op.getLongValue("v"));
                    break;
                case "setConnectBrokerByUser":
                    wrapper.setConnectBrokerByUser(op.getBooleanValue("v"));
                    break;
                default:
                    throw new IllegalArgumentException(op.getString("op"));
            }
            results.add(result);
        }
        return map("results", results);
    }

    static Object start(JSONObject asked) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("g");
        consumer.setConsumeFromWhere(ConsumeFromWhere.valueOf(asked.getString("consumeFromWhere")));
        consumer.setConsumeTimestamp(asked.getString("consumeTimestamp"));
        DefaultMQPushConsumerImpl impl = (DefaultMQPushConsumerImpl) field(consumer, "defaultMQPushConsumerImpl");
        String[] readType = new String[1];
        impl.setOffsetStore((OffsetStore) Proxy.newProxyInstance(OffsetStore.class.getClassLoader(), new Class<?>[] {OffsetStore.class},
            (proxy, method, args) -> {
                readType[0] = args[1].toString();
                return asked.getLong("storedOffset");
            }));
        MQClientInstance client = new MQClientInstance(new ClientConfig(), 0, "c");
        Object[] adminAsked = new Object[1];
        set(client, "mQAdminImpl", new MQAdminImpl(client) {
            private long answer(String method) throws MQClientException {
                if (asked.get("adminAnswers") instanceof String) {
                    throw new MQClientException(1, "no route");
                }
                return asked.getJSONObject("adminAnswers").getLongValue(method);
            }

            @Override
            public long maxOffset(MessageQueue mq) throws MQClientException {
                adminAsked[0] = "maxOffset";
                return answer("maxOffset");
            }

            @Override
            public long searchOffset(MessageQueue mq, long timestamp) throws MQClientException {
                adminAsked[0] = Arrays.asList("searchOffset", timestamp);
                return answer("searchOffset");
            }
        });
        RebalancePushImpl rebalance = new RebalancePushImpl(impl);
        rebalance.setmQClientFactory(client);
        MessageQueue mq = new MessageQueue(asked.getString("topic"), "b", 0);
        return map("withException", or(() -> rebalance.computePullFromWhereWithException(mq)),
            "plain", or(() -> rebalance.computePullFromWhere(mq)), "readType", readType[0], "adminAsked", adminAsked[0]);
    }

    static List<JSONObject> queries() {
        List<JSONObject> asked = new ArrayList<>();
        for (int code = 0; code < 30; code++) {
            JSONObject one = new JSONObject(true);
            one.put("case", "readFromStore");
            one.put("code", code);
            asked.add(one);
        }
        return asked;
    }

    /** What the offset store says if the broker answers QUERY_CONSUMER_OFFSET with a code, by the client's own network code. */
    static Object query(JSONObject asked) throws Exception {
        MQClientInstance client = new MQClientInstance(new ClientConfig(), 0, "c");
        Object api = field(client, "mQClientAPIImpl");
        set(api, "remotingClient", Proxy.newProxyInstance(RemotingClient.class.getClassLoader(), new Class<?>[] {RemotingClient.class},
            (proxy, method, args) -> {
                if (!method.getName().equals("invokeSync")) {
                    return null;
                }
                RemotingCommand answer = RemotingCommand.createResponseCommand(asked.getIntValue("code"), "r");
                answer.setExtFields(new HashMap<>(Map.of("offset", "7")));
                return answer;
            }));
        @SuppressWarnings("unchecked")
        Map<String, Map<Long, String>> table = (Map<String, Map<Long, String>>) field(client, "brokerAddrTable");
        table.put("b", new HashMap<>(Map.of(0L, "10.0.0.1:10911")));
        return map("offset", new RemoteBrokerOffsetStore(client, "g").readOffset(new MessageQueue("T", "b", 0), ReadOffsetType.READ_FROM_STORE));
    }

    interface Offset {
        long of() throws Exception;
    }

    private static Object or(Offset offset) {
        try {
            return offset.of();
        } catch (Exception error) {
            return VersionVectors.shown(error);
        }
    }

    static Object sendBack(JSONObject asked) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(asked.getString("group"));
        consumer.setMaxReconsumeTimes(asked.getIntValue("maxReconsumeTimes"));
        DefaultMQPushConsumerImpl impl = (DefaultMQPushConsumerImpl) field(consumer, "defaultMQPushConsumerImpl");
        MQClientInstance client = new MQClientInstance(new ClientConfig(), 0, "c");
        impl.setmQClientFactory(client);
        List<Object> sent = new ArrayList<>();
        set(client, "defaultMQProducer", new DefaultMQProducer("p") {
            @Override
            public SendResult send(Message msg) throws MQClientException {
                sent.add(map("topic", msg.getTopic(), "delayTimeLevel", msg.getDelayTimeLevel(), "flag", msg.getFlag(),
                    "properties", new TreeMap<>(msg.getProperties())));
                if (!asked.getBooleanValue("producerSendOk")) {
                    throw new MQClientException(1, "no");
                }
                return new SendResult();
            }
        });
        List<MessageExt> msgs = asked.getJSONArray("msgs").stream().map(each -> message((JSONObject) each)).collect(Collectors.toList());
        if (asked.getString("case").equals("orderlyCheckReconsumeTimes")) {
            ConsumeMessageOrderlyService service = new ConsumeMessageOrderlyService(impl, (MessageListenerOrderly) (got, context) -> null);
            Method check = ConsumeMessageOrderlyService.class.getDeclaredMethod("checkReconsumeTimes", List.class);
            check.setAccessible(true);
            Object suspend = check.invoke(service, msgs);
            service.shutdown(0);
            List<Integer> after = msgs.stream().map(MessageExt::getReconsumeTimes).collect(Collectors.toList());
            return map("suspend", suspend, "reconsumeTimesAfter", after, "sent", sent);
        }
        String broker = asked.getString("brokerName");
        if (broker != null) {
            @SuppressWarnings("unchecked")
            Map<String, Map<Long, String>> table = (Map<String, Map<Long, String>>) field(client, "brokerAddrTable");
            table.put(broker, new HashMap<>(Map.of(0L, "10.0.0.1:10911")));
        }
        Api api = new Api(asked.getBooleanValue("brokerSendBackOk"));
        set(client, "mQClientAPIImpl", api);
        Map<String, Object> out = new LinkedHashMap<>();
        try {
            impl.sendMessageBack(msgs.get(0), asked.getIntValue("delayLevel"), broker);
        } catch (Exception error) {
            out.put("error", VersionVectors.shown(error));
        }
        out.put("sentBackToBroker", api.asked);
        out.put("sentByProducer", sent);
        return out;
    }

    private static MessageExt message(JSONObject given) {
        MessageExt msg = new MessageExt();
        msg.setTopic(given.getString("topic"));
        msg.setBody(new byte[] {1});
        msg.setMsgId(given.getString("msgId"));
        msg.setFlag(given.getIntValue("flag"));
        msg.setReconsumeTimes(given.getIntValue("reconsumeTimes"));
        msg.setStoreHost(new InetSocketAddress("10.0.0.2", 10911));
        Map<String, String> properties = new HashMap<>();
        given.getJSONObject("properties").forEach((name, value) -> properties.put(name, (String) value));
        MessageAccessor.setProperties(msg, properties);
        return msg;
    }

    /** Records the request to take a message back; a later release gives the broker's name too. */
    static final class Api extends MQClientAPIImpl {
        private final boolean ok;
        private Object asked;

        Api(boolean ok) {
            super(new NettyClientConfig(), null, null, new ClientConfig());
            this.ok = ok;
        }

        public void consumerSendMessageBack(String addr, MessageExt msg, String group, int level, long timeout, int max)
            throws MQBrokerException {
            consumerSendMessageBack(addr, null, msg, group, level, timeout, max);
        }

        public void consumerSendMessageBack(String addr, String broker, MessageExt msg, String group, int level, long timeout, int max)
            throws MQBrokerException {
            asked = map("addr", addr, "brokerName", broker, "group", group, "delayLevel", level, "maxReconsumeTimes", max);
            if (!ok) {
                throw new MQBrokerException(1, "no");
            }
        }
    }
}
