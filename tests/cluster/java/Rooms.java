import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.common.message.MessageQueue;

/** Machine rooms by name: a broker `north@a` and a client `north-1@...` are in `north`. Janino compiles this. */
public class Rooms implements AllocateMachineRoomNearby.MachineRoomResolver {
    public String brokerDeployIn(MessageQueue queue) { return queue.getBrokerName().split("@")[0]; }

    public String consumerDeployIn(String clientId) { return clientId.split("-")[0]; }
}
