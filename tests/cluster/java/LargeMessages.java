import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;

/** Sends messages of one size. Janino compiles this. */
public class LargeMessages {
    private final byte[] body;

    public LargeMessages(int bytes) { body = new byte[bytes]; }

    /** Return the status of the send. */
    public String send(DefaultMQProducer producer, String topic) throws Exception {
        return producer.send(new Message(topic, body)).getSendStatus().name();
    }
}
