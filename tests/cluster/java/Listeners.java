import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.message.MessageExt;

/** The listeners of a test: they keep the keys of the messages consumed, and sleep or fail when told to. Janino compiles this. */
public class Listeners {
    private final ConcurrentLinkedQueue keys = new ConcurrentLinkedQueue();
    private volatile long delayMs;
    private volatile boolean failing;
    private volatile String refusedPrefix;
    private volatile int refusals;

    public void setDelayMs(long delayMs) { this.delayMs = delayMs; }

    public void setFailing(boolean failing) { this.failing = failing; }

    /** Refuse each message whose key begins with the prefix, until it has been sent back so many times. */
    public void refuse(String prefix, int times) {
        refusals = times;
        refusedPrefix = prefix;
    }

    public List consumedKeys() { return new ArrayList(keys); }

    private boolean consume(List messages) {
        for (int i = 0; i < messages.size(); i++) {
            if (delayMs > 0) {
                try { Thread.sleep(delayMs); } catch (InterruptedException interrupted) { return false; }
            }
            MessageExt message = (MessageExt) messages.get(i);
            String key = message.getKeys();
            if (failing || isRefused(key, message.getReconsumeTimes())) return false;
            keys.add(key == null ? "" : key);
        }
        return true;
    }

    private boolean isRefused(String key, int reconsumeTimes) {
        return refusedPrefix != null && key != null && key.startsWith(refusedPrefix) && reconsumeTimes < refusals;
    }

    public MessageListenerConcurrently concurrent() {
        return new MessageListenerConcurrently() {
            public ConsumeConcurrentlyStatus consumeMessage(List messages, ConsumeConcurrentlyContext context) {
                return consume(messages) ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS : ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }
        };
    }

    public MessageListenerOrderly orderly() {
        return new MessageListenerOrderly() {
            public ConsumeOrderlyStatus consumeMessage(List messages, ConsumeOrderlyContext context) {
                return consume(messages) ? ConsumeOrderlyStatus.SUCCESS : ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
            }
        };
    }
}
