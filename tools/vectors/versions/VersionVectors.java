package org.apache.rocketmq.client.impl.factory;

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import com.alibaba.fastjson.parser.Feature;
import com.alibaba.fastjson.serializer.SerializerFeature;
import java.io.BufferedReader;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
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
import java.util.Random;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.impl.FindBrokerResult;
import org.apache.rocketmq.client.latency.MQFaultStrategy;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageQueue;

/** Writes the answers of this version's client: `VersionVectors FOLDER SUFFIX [FILE...]`. Takes most questions from FOLDER. */
public final class VersionVectors {
    private static final int EVERY = 10; // of the questions of a file
    private static final List<String> SMALL = Arrays.asList("compute_pull_from", "delay_retry"); // asked in full

    private static final Map<String, List<JSONObject>> MADE = Map.of("pull_refusal", BrokerRules.refusals(), "offset_query", ConsumerRules.queries());

    interface Answer {
        Object of(JSONObject asked) throws Throwable;
    }

    public static void main(String[] args) throws Exception {
        Map<String, Answer> files = new LinkedHashMap<>();
        files.put("allocate_averagely", asked -> allocate(new AllocateMessageQueueAveragely(), asked));
        files.put("allocate_circle", asked -> allocate(new AllocateMessageQueueAveragelyByCircle(), asked));
        files.put("recalc_pull_node", asked -> asked.getString("case").equals("recalculate") ? ConsumerRules.recalculate(asked) : find(asked));
        files.put("compute_pull_from", ConsumerRules::start);
        files.put("delay_retry", ConsumerRules::sendBack);
        BrokerRules broker = new BrokerRules();
        files.put("broker_suggest", broker::pull);
        files.put("pull_refusal", broker::pull);
        files.put("offset_query", ConsumerRules::query);
        files.put("batch_full", broker::batch);
        files.put("sql92", BrokerRules::sql);
        if (args.length > 2) {
            files.keySet().retainAll(Arrays.asList(args).subList(2, args.length));
        }
        for (Map.Entry<String, Answer> file : files.entrySet()) {
            if (MADE.containsKey(file.getKey())) {
                write(new File(args[0], file.getKey() + args[1] + ".jsonl.gz"), MADE.get(file.getKey()), file.getValue());
                continue;
            }
            List<JSONObject> asked = questions(new File(args[0], file.getKey() + ".jsonl.gz"));
            File later = new File(args[0], file.getKey() + "_v533.jsonl.gz"); // its questions are of settings that are new in 5.x
            if (later.exists()) {
                asked.addAll(questions(later));
            }
            write(new File(args[0], file.getKey() + args[1] + ".jsonl.gz"), asked, file.getValue());
        }
        if (args.length > 2 && !Arrays.asList(args).contains("client_rules")) {
            System.exit(0); // the client's services have threads
        }
        List<JSONObject> asked = new ArrayList<>();
        asked.add(JSON.parseObject("{\"case\":\"defaults\"}"));
        Random random = new Random(33);
        for (int i = 0; i < 300; i++) {
            JSONArray sends = new JSONArray();
            for (int n = 1 + random.nextInt(4); n > 0; n--) {
                long latency = random.nextInt(4) == 0 ? random.nextInt(40_000) : random.nextInt(6_000);
                sends.add(new JSONArray(Arrays.asList("ab".charAt(random.nextInt(2)) + "", latency, random.nextInt(3) == 0)));
            }
            JSONObject one = new JSONObject(true);
            one.put("case", "faults");
            one.put("sends", sends);
            asked.add(one);
        }
        write(new File(args[0], "client_rules" + args[1] + ".jsonl.gz"), asked,
            each -> each.getString("case").equals("defaults") ? defaults() : faults(each));
        System.exit(0);
    }

    private static List<JSONObject> questions(File file) throws IOException {
        List<JSONObject> found = new ArrayList<>();
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(
            new GZIPInputStream(new FileInputStream(file)), StandardCharsets.UTF_8))) {
            int number = 0;
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                JSONObject asked = JSON.parseObject(line, Feature.OrderedField).getJSONObject("in");
                if (isAsked(asked) && number++ % (SMALL.contains(file.getName().split("[_.]v|\\.")[0]) ? 1 : EVERY) == 0) {
                    found.add(asked);
                }
            }
        }
        return found;
    }

    /** Only what is ours to answer: no store with messages, and no broker that takes one back. */
    private static boolean isAsked(JSONObject asked) {
        String kind = asked.getString("case");
        return !kind.startsWith("getMessage") && !Arrays.asList("sendMessageBack", "clientMaxReconsumeTimes", "parseDelayLevel", "levelQueueId",
            "orderlyCheckReconsumeTimes.sendBackFails").contains(kind);
    }

    static String shown(Throwable error) {
        return error.getClass().getName() + (error.getMessage() == null ? "" : ": " + error.getMessage());
    }

    private static void write(File file, List<JSONObject> questions, Answer answer) throws IOException {
        try (Writer out = new OutputStreamWriter(new GZIPOutputStream(new FileOutputStream(file)), StandardCharsets.UTF_8)) {
            for (JSONObject asked : questions) {
                Map<String, Object> line = new LinkedHashMap<>();
                line.put("in", asked);
                try {
                    line.put("out", answer.of(asked));
                } catch (Throwable error) {
                    line.put("out", map("error", shown(error)));
                }
                out.write(JSON.toJSONString(line, SerializerFeature.WriteMapNullValue,
                    SerializerFeature.DisableCircularReferenceDetect) + "\n");
            }
        }
    }

    static Map<String, Object> map(Object... pairs) {
        Map<String, Object> made = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            made.put((String) pairs[i], pairs[i + 1]);
        }
        return made;
    }

    private static Object allocate(AllocateMessageQueueStrategy strategy, JSONObject asked) {
        List<MessageQueue> all = null;
        if (asked.getJSONArray("mqAll") != null) {
            all = new ArrayList<>();
            for (Object each : asked.getJSONArray("mqAll")) {
                JSONArray mq = (JSONArray) each;
                all.add(new MessageQueue(mq.getString(0), mq.getString(1), mq.getIntValue(2)));
            }
        }
        JSONArray ids = asked.getJSONArray("cidAll");
        List<Object> result = new ArrayList<>();
        for (MessageQueue mq : strategy.allocate(asked.getString("consumerGroup"), asked.getString("currentCID"), all,
            ids == null ? null : ids.toJavaList(String.class))) {
            result.add(Arrays.asList(mq.getTopic(), mq.getBrokerName(), mq.getQueueId()));
        }
        return map("result", result);
    }

    @SuppressWarnings("unchecked")
    private static Object find(JSONObject asked) throws Exception {
        MQClientInstance client = new MQClientInstance(new ClientConfig(), 0, "c");
        Map<String, Map<Long, String>> table = (Map<String, Map<Long, String>>) field(client, "brokerAddrTable");
        Map<String, Map<String, Integer>> versions = (Map<String, Map<String, Integer>>) field(client, "brokerVersionTable");
        JSONArray rows = asked.getJSONArray("brokerAddrTable");
        for (Object each : rows == null ? new JSONArray() : rows) {
            Map<Long, String> addresses = inner("brokerAddrTable");
            for (Object pair : ((JSONObject) each).getJSONArray("insertedInOrder")) {
                addresses.put(((JSONArray) pair).getLong(0), ((JSONArray) pair).getString(1));
            }
            table.put(((JSONObject) each).getString("brokerName"), addresses);
        }
        rows = asked.getJSONArray("brokerVersionTable");
        for (Object each : rows == null ? new JSONArray() : rows) {
            Map<String, Integer> of = inner("brokerVersionTable");
            JSONObject given = ((JSONObject) each).getJSONObject("versions");
            given.keySet().forEach(address -> of.put(address, given.getInteger(address)));
            versions.put(((JSONObject) each).getString("brokerName"), of);
        }
        String name = asked.getString("brokerName");
        FindBrokerResult found = client.findBrokerAddressInSubscribe(name, asked.getLongValue("brokerId"),
            asked.getBooleanValue("onlyThisBroker"));
        boolean known = name != null && table.containsKey(name);
        return map(
            "result", found == null ? null
                : map("brokerAddr", found.getBrokerAddr(), "slave", found.isSlave(), "brokerVersion", found.getBrokerVersion()),
            "iterationOrder", known ? new ArrayList<>(table.get(name).keySet()) : null,
            "findBrokerAddressInPublish", name == null ? null : client.findBrokerAddressInPublish(name));
    }

    /** The inner maps of brokerVersionTable became concurrent in a later release. */
    private static <K, V> Map<K, V> inner(String table) throws Exception {
        String type = MQClientInstance.class.getDeclaredField(table).getGenericType().getTypeName();
        return type.indexOf("ConcurrentHashMap<", type.indexOf('<')) > 0 ? new ConcurrentHashMap<>() : new HashMap<>();
    }

    @SuppressWarnings("unchecked")
    private static Object defaults() throws Exception {
        MQFaultStrategy strategy = strategy();
        return map(
            "latencyMax", strategy.getLatencyMax(),
            "notAvailableDuration", strategy.getNotAvailableDuration(),
            "retryResponseCodes", new TreeSet<>((java.util.Set<Integer>) field(new DefaultMQProducer("g"), "retryResponseCodes")),
            "exception", new MQClientException(1, "no route").getMessage());
    }

    /** Duration is in whole seconds: the clock runs while the client answers. 0 is available now. */
    private static Object faults(JSONObject asked) throws Exception {
        MQFaultStrategy strategy = strategy();
        strategy.setSendLatencyFaultEnable(true);
        Method update = Arrays.stream(MQFaultStrategy.class.getMethods())
            .filter(each -> each.getName().equals("updateFaultItem")).max((a, b) -> a.getParameterCount() - b.getParameterCount()).get();
        for (Object each : asked.getJSONArray("sends")) {
            JSONArray send = (JSONArray) each;
            Object[] four = {send.getString(0), send.getLong(1), send.getBoolean(2), true};
            update.invoke(strategy, Arrays.copyOf(four, update.getParameterCount()));
        }
        long now = System.currentTimeMillis();
        Map<String, Object> table = new TreeMap<>();
        for (Map.Entry<?, ?> item : ((Map<?, ?>) field(field(strategy, "latencyFaultTolerance"), "faultItemTable")).entrySet()) {
            long seconds = Math.max(0, Math.round(((Long) field(item.getValue(), "startTimestamp") - now) / 1000.0));
            table.put((String) item.getKey(), Arrays.asList(field(item.getValue(), "currentLatency"), seconds));
        }
        return map("latency_unavailableForSeconds", table);
    }

    private static MQFaultStrategy strategy() throws Exception {
        Constructor<?>[] all = MQFaultStrategy.class.getConstructors();
        for (Constructor<?> each : all) {
            if (each.getParameterCount() == 0) {
                return (MQFaultStrategy) each.newInstance();
            }
            if (each.getParameterCount() == 3) {
                return (MQFaultStrategy) each.newInstance(new ClientConfig(), null, null);
            }
        }
        throw new IllegalStateException("MQFaultStrategy has no constructor of 0 or 3 arguments");
    }

    static Object field(Object of, String name) throws Exception {
        return declared(of, name).get(of);
    }

    static void set(Object of, String name, Object value) throws Exception {
        declared(of, name).set(of, value);
    }

    private static Field declared(Object of, String name) throws NoSuchFieldException {
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
}
