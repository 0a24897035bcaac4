import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.impl.consumer.ProcessQueue;
import org.apache.rocketmq.common.message.MessageQueue;

/** The queues that a consumer holds, looked up every 50 ms, and when that changed. Janino compiles this. */
public class HeldQueues extends Thread {
    private final DefaultMQPushConsumer consumer;
    private final List changes = new ArrayList();
    private volatile boolean ended;

    public HeldQueues(DefaultMQPushConsumer consumer) {
        this.consumer = consumer;
        setDaemon(true);
    }

    public void run() {
        String before = "";
        while (!ended) {
            String held = held();
            if (!held.equals(before)) add(held);
            before = held;
            try { Thread.sleep(50); } catch (InterruptedException interrupted) { return; }
        }
    }

    /** Return "epoch_ms topic/broker/queue_id ..." for each change. */
    public synchronized List changes() { return new ArrayList(changes); }

    public synchronized void end() {
        ended = true;
        add("");
    }

    private synchronized void add(String held) { changes.add(System.currentTimeMillis() + held); }

    private String held() {
        TreeSet queues = new TreeSet();
        Iterator entries = consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().entrySet().iterator();
        while (entries.hasNext()) {
            Map.Entry entry = (Map.Entry) entries.next();
            MessageQueue queue = (MessageQueue) entry.getKey();
            if (!((ProcessQueue) entry.getValue()).isDropped())
                queues.add(queue.getTopic() + "/" + queue.getBrokerName() + "/" + queue.getQueueId());
        }
        StringBuilder text = new StringBuilder();
        for (Iterator names = queues.iterator(); names.hasNext();) text.append(" ").append(names.next());
        return text.toString();
    }
}
