package org.apache.rocketmq.broker.processor;

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.serializer.SerializerFeature;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.zip.GZIPOutputStream;

/** Writes what RocketMQ's own classes answer: `java ... Vectors FOLDER SUFFIX` makes FOLDER/pop_*SUFFIX.jsonl.gz. */
public final class Vectors {
    static final Random RANDOM = new Random(33);
    private final Writer out;

    private Vectors(Writer out) {
        this.out = out;
    }

    interface Answer {
        Object of() throws Throwable;
    }

    interface Cases {
        void write(Vectors vectors) throws Exception;
    }

    public static void main(String[] args) throws Exception {
        Map<String, Cases> files = new LinkedHashMap<>();
        files.put("pop_retry_topic", Names::retryTopics);
        files.put("pop_receipt", Names::receipts);
        files.put("pop_order", Order::cases);
        Broker broker = new Broker();
        files.put("pop_assignment", broker::assignments);
        files.put("pop_start", broker::starts);
        files.put("pop_revive", new Revive(broker)::cases);
        for (Map.Entry<String, Cases> file : files.entrySet()) {
            File path = new File(args[0], file.getKey() + args[1] + ".jsonl.gz");
            try (Writer out = new OutputStreamWriter(new GZIPOutputStream(new FileOutputStream(path)), StandardCharsets.UTF_8)) {
                file.getValue().write(new Vectors(out));
            }
        }
        System.exit(0); // the broker's services have threads
    }

    /** One line: the question, and the answer or the exception. */
    void line(Map<String, Object> asked, Answer answer) throws IOException {
        Object answered;
        try {
            answered = answer.of();
        } catch (Throwable error) {
            answered = map("error", map("class", error.getClass().getName(), "message", error.getMessage()));
        }
        out.write(JSON.toJSONString(map("in", asked, "out", answered), SerializerFeature.WriteMapNullValue,
            SerializerFeature.DisableCircularReferenceDetect) + "\n");
    }

    static Map<String, Object> map(Object... pairs) {
        Map<String, Object> made = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            made.put((String) pairs[i], pairs[i + 1]);
        }
        return made;
    }

    static <T> T one(T... of) {
        return of[RANDOM.nextInt(of.length)];
    }

    static int below(int bound) {
        return RANDOM.nextInt(bound);
    }

    /** Ascending offsets with holes. */
    static List<Long> offsets(long first, int count) {
        List<Long> made = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            made.add(first);
            first += 1 + (below(4) == 0 ? below(5) : 0);
        }
        return made;
    }

    static List<Object> list(Object... of) {
        return new ArrayList<>(Arrays.asList(of));
    }
}
