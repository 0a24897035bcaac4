package org.apache.rocketmq.broker.processor;

import static org.apache.rocketmq.broker.processor.Vectors.below;
import static org.apache.rocketmq.broker.processor.Vectors.list;
import static org.apache.rocketmq.broker.processor.Vectors.map;
import static org.apache.rocketmq.broker.processor.Vectors.one;

import io.netty.channel.embedded.EmbeddedChannel;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.client.ClientChannelInfo;
import org.apache.rocketmq.broker.client.ConsumerGroupInfo;
import org.apache.rocketmq.broker.metrics.BrokerMetricsManager;
import org.apache.rocketmq.broker.pop.PopConsumerService;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.message.MessageQueueAssignment;
import org.apache.rocketmq.common.message.MessageRequestMode;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.remoting.protocol.LanguageCode;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RequestCode;
import org.apache.rocketmq.remoting.protocol.body.QueryAssignmentRequestBody;
import org.apache.rocketmq.remoting.protocol.body.QueryAssignmentResponseBody;
import org.apache.rocketmq.remoting.protocol.body.SetMessageRequestModeRequestBody;
import org.apache.rocketmq.remoting.protocol.heartbeat.ConsumeType;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.store.AppendMessageResult;
import org.apache.rocketmq.store.AppendMessageStatus;
import org.apache.rocketmq.store.MessageStore;
import org.apache.rocketmq.store.PutMessageResult;
import org.apache.rocketmq.store.PutMessageStatus;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/** A broker that is not started, on a message store that only answers what it was given. */
final class Broker {
    final BrokerConfig config = new BrokerConfig();
    final BrokerController controller;
    final Map<String, Object> store = new LinkedHashMap<>();
    final List<MessageExtBrokerInner> stored = new ArrayList<>();

    Broker() throws Exception {
        config.setBrokerName("broker-a");
        MessageStoreConfig storeConfig = new MessageStoreConfig();
        storeConfig.setStorePathRootDir(Files.createTempDirectory("vectors").toString());
        controller = new BrokerController(config, new NettyServerConfig(), new NettyClientConfig(), storeConfig);
        controller.setMessageStore((MessageStore) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {MessageStore.class},
            (proxy, method, args) -> answer(method, args)));
        // Only initialize() makes it, and from 5.4 on the revive service does not do without.
        field(controller, "brokerMetricsManager").set(controller, new BrokerMetricsManager(controller));
    }

    private Object answer(Method method, Object[] args) {
        if (method.getName().equals("putMessage") || method.getName().equals("asyncPutMessage")) {
            stored.add((MessageExtBrokerInner) args[0]);
            PutMessageResult put = new PutMessageResult(PutMessageStatus.PUT_OK, new AppendMessageResult(AppendMessageStatus.PUT_OK));
            return method.getName().equals("putMessage") ? put : CompletableFuture.completedFuture(put);
        }
        Object known = store.get(method.getName());
        if (known != null) {
            return known;
        }
        Class<?> type = method.getReturnType();
        return type == long.class ? (Object) 0L : type == int.class ? (Object) 0 : type == boolean.class ? (Object) false : null;
    }

    static Field field(Object of, String name) throws Exception {
        for (Class<?> type = of.getClass(); type != null; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field;
                }
            }
        }
        throw new NoSuchFieldException(name);
    }

    // ---- assignment

    void assignments(Vectors v) throws Exception {
        QueryAssignmentProcessor processor = new QueryAssignmentProcessor(controller);
        for (int i = 0; i < 900; i++) {
            query(v, processor);
        }
        for (int i = 0; i < 500; i++) {
            AllocateMessageQueueStrategy strategy = one(new AllocateMessageQueueAveragely(), new AllocateMessageQueueAveragelyByCircle());
            List<MessageQueue> queues = new ArrayList<>(queues("T", below(10)));
            Collections.sort(queues);
            List<String> clients = clients(below(8));
            String client = one("c0", "c1", "c2", "c5", "zz", "", " ", null);
            int share = below(8) - 1;
            v.line(map("case", "allocate", "strategy", strategy.getName(), "clientId", client, "mqAll", rows(queues), "cidAll", clients, "popShareQueueNum", share),
                () -> map("queues", rows(processor.allocate4Pop(strategy, "g", client, queues, clients, share))));
        }
    }

    private void query(Vectors v, QueryAssignmentProcessor processor) throws Exception {
        String topic = one("T", "T", "T", "T", "%RETRY%g", "%LMQ%t", "none");
        String group = below(12) == 0 ? "unknown" : "g";
        Set<MessageQueue> queues = topic.equals("none") ? null : queues(topic, 1 + below(10));
        List<String> clients = group.equals("g") ? clients(below(9)) : null;
        String client = below(10) == 0 ? one("zz", "", " ") : "c" + below(6);
        MessageModel model = one(MessageModel.CLUSTERING, MessageModel.CLUSTERING, MessageModel.CLUSTERING, MessageModel.BROADCASTING);
        String strategy = one("AVG", "AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH");
        SetMessageRequestModeRequestBody mode = null;
        if (below(3) != 0) {
            mode = new SetMessageRequestModeRequestBody();
            mode.setTopic(topic);
            mode.setConsumerGroup(group);
            mode.setMode(one(MessageRequestMode.POP, MessageRequestMode.POP, MessageRequestMode.PULL));
            mode.setPopShareQueueNum(below(7) - 1);
        }
        MessageRequestMode byDefault = one(MessageRequestMode.PULL, MessageRequestMode.POP);
        config.setDefaultMessageRequestMode(byDefault.name());
        config.setDefaultPopShareQueueNum(one(-1, 0, 1, 2));
        config.setServerLoadBalancerEnable(below(10) != 0);
        processor.getMessageRequestModeManager().getMessageRequestModeMap().clear();
        if (mode != null) {
            processor.getMessageRequestModeManager().setMessageRequestMode(topic, group, mode);
        }
        table(controller.getTopicRouteInfoManager(), "topicSubscribeInfoTable", topic, queues);
        table(controller.getConsumerManager(), "consumerTable", group, clients == null ? null : group(group, clients));
        QueryAssignmentRequestBody body = new QueryAssignmentRequestBody();
        body.setTopic(topic);
        body.setConsumerGroup(group);
        body.setClientId(client);
        body.setMessageModel(model);
        body.setStrategyName(strategy);
        RemotingCommand request = RemotingCommand.createRequestCommand(RequestCode.QUERY_ASSIGNMENT, null);
        request.setBody(body.encode());
        Object stored = mode == null ? null : list(mode.getMode().name(), mode.getPopShareQueueNum());
        v.line(map("case", "query", "topic", topic, "group", group, "clientId", client, "messageModel", model.name(), "strategy", strategy,
            "stored", stored, "defaultMode", byDefault.name(), "defaultShare", config.getDefaultPopShareQueueNum(),
            "serverLoadBalancerEnable", config.isServerLoadBalancerEnable(), "mqSet", queues == null ? null : rows(queues), "cidAll", clients),
            () -> {
                RemotingCommand response = processor.processRequest(null, request);
                Set<MessageQueueAssignment> found = QueryAssignmentResponseBody.decode(response.getBody(), QueryAssignmentResponseBody.class).getMessageQueueAssignments();
                if (found == null) {
                    return map("queues", null, "modes", null);
                }
                Set<MessageQueue> sorted = new TreeSet<>();
                Set<String> modes = new TreeSet<>();
                found.forEach(each -> {
                    sorted.add(each.getMessageQueue());
                    modes.add(each.getMode().name());
                });
                return map("queues", rows(sorted), "modes", modes);
            });
    }

    private static <V> void table(Object manager, String name, String key, V value) throws Exception {
        @SuppressWarnings("unchecked")
        Map<String, V> table = (Map<String, V>) field(manager, name).get(manager);
        table.clear();
        if (value != null) {
            table.put(key, value);
        }
    }

    private static Object group(String group, List<String> clients) {
        ConsumerGroupInfo info = new ConsumerGroupInfo(group, ConsumeType.CONSUME_PASSIVELY, MessageModel.CLUSTERING, ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET);
        for (String client : clients) {
            ClientChannelInfo channel = new ClientChannelInfo(new EmbeddedChannel(), client, LanguageCode.JAVA, 0);
            info.getChannelInfoTable().put(channel.getChannel(), channel);
        }
        return info;
    }

    private static List<String> clients(int count) {
        List<String> made = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            made.add("c" + i);
        }
        return made;
    }

    private static Set<MessageQueue> queues(String topic, int count) {
        Set<MessageQueue> made = new HashSet<>();
        for (int i = 0; i < count; i++) {
            made.add(new MessageQueue(topic, one("broker-a", "broker-b"), below(12)));
        }
        return made;
    }

    static List<Object> rows(Iterable<MessageQueue> queues) {
        List<Object> made = new ArrayList<>();
        queues.forEach(mq -> made.add(list(mq.getTopic(), mq.getBrokerName(), mq.getQueueId())));
        return made;
    }

    // ---- start offset

    void starts(Vectors v) throws Exception {
        PopMessageProcessor processor = controller.getPopMessageProcessor();
        Method popOffset = PopMessageProcessor.class.getDeclaredMethod("getPopOffset", String.class, String.class, int.class, int.class,
            boolean.class, String.class, boolean.class);
        popOffset.setAccessible(true);
        PopConsumerService kv = new PopConsumerService(controller);
        Method kvOffset = null;
        for (Method method : PopConsumerService.class.getDeclaredMethods()) {
            kvOffset = method.getName().equals("getPopOffset") ? method : kvOffset;
        }
        Method ofKv = kvOffset;
        for (int i = 0; i < 900; i++) {
            String topic = one("T", "T", "%RETRY%g_T");
            String group = "g" + i;
            int initMode = one(0, 1, 1, 2, -1);
            long min = one(-1L, 0L, 0L, (long) below(50));
            long max = one(0L, 1L, min + below(100), -1L);
            boolean inMemory = below(2) == 0;
            config.setInitPopOffsetByCheckMsgInMem(below(4) != 0);
            store.put("getMinOffsetInQueue", min);
            store.put("getMaxOffsetInQueue", max);
            store.put("checkInMemByConsumeOffset", inMemory);
            Map<String, Object> asked = map("case", "init", "topic", topic, "initMode", initMode, "min", min, "max", max, "inMemory", inMemory,
                "checkMsgInMem", config.isInitPopOffsetByCheckMsgInMem());
            v.line(asked, () -> map("offset", processor.getInitOffset(topic, group, 0, initMode, false)));
            Long committed = below(2) == 0 ? (Long) (long) below(200) : null;
            Long pulled = below(2) == 0 ? (Long) (long) below(200) : null;
            Long reset = below(4) == 0 ? (Long) (long) below(200) : null;
            boolean fifo = below(2) == 0;
            offsets(group, topic, committed, pulled, reset);
            Map<String, Object> ofFile = new LinkedHashMap<>(asked);
            ofFile.putAll(map("case", "pop", "committed", committed, "reset", reset));
            v.line(ofFile, () -> map("offset", popOffset.invoke(processor, topic, group, 0, initMode, false, topic + "@" + group + "@0", true)));
            Map<String, Object> ofStore = new LinkedHashMap<>(asked);
            ofStore.putAll(map("case", "kv", "committed", committed, "pulled", pulled, "reset", reset, "fifo", fifo));
            offsets(group + "k", topic, committed, pulled, reset);
            v.line(ofStore, () -> map("offset", ofKv.getParameterCount() == 5
                ? ofKv.invoke(kv, group + "k", topic, 0, initMode, fifo) : ofKv.invoke(kv, group + "k", topic, 0, initMode)));
        }
    }

    private void offsets(String group, String topic, Long committed, Long pulled, Long reset) {
        if (committed != null) {
            controller.getConsumerOffsetManager().commitOffset("", group, topic, 0, committed);
        }
        if (pulled != null) {
            controller.getConsumerOffsetManager().commitPullOffset("", group, topic, 0, pulled);
        }
        if (reset != null) {
            controller.getConsumerOffsetManager().assignResetOffset(topic, group, 0, reset);
        }
    }
}
