package org.apache.rocketmq.broker.processor;

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import com.alibaba.fastjson.serializer.SerializerFeature;
import java.io.BufferedReader;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.client.rebalance.RebalanceLockManager;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.impl.producer.TopicPublishInfo;
import org.apache.rocketmq.client.latency.MQFaultStrategy;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/** Rules on both sides of a release that changed them, 4.9 to 5.1.4: `Boundaries FOLDER SUFFIX`. */
public final class Boundaries {
    private static final int SEND_MESSAGE = 10;
    private static final int EVERY = 5; // of the questions of a file

    public static void main(String[] args) throws Exception {
        List<Map<String, Object>> sends = new ArrayList<>();
        for (JSONObject asked : questions(new File(args[0], "fault_strategy.jsonl.gz"))) {
            sends.add(line(asked, select(asked)));
        }
        write(new File(args[0], "fault_strategy" + args[1] + ".jsonl.gz"), sends);
        List<Map<String, Object>> retries = new ArrayList<>();
        for (int times = 0; times < 5; times++) {
            for (int most = 0; most < 4; most++) {
                for (List<Integer> ages : Arrays.<List<Integer>>asList(null, Arrays.asList(), Arrays.asList(59_000), Arrays.asList(61_000),
                    Arrays.asList(61_000, 1_000), Arrays.asList(90_000, 61_000))) {
                    JSONObject asked = new JSONObject(true);
                    asked.put("case", "handleRetryAndDLQ");
                    asked.put("reconsumeTimes", times);
                    asked.put("maxReconsumeTimes", most);
                    asked.put("lockAgesMs", ages);
                    retries.add(line(asked, retry(asked)));
                }
            }
        }
        write(new File(args[0], "second_try" + args[1] + ".jsonl.gz"), retries);
        System.exit(0); // clients and brokers have threads
    }

    private static List<JSONObject> questions(File file) throws Exception {
        List<JSONObject> found = new ArrayList<>();
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(new GZIPInputStream(new FileInputStream(file)), StandardCharsets.UTF_8))) {
            int number = 0;
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                JSONObject asked = JSON.parseObject(line).getJSONObject("in");
                if (asked.getString("case").equals("latencyFaultOn") && number++ % EVERY == 0) {
                    found.add(asked);
                }
            }
        }
        return found;
    }

    private static Map<String, Object> line(JSONObject asked, Object answer) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("in", asked);
        line.put("out", answer);
        return line;
    }

    private static void write(File file, List<Map<String, Object>> lines) throws Exception {
        try (Writer out = new OutputStreamWriter(new GZIPOutputStream(new FileOutputStream(file)), StandardCharsets.UTF_8)) {
            for (Map<String, Object> line : lines) {
                out.write(JSON.toJSONString(line, SerializerFeature.WriteMapNullValue, SerializerFeature.DisableCircularReferenceDetect) + "\n");
            }
        }
    }

    /** Each choice has fresh queues: some releases write the broker that they pick into the list of the route. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Object select(JSONObject asked) throws Exception {
        MQFaultStrategy strategy = strategy();
        strategy.setSendLatencyFaultEnable(true);
        Object tolerance = get(strategy, "latencyFaultTolerance");
        Map table = (Map) get(tolerance, "faultItemTable");
        for (Object each : asked.getJSONArray("faultItems")) {
            JSONObject given = (JSONObject) each;
            table.put(given.getString("broker"), item(tolerance, given));
        }
        TopicPublishInfo route = new TopicPublishInfo();
        route.setTopicRouteData(null);
        set(route, "topicRouteData", routeData(asked.getJSONArray("writeQueueNums")));
        index(route, "sendWhichQueue").set(asked.getInteger("startIndex"));
        ThreadLocal<Integer> worst = index(tolerance, has(tolerance, "randomItem") ? "randomItem" : "whichItemWorst");
        worst.set(asked.getInteger("startWorst"));
        List<Object> selected = new ArrayList<>();
        for (Object last : asked.getJSONArray("lastBrokerNames")) {
            route.setMessageQueueList(queues(asked.getJSONArray("queues")));
            MessageQueue mq = choose(strategy, route, (String) last);
            selected.add(Arrays.asList(Arrays.asList(mq.getTopic(), mq.getBrokerName(), mq.getQueueId()), index(route, "sendWhichQueue").get(),
                worst.get(), new TreeSet<>(table.keySet())));
        }
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("selected_index_worst_itemsLeft", selected);
        return answer;
    }

    private static MessageQueue choose(MQFaultStrategy strategy, TopicPublishInfo route, String last) throws Exception {
        for (Method method : MQFaultStrategy.class.getMethods()) {
            if (method.getName().equals("selectOneMessageQueue")) {
                return (MessageQueue) (method.getParameterCount() == 2 ? method.invoke(strategy, route, last) : method.invoke(strategy, route, last, false));
            }
        }
        throw new IllegalStateException("no selectOneMessageQueue");
    }

    private static Object item(Object tolerance, JSONObject given) throws Exception {
        Class<?> type = Class.forName(tolerance.getClass().getName() + "$FaultItem");
        Constructor<?> make = type.getDeclaredConstructors()[0];
        make.setAccessible(true);
        Object item = make.getParameterCount() == 1 ? make.newInstance(given.getString("broker")) : make.newInstance(tolerance, given.getString("broker"));
        set(item, "currentLatency", given.getLongValue("latency"));
        set(item, "startTimestamp", System.currentTimeMillis() + (given.getBooleanValue("availableNow") ? -1 : 3_600_000L));
        if (has(item, "reachableFlag")) {
            set(item, "reachableFlag", true);
        }
        return item;
    }

    private static Object routeData(JSONArray nums) throws Exception {
        Class<?> type = TopicPublishInfo.class.getDeclaredField("topicRouteData").getType();
        Object route = type.getConstructor().newInstance();
        List<Object> datas = new ArrayList<>();
        for (Object each : nums) {
            Object data = Class.forName(type.getPackage().getName() + ".QueueData").getConstructor().newInstance();
            set(data, "brokerName", ((JSONArray) each).getString(0));
            set(data, "writeQueueNums", ((JSONArray) each).getIntValue(1));
            datas.add(data);
        }
        set(route, "queueDatas", datas);
        return route;
    }

    private static List<MessageQueue> queues(JSONArray given) {
        List<MessageQueue> queues = new ArrayList<>();
        for (Object each : given) {
            JSONArray mq = (JSONArray) each;
            queues.add(new MessageQueue(mq.getString(0), mq.getString(1), mq.getIntValue(2)));
        }
        return queues;
    }

    private static MQFaultStrategy strategy() throws Exception {
        for (Constructor<?> each : MQFaultStrategy.class.getConstructors()) {
            if (each.getParameterCount() == 0) {
                return (MQFaultStrategy) each.newInstance();
            }
            if (each.getParameterCount() == 3) {
                return (MQFaultStrategy) each.newInstance(new ClientConfig(), null, null);
            }
        }
        throw new IllegalStateException("MQFaultStrategy has no constructor of 0 or 3 arguments");
    }

    @SuppressWarnings("unchecked")
    private static ThreadLocal<Integer> index(Object of, String name) throws Exception {
        return (ThreadLocal<Integer>) get(get(of, name), "threadLocalIndex");
    }

    /** A message that a client sends to the retry topic of its group: whether it becomes a dead letter. */
    @SuppressWarnings("unchecked")
    private static Object retry(JSONObject asked) throws Exception {
        MessageStoreConfig storeConfig = new MessageStoreConfig();
        storeConfig.setStorePathRootDir(System.getProperty("user.home"));
        BrokerController controller = new BrokerController(new BrokerConfig(), new NettyServerConfig(), new NettyClientConfig(), storeConfig);
        controller.getTopicConfigManager().getTopicConfigTable().put("%DLQ%g", new TopicConfig("%DLQ%g", 1, 1, 6));
        JSONArray ages = asked.getJSONArray("lockAgesMs");
        if (ages != null) {
            ConcurrentHashMap<MessageQueue, Object> locks = new ConcurrentHashMap<>();
            Constructor<?> make = Class.forName(RebalanceLockManager.class.getName() + "$LockEntry").getDeclaredConstructor();
            make.setAccessible(true);
            for (int n = 0; n < ages.size(); n++) {
                Object entry = make.newInstance();
                set(entry, "clientId", "c");
                set(entry, "lastUpdateTimestamp", System.currentTimeMillis() - ages.getIntValue(n));
                locks.put(new MessageQueue("T", "b", n), entry);
            }
            ((ConcurrentMap<String, Object>) get(controller.getRebalanceLockManager(), "mqLockTable")).put("g", locks);
        }
        Method handle = null;
        for (Method each : SendMessageProcessor.class.getDeclaredMethods()) {
            handle = each.getName().equals("handleRetryAndDLQ") ? each : handle;
        }
        handle.setAccessible(true);
        Object header = handle.getParameterTypes()[0].getConstructor().newInstance();
        set(header, "topic", "%RETRY%g");
        set(header, "producerGroup", "p");
        set(header, "sysFlag", 0);
        set(header, "reconsumeTimes", asked.getInteger("reconsumeTimes"));
        set(header, "maxReconsumeTimes", asked.getInteger("maxReconsumeTimes"));
        RemotingCommand request = RemotingCommand.createRequestCommand(SEND_MESSAGE, null);
        request.setVersion(500);
        MessageExt message = message();
        message.setTopic("%RETRY%g");
        Object[] given = {header, RemotingCommand.createResponseCommand(null), request, message, new TopicConfig("%RETRY%g", 1, 1, 6), new HashMap<>()};
        handle.invoke(new SendMessageProcessor(controller), Arrays.copyOf(given, handle.getParameterCount()));
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("topic", message.getTopic());
        return answer;
    }

    private static MessageExt message() throws Exception {
        try {
            return (MessageExt) Class.forName("org.apache.rocketmq.common.message.MessageExtBrokerInner").getConstructor().newInstance();
        } catch (ClassNotFoundException older) {
            return (MessageExt) Class.forName("org.apache.rocketmq.store.MessageExtBrokerInner").getConstructor().newInstance();
        }
    }

    private static boolean has(Object of, String name) {
        return declared(of, name) != null;
    }

    private static Object get(Object of, String name) throws Exception {
        return declared(of, name).get(of);
    }

    private static void set(Object of, String name, Object value) throws Exception {
        declared(of, name).set(of, value);
    }

    private static Field declared(Object of, String name) {
        for (Class<?> type = of.getClass(); type != null; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field;
                }
            }
        }
        return null;
    }
}
