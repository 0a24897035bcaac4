package org.apache.rocketmq.client.impl.factory;

import static org.apache.rocketmq.client.impl.factory.VersionVectors.field;
import static org.apache.rocketmq.client.impl.factory.VersionVectors.map;
import static org.apache.rocketmq.client.impl.factory.VersionVectors.set;

import com.alibaba.fastjson.JSONObject;
import com.alibaba.fastjson.parser.Feature;
import io.netty.channel.embedded.EmbeddedChannel;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.filter.MessageEvaluationContext;
import org.apache.rocketmq.broker.processor.PullMessageProcessor;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.constant.PermName;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.filter.SqlFilter;
import org.apache.rocketmq.filter.expression.Expression;
import org.apache.rocketmq.filter.expression.MQFilterException;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.GetMessageStatus;
import org.apache.rocketmq.store.MessageStore;
import org.apache.rocketmq.store.StoreUtil;
import org.apache.rocketmq.store.config.BrokerRole;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import sun.misc.Unsafe;

/** What a broker answers to a pull: its suggestion, how much it reads at once, and what SQL92 lets through. */
final class BrokerRules {
    private static final int PULL_MESSAGE = 11;
    private static final int LITE_PULL_MESSAGE = 361;
    private static final int MAX_PULL_MSG_SIZE = 128 * 1024 * 1024; // DefaultMessageStore's, which getMessage gives on

    private final BrokerConfig config = new BrokerConfig();
    private final MessageStoreConfig storeConfig = new MessageStoreConfig();
    private final BrokerController controller;
    private final DefaultMessageStore store;
    private final Unsafe unsafe;
    private GetMessageResult stored;

    BrokerRules() throws Exception {
        Field the = Unsafe.class.getDeclaredField("theUnsafe");
        the.setAccessible(true);
        unsafe = (Unsafe) the.get(null);
        config.setBrokerName("broker-a");
        storeConfig.setStorePathRootDir(Files.createTempDirectory("vectors").toString());
        controller = new BrokerController(config, new NettyServerConfig(), new NettyClientConfig(), storeConfig);
        controller.setMessageStore((MessageStore) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {MessageStore.class},
            (proxy, method, args) -> answer(method)));
        try { // Only initialize() makes it, and from 5.4 on a pull does not do without.
            Class<?> metrics = Class.forName("org.apache.rocketmq.broker.metrics.BrokerMetricsManager");
            set(controller, "brokerMetricsManager", metrics.getConstructor(BrokerController.class).newInstance(controller));
        } catch (ClassNotFoundException | NoSuchFieldException none) {
            // 5.0.0 has none
        }
        store = (DefaultMessageStore) unsafe.allocateInstance(DefaultMessageStore.class);
        set(store, "messageStoreConfig", storeConfig);
    }

    private Object answer(Method method) {
        if (method.getName().equals("getMessage")) {
            return stored;
        }
        Class<?> type = method.getReturnType();
        return method.getName().equals("getMessageAsync") ? CompletableFuture.completedFuture(stored)
            : type == long.class ? (Object) 0L : type == int.class ? (Object) 0 : type == boolean.class ? (Object) false : null;
    }

    /** Each reason to refuse a pull: what the broker has other than usual. */
    static List<JSONObject> refusals() {
        List<JSONObject> asked = new ArrayList<>();
        for (String other : Arrays.asList("{}", "{\"queueId\":4}", "{\"queueId\":-1}", "{\"forbidden\":true}", "{\"lite\":true,\"litePullMessageEnable\":false}",
            "{\"lite\":true}", "{\"litePullMessageEnable\":false}", "{\"rejectPullConsumerEnable\":true,\"isActiveElsewhere\":true}",
            "{\"rejectPullConsumerEnable\":true}", "{\"isActiveElsewhere\":true}", "{\"rejectPullConsumerEnable\":true,\"groupInfo\":null}",
            "{\"topicPerm\":2}", "{\"consumeEnable\":false}", "{\"brokerPermission\":2}", "{\"topicConfig\":null}", "{\"groupConfig\":null}",
            "{\"groupSubscribesTopic\":false}", "{\"brokerSubVersion\":9}", "{\"messageModel\":\"BROADCASTING\",\"consumeBroadcastEnable\":false}",
            "{\"forbidden\":true,\"queueId\":4}", "{\"forbidden\":true,\"messageModel\":\"BROADCASTING\",\"consumeBroadcastEnable\":false}",
            "{\"forbidden\":true,\"groupSubscribesTopic\":false}", "{\"storeReturns\":null}")) {
            for (int sysFlag : new int[] {0, 4}) {
                JSONObject one = JSONObject.parseObject("{\"case\":\"pull.options\",\"brokerRole\":\"ASYNC_MASTER\",\"slaveReadEnable\":false,"
                    + "\"groupBrokerId\":0,\"whichBrokerWhenConsumeSlowly\":1,\"queueOffset\":50,\"commitOffset\":42,\"brokerAllowSuspend\":false,"
                    + "\"readQueueNums\":4,\"status\":\"FOUND\",\"suggestPullingFromSlave\":false,\"offsetCheckInSlave\":false}", Feature.OrderedField);
                one.put("sysFlag", sysFlag);
                one.put("otherThan", JSONObject.parseObject(other));
                asked.add(one);
            }
        }
        return asked;
    }

    Object pull(JSONObject asked) throws Exception {
        JSONObject other = asked.getJSONObject("otherThan") == null ? new JSONObject() : asked.getJSONObject("otherThan");
        config.setSlaveReadEnable(asked.getBooleanValue("slaveReadEnable"));
        config.setInBrokerContainer(asked.getBooleanValue("inBrokerContainer"));
        config.setBrokerId(asked.getLongValue("brokerId"));
        config.setBrokerIP1("10.0.0.1");
        config.setBrokerPermission(or(other, "brokerPermission", 6));
        config.setEnablePropertyFilter(other.getBooleanValue("enablePropertyFilter"));
        config.setLitePullMessageEnable(or(other, "litePullMessageEnable", true));
        if (asked.containsKey("sysFlag") && hasSetting("rejectPullConsumerEnable")) {
            set(config, "rejectPullConsumerEnable", other.getBooleanValue("rejectPullConsumerEnable"));
        }
        config.setAutoCreateSubscriptionGroup(true);
        config.setLongPollingEnable(true);
        set(controller, "minBrokerIdInGroup", asked.getLongValue("minBrokerIdInGroup"));
        storeConfig.setBrokerRole(asked.getString("brokerRole"));
        storeConfig.setOffsetCheckInSlave(asked.getBooleanValue("offsetCheckInSlave"));
        Map<String, TopicConfig> topics = controller.getTopicConfigManager().getTopicConfigTable();
        topics.clear();
        if (!gone(other, "topicConfig")) {
            int queues = or(asked, "readQueueNums", 4);
            topics.put("T", new TopicConfig("T", queues, queues, or(other, "topicPerm", 6)));
        }
        var groups = controller.getSubscriptionGroupManager();
        groups.getSubscriptionGroupTable().clear();
        if (gone(other, "groupConfig")) {
            config.setAutoCreateSubscriptionGroup(false);
        } else {
            var group = groups.findSubscriptionGroupConfig("g");
            group.setBrokerId(asked.getLongValue("groupBrokerId"));
            group.setWhichBrokerWhenConsumeSlowly(asked.getLongValue("whichBrokerWhenConsumeSlowly"));
            group.setConsumeEnable(or(other, "consumeEnable", true));
            group.setConsumeBroadcastEnable(or(other, "consumeBroadcastEnable", true));
        }
        groups.getForbiddenTable().clear();
        if (other.getBooleanValue("forbidden")) {
            groups.setForbidden("g", "T", PermName.INDEX_PERM_READ);
        }
        members(other);
        stored = null;
        if (!gone(other, "storeReturns")) {
            stored = new GetMessageResult();
            stored.setStatus(GetMessageStatus.valueOf(asked.getString("status")));
            stored.setNextBeginOffset(or(asked, "nextBeginOffset", 77));
            stored.setMinOffset(or(asked, "minOffset", 3));
            stored.setMaxOffset(or(asked, "maxOffset", 99));
            stored.setSuggestPullingFromSlave(asked.getBooleanValue("suggestPullingFromSlave"));
        }
        return answered(asked, request(asked, other));
    }

    private Object answered(JSONObject asked, RemotingCommand request) throws Exception {
        if (!asked.getString("case").startsWith("compose") && controller.getPullMessageProcessor().rejectRequest()) {
            // NettyRemotingAbstract#processRequestCommand then answers so, and does not ask the processor.
            return map("code", 2, "remark", "[REJECTREQUEST]system busy, start flow control for a while", "suggestWhichBrokerId", null,
                "nextBeginOffset", null, "minOffset", null, "maxOffset", null, "held", 0, "committed", null);
        }
        Map<?, ?> offsets = controller.getConsumerOffsetManager().getOffsetTable();
        offsets.clear();
        EmbeddedChannel channel = new EmbeddedChannel() {
            @Override
            protected SocketAddress remoteAddress0() {
                return new InetSocketAddress("10.0.0.9", 5555);
            }
        };
        Method process = Arrays.stream(PullMessageProcessor.class.getDeclaredMethods())
            .filter(each -> each.getName().equals("processRequest") && each.getParameterCount() > 2).findFirst().get();
        process.setAccessible(true);
        Object[] given = {channel, request, !Boolean.FALSE.equals(asked.getBoolean("brokerAllowSuspend")), true};
        RemotingCommand response;
        try {
            response = (RemotingCommand) process.invoke(controller.getPullMessageProcessor(), Arrays.copyOf(given, process.getParameterCount()));
        } catch (InvocationTargetException error) {
            throw (Exception) error.getCause();
        }
        if (response == null) {
            channel.runPendingTasks();
            response = (RemotingCommand) channel.readOutbound();
        }
        Map<?, ?> of = (Map<?, ?>) offsets.get("T@g");
        Object committed = of == null ? null : of.get(0);
        if (response == null) {
            return map("response", null, "held", 1, "committed", committed);
        }
        Object header = response.readCustomHeader();
        if (asked.getString("case").startsWith("compose")) {
            return map("code", response.getCode(), "remark", response.getRemark(),
                "suggestWhichBrokerId", field(header, "suggestWhichBrokerId"), "nextBeginOffset", field(header, "nextBeginOffset"));
        }
        return map("code", response.getCode(), "remark", response.getRemark(), "suggestWhichBrokerId", field(header, "suggestWhichBrokerId"),
            "nextBeginOffset", field(header, "nextBeginOffset"), "minOffset", field(header, "minOffset"),
            "maxOffset", field(header, "maxOffset"), "held", 0, "committed", committed);
    }

    private static RemotingCommand request(JSONObject asked, JSONObject other) {
        RemotingCommand request = RemotingCommand.createRequestCommand(other.getBooleanValue("lite") ? LITE_PULL_MESSAGE : PULL_MESSAGE, null);
        Map<String, Object> header = map("consumerGroup", "g", "topic", "T", "queueId", or(other, "queueId", 0),
            "queueOffset", asked.get("queueOffset"), "maxMsgNums", 32, "sysFlag", or(asked, "sysFlag", 4),
            "commitOffset", or(asked, "commitOffset", 42), "suspendTimeoutMillis", 15000, "subVersion", 10,
            "subscription", other.getOrDefault("subscription", "*"), "expressionType", other.getOrDefault("expressionType", "TAG"));
        HashMap<String, String> fields = new HashMap<>();
        header.forEach((name, value) -> {
            if (value != null) {
                fields.put(name, value.toString());
            }
        });
        request.setExtFields(fields);
        return request;
    }

    @SuppressWarnings("unchecked")
    private void members(JSONObject other) throws Exception {
        Map<String, Object> groups = (Map<String, Object>) field(controller.getConsumerManager(), "consumerTable");
        groups.clear();
        if (gone(other, "groupInfo")) {
            return;
        }
        Class<?> model = heartbeat("MessageModel");
        Constructor<?> make = Class.forName("org.apache.rocketmq.broker.client.ConsumerGroupInfo")
            .getConstructor(String.class, heartbeat("ConsumeType"), model, ConsumeFromWhere.class);
        Object messageModel = model.getField((String) other.getOrDefault("messageModel", "CLUSTERING")).get(null);
        Object type = other.getBooleanValue("isActiveElsewhere") ? heartbeat("ConsumeType").getField("CONSUME_ACTIVELY").get(null) : null;
        Object info = make.newInstance("g", type, messageModel, ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET);
        if (or(other, "groupSubscribesTopic", true)) {
            Object data = heartbeat("SubscriptionData").getConstructor(String.class, String.class).newInstance("T", "*");
            set(data, "subVersion", (long) or(other, "brokerSubVersion", 10));
            set(data, "expressionType", other.getOrDefault("expressionType", "TAG"));
            ((Map<String, Object>) field(info, "subscriptionTable")).put("T", data);
        }
        groups.put("g", info);
    }

    /** A class of heartbeats, which changed packages after 5.0.0. */
    private static Class<?> heartbeat(String name) throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.rocketmq.remoting.protocol.heartbeat." + name);
        } catch (ClassNotFoundException older) {
            return Class.forName("org.apache.rocketmq.common.protocol.heartbeat." + name);
        }
    }

    private static boolean hasSetting(String name) {
        return Arrays.stream(BrokerConfig.class.getDeclaredFields()).anyMatch(each -> each.getName().equals(name));
    }

    private static boolean gone(JSONObject other, String name) {
        return other.containsKey(name) && other.get(name) == null;
    }

    private static int or(JSONObject given, String name, int usual) {
        return given.containsKey(name) ? given.getIntValue(name) : usual;
    }

    private static boolean or(JSONObject given, String name, boolean usual) {
        return given.containsKey(name) ? given.getBooleanValue(name) : usual;
    }

    Object batch(JSONObject asked) throws Exception {
        switch (asked.getString("case").split("\\.")[0]) {
            case "isTheBatchFull":
                return map("full", full(asked));
            case "checkInDiskByCommitOffset":
                Field memory = StoreUtil.class.getDeclaredField("TOTAL_PHYSICAL_MEMORY_SIZE");
                unsafe.putLong(unsafe.staticFieldBase(memory), unsafe.staticFieldOffset(memory), asked.getLongValue("totalPhysicalMemorySize"));
                storeConfig.setAccessMessageInMemoryMaxRatio(asked.getIntValue("accessMessageInMemoryMaxRatio"));
                Method later = method("estimateInMemByCommitOffset");
                Object got = (later == null ? method("checkInDiskByCommitOffset") : later)
                    .invoke(store, asked.getLongValue("offsetPy"), asked.getLongValue("maxOffsetPy"));
                return map("inDisk", (later == null) == (Boolean) got);
            case "nextOffsetCorrection":
                storeConfig.setBrokerRole(BrokerRole.valueOf(asked.getString("brokerRole")));
                storeConfig.setOffsetCheckInSlave(asked.getBooleanValue("offsetCheckInSlave"));
                return map("next", method("nextOffsetCorrection").invoke(store, asked.getLongValue("oldOffset"), asked.getLongValue("newOffset")));
            default:
                throw new IllegalArgumentException(asked.getString("case"));
        }
    }

    private Object full(JSONObject asked) throws Exception {
        storeConfig.setMaxTransferBytesOnMessageInMemory(asked.getIntValue("maxTransferBytesOnMessageInMemory"));
        storeConfig.setMaxTransferCountOnMessageInMemory(asked.getIntValue("maxTransferCountOnMessageInMemory"));
        storeConfig.setMaxTransferBytesOnMessageInDisk(asked.getIntValue("maxTransferBytesOnMessageInDisk"));
        storeConfig.setMaxTransferCountOnMessageInDisk(asked.getIntValue("maxTransferCountOnMessageInDisk"));
        // 5.0.0 asks whether the messages are on disk, later releases whether they are in memory.
        boolean last = asked.getBooleanValue("isInDisk") == (method("estimateInMemByCommitOffset") == null);
        return method("isTheBatchFull").invoke(store, asked.getIntValue("sizePy"), 1, asked.getIntValue("maxMsgNums"), (long) MAX_PULL_MSG_SIZE,
            asked.getIntValue("bufferTotal"), asked.getIntValue("messageTotal"), last);
    }

    private static Method method(String name) {
        return Arrays.stream(DefaultMessageStore.class.getDeclaredMethods()).filter(each -> each.getName().equals(name) && each.getParameterCount() > 1)
            .peek(each -> each.setAccessible(true)).findFirst().orElse(null);
    }

    static Object sql(JSONObject asked) throws Exception {
        Expression expression;
        try {
            expression = new SqlFilter().compile(asked.getString("expression"));
        } catch (MQFilterException error) {
            String shown = VersionVectors.shown(error);
            return map("compileError", shown.substring(0, Math.min(200, shown.length())));
        }
        Map<String, String> properties = new HashMap<>();
        JSONObject given = asked.getJSONObject("properties") == null ? new JSONObject() : asked.getJSONObject("properties");
        given.forEach((name, value) -> properties.put(name, (String) value));
        Object value = expression.evaluate(new MessageEvaluationContext(properties));
        return map("value", value, "type", value == null ? null : value.getClass().getSimpleName());
    }
}
