package org.apache.rocketmq.store;

import java.io.File;
import java.io.FileOutputStream;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Map;
import java.util.zip.GZIPOutputStream;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/** Where a pull ends if messages arrive after the store has read the end of the queue: `LateEnd FOLDER SUFFIX`, of 4.9 and 5.0. */
public final class LateEnd {
    private static final int[][] QUEUES = {{10, 10}, {10, 8}, {10, 1}, {900, 850}, {900, 30}, {2000, 1200}, {2000, 3}}; // entries, end that is read
    private static final int MESSAGE = 100; // bytes

    public static void main(String[] args) throws Exception {
        File file = new File(args[0], "late_end" + args[1] + ".jsonl.gz");
        try (Writer out = new OutputStreamWriter(new GZIPOutputStream(new FileOutputStream(file)), StandardCharsets.UTF_8)) {
            for (int[] queue : QUEUES) {
                Store store = new Store(queue[0], queue[1]);
                for (int offset : new int[] {0, 1, queue[1] - 1}) {
                    for (int most : new int[] {1, 32, 900}) {
                        if (offset < queue[1]) {
                            GetMessageResult got = store.getMessage("g", "T", 0, offset, most, new None());
                            out.write(String.format("{\"in\":{\"case\":\"noneMatches\",\"entries\":%d,\"maxOffset\":%d,\"offset\":%d,\"maxMsgNums\":%d},"
                                + "\"out\":{\"status\":\"%s\",\"nextBeginOffset\":%d,\"maxOffset\":%d}}%n", queue[0], queue[1], offset, most,
                                got.getStatus(), got.getNextBeginOffset(), got.getMaxOffset()));
                        }
                    }
                }
            }
        }
        System.exit(0); // the store has threads
    }

    /** A store with one queue, which has more entries than its end when that was read. */
    private static final class Store extends DefaultMessageStore {
        private final ConsumeQueue queue;

        Store(int entries, int end) throws Exception {
            super(config(), new BrokerStatsManager("c", false), null, new BrokerConfig());
            load();
            Field shutdown = DefaultMessageStore.class.getDeclaredField("shutdown"); // start() would clear it, and run its services
            shutdown.setAccessible(true);
            shutdown.set(this, false);
            String path = getMessageStoreConfig().getStorePathRootDir() + "/consumequeue";
            queue = new ConsumeQueue("T", 0, path, 6_000_000, this) {
                @Override
                public long getMaxOffsetInQueue() {
                    return end;
                }
            };
            Method put = Arrays.stream(ConsumeQueue.class.getMethods()).filter(each -> each.getName().equals("putMessagePositionInfoWrapper")).findFirst().get();
            for (int i = 0; i < entries; i++) {
                DispatchRequest request = new DispatchRequest("T", 0, (long) i * MESSAGE, MESSAGE, 1, 1, i, null, null, 0, 0, null);
                put.invoke(queue, put.getParameterCount() == 1 ? new Object[] {request} : new Object[] {request, false});
            }
        }

        private static MessageStoreConfig config() throws Exception {
            MessageStoreConfig config = new MessageStoreConfig();
            String root = Files.createTempDirectory("store").toString();
            config.setStorePathRootDir(root);
            config.setStorePathCommitLog(root + "/commitlog");
            return config;
        }

        @Override
        public ConsumeQueue findConsumeQueue(String topic, int queueId) {
            return queue;
        }
    }

    /** A filter that no message passes: so the walk alone decides where the pull ends. */
    private static final class None implements MessageFilter {
        @Override
        public boolean isMatchedByConsumeQueue(Long tagsCode, ConsumeQueueExt.CqExtUnit unit) {
            return false;
        }

        @Override
        public boolean isMatchedByCommitLog(ByteBuffer message, Map<String, String> properties) {
            return false;
        }
    }
}
